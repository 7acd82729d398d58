package org.gradientsync.test.faults;

import java.nio.Buffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;
import java.time.Duration;
import org.gradientsync.Communicator;
import org.gradientsync.DataType;
import org.gradientsync.ReduceOp;

/**
 * Wraps a communicator and injects the planned faults into its collectives. It passes on messages
 * between two ranks and {@link #split} without counting them. The communicators that a split
 * creates share this one's counts.
 */
final class FaultyCommunicator implements Communicator {
  private final Communicator communicator;
  private final Runnable turn;
  private final RankCalls calls;

  FaultyCommunicator(Communicator communicator, Runnable turn, RankCalls calls) {
    this.communicator = communicator;
    this.turn = turn;
    this.calls = calls;
  }

  @Override
  public int rank() {
    return communicator.rank();
  }

  @Override
  public int size() {
    return communicator.size();
  }

  @Override
  public int localRank() {
    return communicator.localRank();
  }

  @Override
  public int localSize() {
    return communicator.localSize();
  }

  @Override
  public int nodeCount() {
    return communicator.nodeCount();
  }

  @Override
  public Duration timeout() {
    return communicator.timeout();
  }

  @Override
  public void barrier() {
    call(
        communicator::barrier,
        () -> communicator.allReduce(IntBuffer.allocate(1), DataType.INT32, ReduceOp.SUM));
  }

  @Override
  public void allReduce(Buffer data, DataType type, ReduceOp op) {
    call(
        () -> communicator.allReduce(data, type, op),
        () -> communicator.allReduce(less(data, perElement(data, type)), type, op));
  }

  @Override
  public void broadcast(Buffer data, int root) {
    call(
        () -> communicator.broadcast(data, root),
        () -> communicator.broadcast(less(data, 1), root));
  }

  @Override
  public void allGather(Buffer send, Buffer receive) {
    call(
        () -> communicator.allGather(send, receive),
        () -> communicator.allGather(less(send, 1), less(receive, size())));
  }

  @Override
  public void reduceScatter(Buffer send, Buffer receive, DataType type, ReduceOp op) {
    call(
        () -> communicator.reduceScatter(send, receive, type, op),
        () -> {
          int one = perElement(receive, type);
          communicator.reduceScatter(less(send, one * size()), less(receive, one), type, op);
        });
  }

  @Override
  public void gather(Buffer send, Buffer receive, int root) {
    call(
        () -> communicator.gather(send, receive, root),
        () ->
            communicator.gather(
                less(send, 1), root == rank() ? less(receive, size()) : receive, root));
  }

  @Override
  public void scatter(Buffer send, Buffer receive, int root) {
    call(
        () -> communicator.scatter(send, receive, root),
        () ->
            communicator.scatter(
                root == rank() ? less(send, size()) : send, less(receive, 1), root));
  }

  @Override
  public void send(Buffer data, int destination, int tag) {
    communicator.send(data, destination, tag);
  }

  @Override
  public void receive(Buffer data, int source, int tag) {
    communicator.receive(data, source, tag);
  }

  @Override
  public void sendReceive(Buffer send, int destination, Buffer receive, int source, int tag) {
    communicator.sendReceive(send, destination, receive, source, tag);
  }

  @Override
  public Communicator split(int color, int key) {
    Communicator part = communicator.split(color, key);
    return part == null ? null : new FaultyCommunicator(part, () -> {}, calls);
  }

  @Override
  public void close() {
    communicator.close();
  }

  private void call(Runnable call, Runnable mismatched) {
    turn.run();
    switch (calls.call()) {
      case MAKE -> call.run();
      case MISMATCH -> mismatched.run();
      case DROP -> {
        // the others wait for this rank, or meet its next call
      }
    }
  }

  private static int perElement(Buffer data, DataType type) {
    int size = 1;
    if (data instanceof ShortBuffer) {
      size = Short.BYTES;
    } else if (data instanceof IntBuffer || data instanceof FloatBuffer) {
      size = Integer.BYTES;
    } else if (data instanceof LongBuffer || data instanceof DoubleBuffer) {
      size = Long.BYTES;
    }
    return type.sizeInBytes() / size; // an element of a ByteBuffer has several bytes
  }

  /** Returns all but the last elements. */
  private static Buffer less(Buffer data, int elements) {
    if (data.remaining() < elements) {
      throw RankCalls.nothingLess(data);
    }
    return data.slice(data.position(), data.remaining() - elements);
  }
}
