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
 * Makes random calls for some time, in an order that all ranks derive from one seed. All bits have
 * to be right, and in the end the process must not hold more resources than before.
 *
 * <p>System properties: {@code soak.seconds}, and {@code soak.seed} to repeat a failed run.
 */
@TestInstance(Lifecycle.PER_CLASS)
public abstract class SoakContract {
  private final long seconds;

  /**
   * Creates a soak test.
   *
   * @param seconds how long to run if {@code soak.seconds} is not set
   */
  protected SoakContract(int seconds) {
    this.seconds = Long.getLong("soak.seconds", seconds);
  }

  /** {@return a runner of ranks of the backend under test, with its reducer chosen} */
  protected abstract RankRunner runner();

  /**
   * Returns how much device memory is in use, or 0 if the test does not watch it.
   *
   * @param sync this rank's sync
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
