package org.gradientsync.cuda.internal.peer;

/** The same with blocks that go in lines. */
class PeerSmallBlocksOnGpu extends PeerLargeBlocksOnGpu {
  @Override
  String algorithm() {
    return "one_shot";
  }
}
