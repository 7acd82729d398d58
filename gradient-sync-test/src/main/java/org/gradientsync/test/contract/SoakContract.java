package org.gradientsync.test.contract;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.gradientsync.GradientSync;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Random calls, in an order that all ranks derive from one seed, for some time: all bits are right,
 * and in the end the process holds no more than at first.
 *
 * <p>System properties: {@code soak.seconds}, and {@code soak.seed} to repeat what failed.
 */
@TestInstance(Lifecycle.PER_CLASS)
public abstract class SoakContract {
  private final long seconds;

  /**
   * A soak.
   *
   * @param seconds how long, if {@code soak.seconds} does not say
   */
  protected SoakContract(int seconds) {
    this.seconds = Long.getLong("soak.seconds", seconds);
  }

  /**
   * The ranks to run with.
   *
   * @return the runner of the backend under test, with its reducer chosen
   */
  protected abstract RankRunner runner();

  /**
   * How much of a device's memory is in use, as far as it is watched.
   *
   * @param sync this rank's
   * @return bytes
   */
  protected long deviceMemory(GradientSync sync) {
    return 0;
  }

  Stream<Integer> sizes() {
    return Arrays.stream(runner().sizes()).boxed();
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void randomCallsAreExactAndLeakNothing(int ranks) {
    runner()
        .run(
            ranks,
            options -> options.timeout(Duration.ofSeconds(60)),
            sync -> {
              try (Soak soak = new Soak(sync)) {
                soak.warmUp();
                soak.settle();
                Footprint before = Footprint.measure(() -> deviceMemory(sync));
                int syncs = soak.run(Duration.ofSeconds(seconds));
                soak.settle();
                Footprint after = Footprint.measure(() -> deviceMemory(sync));
                System.out.println(soak + ": syncs=" + syncs + "\n  " + before + "\n  " + after);
                assertEquals(List.of(), after.grownSince(before, syncs), soak::toString);
                sync.barrier();
              }
            });
  }
}
