package org.gradientsync.elastic;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.core.backend.HostBuffers;

/** A copy of the whole state of a training, in host memory. For one thread. */
final class CommittedState {
  private static final int PIECE_BYTES = 16 << 20;

  private final ElasticLoop loop;
  private final List<ByteBuffer> copies = new ArrayList<>();
  private byte[] rest = {};
  private long step = ElasticTraining.NOTHING;

  CommittedState(ElasticLoop loop) {
    this.loop = loop;
  }

  /** The step whose state it is, or {@link ElasticTraining#NOTHING}. */
  long step() {
    return step;
  }

  /** What {@link ElasticLoop#save} has returned. */
  byte[] rest() {
    return rest;
  }

  /** The number of buffers of the state, of their elements, and a digest of types and counts. */
  long[] shape() {
    long elements = 0;
    long digest = 1;
    List<? extends DeviceBuffer> state = loop.state();
    for (DeviceBuffer buffer : state) {
      elements += buffer.count();
      digest = 31 * (31 * digest + buffer.count()) + buffer.type().ordinal();
    }
    return new long[] {state.size(), elements, digest};
  }

  /** The state in parts that fit in a message. */
  List<DeviceBuffer> pieces() {
    List<DeviceBuffer> pieces = new ArrayList<>();
    for (DeviceBuffer buffer : loop.state()) {
      long most = PIECE_BYTES / buffer.type().sizeInBytes();
      for (long from = 0; from < buffer.count(); from += most) {
        pieces.add(buffer.slice(from, Math.min(most, buffer.count() - from)));
      }
    }
    return pieces;
  }

  /** Copies the state. */
  void take(long newStep) {
    List<DeviceBuffer> pieces = pieces();
    for (int i = 0; i < pieces.size(); i++) {
      if (i == copies.size()) {
        copies.add(HostBuffers.allocate((int) pieces.get(i).sizeInBytes()));
      }
      pieces.get(i).copyTo(copies.get(i));
    }
    rest = loop.save();
    step = newStep;
  }

  /** Gives the copy back to the training. */
  void restore() {
    List<DeviceBuffer> pieces = pieces();
    for (int i = 0; i < pieces.size(); i++) {
      pieces.get(i).copyFrom(copies.get(i));
    }
  }
}
