package org.gradientsync.tools.perf;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.util.JsonGeneratorDelegate;
import com.fasterxml.jackson.core.util.MinimalPrettyPrinter;
import com.fasterxml.jackson.jr.ob.JSON;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Formats results as JSON. */
public final class PerfJson {
  private static final JSON JSON_WITH_NULL = JSON.std.with(JSON.Feature.WRITE_NULL_PROPERTIES);

  private PerfJson() {}

  /**
   * Returns one object.
   *
   * @param about the members that hold for all results
   * @param rivals what others took, if it is known
   */
  static String of(Map<String, Object> about, List<PerfResult> results, List<PerfResult> rivals) {
    Map<String, Object> all = new LinkedHashMap<>(about);
    List<Object> list = new ArrayList<>();
    for (PerfResult result : results) {
      list.add(members(result));
    }
    all.put("results", list);
    if (!rivals.isEmpty()) {
      all.put("rivals", rivals.stream().map(PerfJson::rivalMembers).toList());
    }
    return of(all);
  }

  /**
   * Returns one object.
   *
   * @param all the object's members: numbers, strings, booleans, lists and maps
   * @return the object's text, ending with a newline
   */
  public static String of(Map<String, Object> all) {
    StringWriter text = new StringWriter();
    try (JsonGenerator json = JSON_WITH_NULL.getStreamingFactory().createGenerator(text)) {
      json.setPrettyPrinter(new Lines());
      JSON_WITH_NULL.write(all, new FiniteNumbers(json));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return text.append('\n').toString();
  }

  private static Map<String, Object> rivalMembers(PerfResult rival) {
    Map<String, Object> members = new LinkedHashMap<>();
    members.put("collective", rival.collective().toString());
    members.put("name", rival.reducer());
    members.put("bytes", rival.bytes());
    members.put("microseconds", rival.microseconds());
    members.put("algbw", rival.algorithmBandwidth());
    members.put("busbw", rival.busBandwidth());
    return members;
  }

  private static Map<String, Object> members(PerfResult result) {
    Map<String, Object> members = new LinkedHashMap<>();
    members.put("collective", result.collective().toString());
    members.put("reducer", result.reducer());
    members.put("bytes", result.bytes());
    members.put("count", result.count());
    members.put("placement", result.placement());
    members.put("microseconds", result.microseconds());
    members.put("rounds", result.rounds());
    members.put("algbw", result.algorithmBandwidth());
    members.put("busbw", result.busBandwidth());
    members.put("wrong", result.wrong());
    if (result.host() != null) {
      members.put("hostNanos", result.host().cpuNanos());
      members.put("hostWallNanos", result.host().wallNanos());
      members.put("hostBytes", result.host().bytes());
    }
    return members;
  }

  /** Writes null for infinity, which JSON lacks, and which a time too short for the clock gives. */
  private static final class FiniteNumbers extends JsonGeneratorDelegate {
    FiniteNumbers(JsonGenerator json) {
      super(json);
    }

    @Override
    public void writeNumber(double number) throws IOException {
      if (Double.isFinite(number)) {
        super.writeNumber(number);
      } else {
        writeNull();
      }
    }
  }

  /** Writes each object of a list on a line of its own. */
  private static final class Lines extends MinimalPrettyPrinter {
    private static final long serialVersionUID = 1;

    @Override
    public void writeStartObject(JsonGenerator json) throws IOException {
      if (json.getOutputContext().getParent().inArray()) {
        json.writeRaw("\n  ");
      }
      super.writeStartObject(json);
    }

    @Override
    public void writeObjectFieldValueSeparator(JsonGenerator json) throws IOException {
      json.writeRaw(": ");
    }

    @Override
    public void writeObjectEntrySeparator(JsonGenerator json) throws IOException {
      json.writeRaw(", ");
    }

    @Override
    public void writeArrayValueSeparator(JsonGenerator json) throws IOException {
      json.writeRaw(", ");
    }
  }
}
