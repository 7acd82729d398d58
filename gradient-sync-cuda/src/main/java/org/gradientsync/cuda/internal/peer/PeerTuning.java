package org.gradientsync.cuda.internal.peer;

import java.util.Arrays;
import java.util.EnumSet;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import org.gradientsync.spi.Settings;

/** The largest size for each algorithm, and how much of a GPU the algorithms may take. */
final class PeerTuning {
  private static final Set<PeerAlgorithm> CHOICES =
      EnumSet.of(PeerAlgorithm.ONE_SHOT, PeerAlgorithm.TWO_SHOT, PeerAlgorithm.STREAM);
  private static final int OVERLAP_SMS = 24;
  private static final int MANY_RANKS = 5; // measured: 48 for 2 ranks, 24 for 4, 48 for 8

  private final PeerLayout layout;
  private final int place;
  private final PeerAlgorithm forced;
  private final int overlapSms;
  private final PeerSharing sharing;
  private long oneShotMost;
  private long twoShotMost = 8 << 20;

  /**
   * Starts with the built-in sizes.
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
    // Compared with two_shot, one_shot saves a crossing of the links but sends (n - 1) (n - 2) / n
    // more buffers. Until it is measured, assume the size at which both take the same time if a
    // crossing takes 1.4 us and the links carry 350 GB/s.
    oneShotMost = ranks <= 2 ? 640 << 10 : 490_000L * ranks / ((ranks - 1) * (ranks - 2));
  }

  private static int overlapSms(Settings settings, int ranks) {
    String text = settings.get("overlap.sms").orElse(null);
    try {
      int usual = ranks == 2 || ranks >= MANY_RANKS ? 2 * OVERLAP_SMS : OVERLAP_SMS;
      int sms = text == null ? usual : Integer.parseInt(text);
      if (sms >= 1 && sms <= PeerLayout.MAX_BLOCKS) {
        return sms;
      }
    } catch (NumberFormatException e) {
      // reported below
    }
    throw new IllegalArgumentException(
        "not a number of SMs: gradientsync.overlap.sms=%s; give 1 to %s"
            .formatted(text, PeerLayout.MAX_BLOCKS));
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

  /** Replaces the built-in sizes by measured ones, in bytes. */
  void set(long newOneShotMost, long newTwoShotMost) {
    oneShotMost = newOneShotMost;
    twoShotMost = newTwoShotMost;
  }

  /** The settings as one number, which the ranks compare. */
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

  /**
   * Whether blocks of a collective go in lines, rather than in chunks or straight into the outputs.
   */
  boolean pushes(long bytes) {
    return bytes <= layout.mostBytes(PeerAlgorithm.ONE_SHOT) && forced != PeerAlgorithm.STREAM;
  }

  /** As above, for a broadcast. */
  boolean pushesBroadcast(long bytes) {
    return bytes <= layout.mostBytes(PeerAlgorithm.BROADCAST) && forced != PeerAlgorithm.STREAM;
  }

  PeerSharing sharing() {
    return sharing;
  }

  /** Whether a launch may have blocks that fill an SM each. */
  boolean takesWholeSms() {
    return PeerBudget.takesWhole(place);
  }

  /**
   * The number of blocks that a launch may have.
   *
   * @param perSm the number of blocks that an SM holds at once
   * @param ofGpu the number of SMs of the GPU
   * @param algorithm the algorithm; {@link PeerAlgorithm#STAGED} takes twice the SMs, for half the
   *     time
   * @param sparing whether to leave most of the GPU to other work
   */
  int mostBlocks(int perSm, int ofGpu, PeerAlgorithm algorithm, boolean sparing) {
    int sms = sharing.part(ofGpu);
    int most = PeerBudget.blocks(place, perSm, sms);
    if (algorithm.isChunked()) {
      most = Math.min(most, sms); // one per SM is enough for the links
    }
    int taken = algorithm == PeerAlgorithm.STAGED ? 2 * overlapSms : overlapSms;
    taken = Math.min(taken, sms * 3 / 8); // measured: more is no faster
    return sparing ? Math.min(most, perSm * taken) : most;
  }

  /** As above, for a kernel that writes into other ranks' memory without staging. */
  int mostBlocks(int perSm, int ofGpu, boolean sparing) {
    int sms = sharing.part(ofGpu);
    int most = PeerBudget.blocks(place, perSm, sms);
    return sparing ? Math.min(most, perSm * Math.min(overlapSms, sms * 3 / 8)) : most;
  }

  @Override
  public String toString() {
    return forced != null
        ? forced.text() + " always"
        : "one_shot to " + oneShotMost + " bytes, two_shot to " + twoShotMost + ", then stream";
  }
}
