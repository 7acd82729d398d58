package org.gradientsync.cuda.internal.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import org.gradientsync.spi.Settings;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests which algorithm a buffer takes. */
class PeerTuningTest {
  private static final PeerSharing ALONE = new PeerSharing(List.of(7), 0);

  private static final long MIB = 1 << 20;

  private static PeerTuning tuning(int ranks, String algorithm) {
    Settings settings =
        new Settings(algorithm == null ? Map.of() : Map.of("dev.peer.algorithm", algorithm));
    return new PeerTuning(new PeerLayout(ranks), ranks, ALONE, 0, settings);
  }

  @ParameterizedTest
  @CsvSource({"2, 655360", "3, 735000", "4, 326666", "8, 93333", "16, 37333"})
  void smallBuffersGoInOneShotAndLargeOnesStream(int ranks, long oneShot) {
    PeerTuning tuning = tuning(ranks, null);
    assertFalse(tuning.isForced());
    assertEquals(PeerAlgorithm.ONE_SHOT, tuning.algorithm(0));
    assertEquals(PeerAlgorithm.ONE_SHOT, tuning.algorithm(4));
    assertEquals(PeerAlgorithm.ONE_SHOT, tuning.algorithm(oneShot));
    assertEquals(PeerAlgorithm.TWO_SHOT, tuning.algorithm(oneShot + 1));
    assertEquals(PeerAlgorithm.TWO_SHOT, tuning.algorithm(8 * MIB));
    assertEquals(PeerAlgorithm.STREAM, tuning.algorithm(8 * MIB + 1));
    assertEquals(PeerAlgorithm.STREAM, tuning.algorithm(Long.MAX_VALUE));
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
  void noBufferTakesAnAlgorithmThatIsTooSmallForIt(int ranks) {
    PeerLayout layout = new PeerLayout(ranks);
    PeerTuning measured = tuning(ranks, null);
    measured.set(Long.MAX_VALUE, Long.MAX_VALUE);
    PeerTuning[] tunings = {
      tuning(ranks, null), measured, tuning(ranks, "one_shot"), tuning(ranks, "two_shot")
    };
    for (long bytes = 1; bytes < 64 * MIB; bytes = bytes * 3 / 2 + 1) {
      for (PeerTuning tuning : tunings) {
        assertTrue(bytes <= layout.mostBytes(tuning.algorithm(bytes)), tuning + ": " + bytes);
      }
    }
  }

  @Test
  void whatWasMeasuredReplacesTheBuiltInNumbers() {
    PeerTuning tuning = tuning(4, null);
    tuning.set(1000, 5000);
    assertEquals(PeerAlgorithm.ONE_SHOT, tuning.algorithm(1000));
    assertEquals(PeerAlgorithm.TWO_SHOT, tuning.algorithm(1001));
    assertEquals(PeerAlgorithm.STREAM, tuning.algorithm(5001));
    assertEquals("one_shot to 1000 bytes, two_shot to 5000, then stream", tuning.toString());
  }

  @Test
  void anAlgorithmCanBeForcedAsFarAsItGoes() {
    PeerLayout layout = new PeerLayout(4);
    PeerTuning oneShot = tuning(4, "one_shot");
    assertTrue(oneShot.isForced());
    assertEquals("one_shot always", oneShot.toString());
    long most = layout.mostBytes(PeerAlgorithm.ONE_SHOT);
    assertEquals(PeerAlgorithm.ONE_SHOT, oneShot.algorithm(most));
    assertEquals(PeerAlgorithm.TWO_SHOT, oneShot.algorithm(most + 1));
    assertEquals(PeerAlgorithm.STREAM, oneShot.algorithm(8 * MIB + 1));
    PeerTuning twoShot = tuning(4, "Two_Shot");
    assertEquals(PeerAlgorithm.TWO_SHOT, twoShot.algorithm(1));
    assertEquals(PeerAlgorithm.TWO_SHOT, twoShot.algorithm(8 * MIB));
    assertEquals(PeerAlgorithm.STREAM, twoShot.algorithm(8 * MIB + 1));
    PeerTuning stream = tuning(4, "stream");
    assertEquals(PeerAlgorithm.STREAM, stream.algorithm(1));
  }

  @ParameterizedTest
  @ValueSource(strings = {"oneshot", "broadcast", "BROADCAST", "one_shot,two_shot", "auto"})
  void waysThatDoNotExistAreRefused(String algorithm) {
    IllegalArgumentException e =
        assertThrows(IllegalArgumentException.class, () -> tuning(4, algorithm));
    assertEquals(
        "no such algorithm: gradientsync.dev.peer.algorithm="
            + algorithm
            + "; give one_shot, two_shot or stream",
        e.getMessage());
  }

  @Test
  void aLaunchTakesItsShareAndAtLeastOneBlock() {
    PeerLayout layout = new PeerLayout(2);
    Settings none = new Settings(Map.of());
    PeerTuning first = new PeerTuning(layout, 2, ALONE, 0, none);
    assertEquals(198, first.mostBlocks(3, 132, PeerAlgorithm.TWO_SHOT, false));
    assertEquals(198, first.mostBlocks(2, 132, PeerAlgorithm.TWO_SHOT_UNROLLED, false));
    assertEquals(132, first.mostBlocks(2, 132, PeerAlgorithm.STREAM, false));
    assertEquals(66, first.mostBlocks(1, 132, PeerAlgorithm.STAGED, false));
    assertEquals(144, first.mostBlocks(3, 132, PeerAlgorithm.TWO_SHOT, true));
    assertEquals(48, first.mostBlocks(1, 132, PeerAlgorithm.STREAM_FEW_CTAS, true));
    assertEquals(49, first.mostBlocks(1, 132, PeerAlgorithm.STAGED, true));
    PeerTuning four = new PeerTuning(layout, 4, ALONE, 0, none);
    assertEquals(24, four.mostBlocks(1, 132, PeerAlgorithm.STREAM_FEW_CTAS, true));
    assertEquals(48, four.mostBlocks(1, 132, PeerAlgorithm.STAGED, true));
    PeerTuning many = new PeerTuning(layout, 8, ALONE, 0, none);
    assertEquals(48, many.mostBlocks(1, 132, PeerAlgorithm.STREAM_FEW_CTAS, true));
    assertEquals(49, many.mostBlocks(1, 132, PeerAlgorithm.STAGED, true));
    assertTrue(first.takesWholeSms());
    PeerTuning second = new PeerTuning(layout, 2, ALONE, 1, none);
    assertEquals(33, second.mostBlocks(3, 132, PeerAlgorithm.TWO_SHOT, false));
    assertEquals(33, second.mostBlocks(2, 132, PeerAlgorithm.STREAM, true));
    assertFalse(second.takesWholeSms());
    PeerTuning shared =
        new PeerTuning(
            // two ranks with half of a GPU each
            layout, 2, new PeerSharing(List.of(7, 7), 0), 0, none);
    assertEquals(99, shared.mostBlocks(3, 132, PeerAlgorithm.TWO_SHOT, false));
    assertEquals(66, shared.mostBlocks(2, 132, PeerAlgorithm.STREAM, false));
    assertEquals(24, shared.mostBlocks(1, 132, PeerAlgorithm.STREAM_FEW_CTAS, true));
    assertEquals(24, shared.mostBlocks(1, 132, PeerAlgorithm.STAGED, true));
    assertTrue(shared.takesWholeSms());
    assertEquals(
        1,
        new PeerTuning(layout, 2, ALONE, 8, none).mostBlocks(3, 132, PeerAlgorithm.STREAM, false));
    assertEquals(
        1,
        new PeerTuning(layout, 2, ALONE, 1000, none)
            .mostBlocks(3, 132, PeerAlgorithm.STREAM, false));
    Settings few = new Settings(Map.of("overlap.sms", "5"));
    assertEquals(
        5,
        new PeerTuning(layout, 2, ALONE, 0, few)
            .mostBlocks(1, 132, PeerAlgorithm.STREAM_FEW_CTAS, true));
    assertEquals(
        132,
        new PeerTuning(layout, 2, ALONE, 0, few).mostBlocks(2, 132, PeerAlgorithm.STREAM, false));
    for (String wrong : new String[] {"0", "-1", "513", "many"}) {
      Settings settings = new Settings(Map.of("overlap.sms", wrong));
      IllegalArgumentException e =
          assertThrows(
              IllegalArgumentException.class, () -> new PeerTuning(layout, 2, ALONE, 0, settings));
      assertTrue(e.getMessage().contains("overlap.sms=" + wrong), e.getMessage());
    }
  }
}
