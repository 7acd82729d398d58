package org.gradientsync.tcp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** How processes go on without others. */
@Execution(ExecutionMode.SAME_THREAD) // its jobs fill the cores
class SurvivorsIT {
  @ParameterizedTest
  @CsvSource({
    "3, shared, kill, 1",
    "3, tcp, kill, 0",
    "4, shared, kill, '0,2'",
    "4, tcp, kill, 3 0 1",
    "3, shared, throw, 0",
    "3, tcp, exit, 1",
    "3, tcp, halt, 1 0",
    "3, shared, return, 2",
    "3, tcp, term, 0"
  })
  void theOthersGoOn(int size, String reducer, String how, String lost) throws Exception {
    List<String> arguments = new ArrayList<>(List.of(how));
    List<String> times = List.of(lost.split(" "));
    arguments.addAll(times);
    List<Integer> gone = Stream.of(lost.split("[ ,]")).map(Integer::valueOf).toList();
    List<Ranks.Result> job =
        Ranks.run(
            size,
            List.of(
                "-Dgradientsync.reducer="
                    + (size - gone.size() > 1 ? reducer : "auto").replace("auto", "")),
            SurvivorProgram.class,
            arguments.toArray(String[]::new));
    int number = 0;
    for (int rank = 0; rank < size; rank++) {
      Ranks.Result result = job.get(rank);
      if (gone.contains(rank)) {
        assertEquals(how.equals("return"), result.exitCode() == 0, result.output());
      } else {
        result.expect(
            "rank " + rank + " has averaged as " + number++ + " of " + (size - gone.size()));
        assertEquals(0, result.exitCode(), result.output());
      }
    }
    assertNotEquals(0, number);
  }
}
