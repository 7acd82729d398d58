package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.jr.ob.JSON;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

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
    Map<String, Object> results = JSON.std.mapFrom(Files.readString(json));
    List<?> digests = ((List<?>) results.get("digests")).stream().distinct().toList();
    assertEquals(1, digests.size(), results::toString);
    List<Double> losses = new ArrayList<>();
    for (Object stepAndLoss : (List<?>) results.get("losses")) {
      losses.add((Double) ((List<?>) stepAndLoss).get(1));
    }
    return new Trained(digests.get(0).toString(), losses);
  }
}
