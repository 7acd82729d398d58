package org.gradientsync.cuda.internal.peer;

import java.util.Arrays;
import java.util.EnumSet;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import org.gradientsync.spi.Settings;

/** Where one algorithm ends and the next begins, and how much of a GPU they may take. */
final class PeerTuning {
  private static final Set<PeerAlgorithm> CHOICES =
      EnumSet.of(PeerAlgorithm.ONE_SHOT, PeerAlgorithm.TWO_SHOT, PeerAlgorithm.STREAM);
  private static final int OVERLAP_SMS = 24;
  private static final int MANY_RANKS = 5; // measured: 24 for 2 and for 4 ranks, 48 for 8

  private final PeerLayout layout;
  private final int place;
  private final PeerAlgorithm forced;
  private final int overlapSms;
  private final PeerSharing sharing;
  private long oneShotMost;
  private long twoShotMost = 8 << 20;

  /**
   * The built-in numbers.
   *
   * @param sharing which part of its GPU each rank has
   * @param place the sync's share of the GPU, see {@link PeerBudget}
   */
  PeerTuning(PeerLayout layout, int ranks, PeerSharing sharing, int place, Settings settings) {
    this.layout = layout;
    this.sharing = sharing;
    this.place = place;
    forced = settings.get("dev.peer.algorithm").map(PeerTuning::parse).orElse(null);
    overlapSms = overlapSms(settings, ranks);
    // One shot saves a crossing of the links and sends (n - 1) (n - 2) / n buffers more. Until it
    // has been measured: where the two are equal if a crossing takes 1.4 us and a link 350 GB/s.
    oneShotMost = ranks <= 2 ? 640 << 10 : 490_000L * ranks / ((ranks - 1) * (ranks - 2));
  }

  private static int overlapSms(Settings settings, int ranks) {
    String text = settings.get("overlap.sms").orElse(null);
    try {
      int usual = ranks < MANY_RANKS ? OVERLAP_SMS : 2 * OVERLAP_SMS;
      int sms = text == null ? usual : Integer.parseInt(text);
      if (sms >= 1 && sms <= PeerLayout.MAX_BLOCKS) {
        return sms;
      }
    } catch (NumberFormatException e) {
      // said below
    }
    throw new IllegalArgumentException(
        "not a number of SMs: gradientsync.overlap.sms="
            + text
            + "; give 1 to "
            + PeerLayout.MAX_BLOCKS);
  }

  private static PeerAlgorithm parse(String algorithm) {
    Optional<PeerAlgorithm> found =
        Arrays.stream(PeerAlgorithm.values())
            .filter(w -> CHOICES.contains(w) && w.text().equals(algorithm.toLowerCase(Locale.ROOT)))
            .findFirst();
    return found.orElseThrow(
        () ->
            new IllegalArgumentException(
                "no such algorithm: gradientsync.dev.peer.algorithm="
                    + algorithm
                    + "; give one_shot, two_shot or stream"));
  }

  /** Takes what was measured here instead of the built-in numbers, in bytes. */
  void set(long newOneShotMost, long newTwoShotMost) {
    oneShotMost = newOneShotMost;
    twoShotMost = newTwoShotMost;
  }

  /** A number for what was asked for by settings. */
  int choice() {
    return overlapSms * (PeerAlgorithm.values().length + 1)
        + (forced == null ? 0 : forced.ordinal() + 1);
  }

  boolean isForced() {
    return forced != null;
  }

  PeerAlgorithm algorithm(long bytes) {
    PeerAlgorithm algorithm = forced;
    if (algorithm == null) {
      algorithm =
          bytes <= oneShotMost
              ? PeerAlgorithm.ONE_SHOT
              : bytes <= twoShotMost ? PeerAlgorithm.TWO_SHOT : PeerAlgorithm.STREAM;
    }
    if (algorithm == PeerAlgorithm.ONE_SHOT && bytes > layout.mostBytes(algorithm)) {
      algorithm = PeerAlgorithm.TWO_SHOT;
    }
    if (algorithm == PeerAlgorithm.TWO_SHOT && bytes > layout.mostBytes(algorithm)) {
      algorithm = PeerAlgorithm.STREAM;
    }
    return algorithm;
  }

  PeerSharing sharing() {
    return sharing;
  }

  /** Whether kernels may be launched of which an SM holds one block only. */
  boolean takesWholeSms() {
    return PeerBudget.takesWhole(place);
  }

  /**
   * How many blocks a launch may have.
   *
   * @param perSm how many one of the GPU's SMs holds at once
   * @param ofGpu how many of those the GPU has
   * @param algorithm how the elements go; those that are converted take twice the SMs, for half the
   *     time
   * @param overlapped whether most of the GPU is to be left to other work
   */
  int mostBlocks(int perSm, int ofGpu, PeerAlgorithm algorithm, boolean overlapped) {
    int sms = sharing.part(ofGpu);
    int most = PeerBudget.blocks(place, perSm, sms);
    if (algorithm.isChunked()) {
      most = Math.min(most, sms); // that is enough for the links
    }
    int taken = algorithm == PeerAlgorithm.STAGED ? 2 * overlapSms : overlapSms;
    taken = Math.min(taken, sms * 3 / 8); // measured: more is no faster
    return overlapped ? Math.min(most, perSm * taken) : most;
  }

  @Override
  public String toString() {
    return forced != null
        ? forced.text() + " always"
        : "one_shot to " + oneShotMost + " bytes, two_shot to " + twoShotMost + ", then stream";
  }
}
