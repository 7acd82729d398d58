package org.gradientsync.cuda.internal.peer;

/** The same with blocks that go in lines. */
class PeerPushOnGpu extends PeerPullOnGpu {
  @Override
  String algorithm() {
    return "one_shot";
  }
}
