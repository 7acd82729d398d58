package org.gradientsync.cuda;

import java.util.Locale;
import java.util.Optional;
import org.gradientsync.spi.Settings;

/** Where one way ends and the next begins, and how much of a GPU they may take. */
final class PeerTuning {
  private final PeerLayout layout;
  private final PeerWay forced;
  private final long oneShotMost;
  private final long twoShotMost;
  private final int part;

  /**
   * The built-in numbers.
   *
   * @param part a launch takes at most one part of this many of what the GPU holds at once, so that
   *     launches of several syncs fit beside each other
   */
  PeerTuning(PeerLayout layout, int ranks, int part, Settings settings) {
    this.layout = layout;
    this.part = part;
    Optional<String> way = settings.get("peer.way");
    try {
      forced = way.map(w -> PeerWay.valueOf(w.toUpperCase(Locale.ROOT))).orElse(null);
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(
          "no such way: gradientsync.peer.way=" + way.get() + "; give one_shot, two_shot or stream",
          e);
    }
    // One shot saves a crossing of the links, 1.4 us, and sends (n - 1) (n - 2) / n buffers more.
    oneShotMost = ranks <= 2 ? 640 << 10 : 490_000L * ranks / ((ranks - 1) * (ranks - 2));
    twoShotMost = 8 << 20;
  }

  PeerWay way(long bytes) {
    PeerWay way =
        forced != null
            ? forced
            : bytes <= oneShotMost
                ? PeerWay.ONE_SHOT
                : bytes <= twoShotMost ? PeerWay.TWO_SHOT : PeerWay.STREAM;
    if (way == PeerWay.ONE_SHOT && bytes > layout.mostBytes(way)) {
      way = PeerWay.TWO_SHOT;
    }
    if (way == PeerWay.TWO_SHOT && bytes > layout.mostBytes(way)) {
      way = PeerWay.STREAM;
    }
    return way;
  }

  int mostBlocks(int fitting) {
    return Math.max(1, fitting / part);
  }
}
