package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The JSON output of a run of {@link TrainMlp}.
 *
 * @param digest the digest of the weights, the same on all ranks
 * @param losses the loss of each step
 */
record Trained(String digest, List<Double> losses) {
  /** Runs with ranks as threads, and reads all losses. */
  static Trained run(Path folder, int ranks, String... options) throws IOException {
    Path json = Files.createTempFile(folder, "trained", ".json");
    List<String> args = new ArrayList<>(List.of(options));
    args.removeIf(option -> option.startsWith("--json") || option.startsWith("--loss-every"));
    args.addAll(List.of("--local=" + ranks, "--loss-every=1", "--json=" + json));
    Run.of(new TrainMlp(), args.toArray(String[]::new))
        .exits(0)
        .prints("[PASS] All ranks have identical weights.");
    return read(json);
  }

  static Trained read(Path json) throws IOException {
    String text = Files.readString(json);
    Json.assertJson(text);
    Matcher digests = Pattern.compile("\"digests\": \\[([^]]*)]").matcher(text);
    assertTrue(digests.find(), text);
    List<String> all = List.of(digests.group(1).split(", "));
    assertEquals(1, new HashSet<>(all).size(), text);
    List<Double> losses = new ArrayList<>();
    Matcher loss = Pattern.compile("\\[(\\d+), ([-+0-9.E]+)]").matcher(text);
    while (loss.find()) {
      losses.add(Double.parseDouble(loss.group(2)));
    }
    return new Trained(all.get(0), losses);
  }
}
