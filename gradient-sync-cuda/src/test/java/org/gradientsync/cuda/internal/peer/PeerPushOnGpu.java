package org.gradientsync.cuda.internal.peer;

/** The same with blocks that go in lines. */
class PeerPushOnGpu extends PeerPullOnGpu {
  PeerPushOnGpu() {
    super("one_shot");
  }
}
