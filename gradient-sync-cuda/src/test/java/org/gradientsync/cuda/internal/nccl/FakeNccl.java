package org.gradientsync.cuda.internal.nccl;

import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

/** A fake library for one rank. It writes down the calls, and moves nothing. */
final class FakeNccl implements Nccl {
  static final int VERSION = 22105;

  /** What was called, with elements and operations as the codes of nccl.h. */
  final List<String> calls = new CopyOnWriteArrayList<>();

  /** The function that fails, and its code. */
  volatile String failing = "";

  volatile int code;

  /** What {@link #asyncError} finds. */
  volatile int failure;

  volatile int version = VERSION;

  /** Whether {@link #init} waits until {@link #abort} or the end of the test. */
  volatile boolean hangs;

  private final CountDownLatch end = new CountDownLatch(1);
  private final AtomicInteger ids = new AtomicInteger(7);

  private int call(String function, String arguments) {
    calls.add(function + "(" + arguments + ")");
    return function.equals(failing) ? code : NcclResult.SUCCESS;
  }

  /** Ends what hangs. */
  void release() {
    end.countDown();
  }

  @Override
  public String library() {
    return "/opt/libnccl.so.2";
  }

  @Override
  public int version() {
    return version;
  }

  @Override
  public int uniqueId(byte[] id) {
    Arrays.fill(id, (byte) ids.getAndIncrement());
    return call("uniqueId", "");
  }

  @Override
  public int init(long[] comm, int ranks, byte[] id, int rank) {
    int result = call("init", ranks + " ranks, id " + id[0] + ", rank " + rank);
    if (hangs) {
      try {
        end.await();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
    comm[0] = 100 + rank;
    return result;
  }

  @Override
  public int allReduce(long in, long out, long count, int type, int op, long comm, long stream) {
    return call("allReduce", places(in, out) + tail(count, type, "op " + op, comm, stream));
  }

  @Override
  public int broadcast(long in, long out, long count, int type, int root, long comm, long stream) {
    return call("broadcast", places(in, out) + tail(count, type, "root " + root, comm, stream));
  }

  @Override
  public int reduce(
      long in, long out, long count, int type, int op, int root, long comm, long stream) {
    String what = "op " + op + ", root " + root;
    return call("reduce", places(in, out) + tail(count, type, what, comm, stream));
  }

  @Override
  public int allGather(long in, long out, long count, int type, long comm, long stream) {
    return call("allGather", places(in, out) + tail(count, type, "", comm, stream));
  }

  @Override
  public int reduceScatter(
      long in, long out, long count, int type, int op, long comm, long stream) {
    return call("reduceScatter", places(in, out) + tail(count, type, "op " + op, comm, stream));
  }

  @Override
  public int send(long in, long count, int type, int peer, long comm, long stream) {
    return call("send", "to " + peer + " from " + in + tail(count, type, "", comm, stream));
  }

  @Override
  public int receive(long out, long count, int type, int peer, long comm, long stream) {
    return call("receive", "from " + peer + " to " + out + tail(count, type, "", comm, stream));
  }

  private static String places(long in, long out) {
    return in == out ? "in place" : out == 0 ? "no output" : out - in + " behind";
  }

  private static String tail(long count, int type, String what, long comm, long stream) {
    return ", count "
        + count
        + ", type "
        + type
        + (what.isEmpty() ? "" : ", " + what)
        + ", comm "
        + comm
        + ", stream "
        + stream;
  }

  @Override
  public int groupStart() {
    return call("groupStart", "");
  }

  @Override
  public int groupEnd() {
    return call("groupEnd", "");
  }

  @Override
  public int asyncError(long comm, int[] error) {
    error[0] = failure;
    return NcclResult.SUCCESS;
  }

  @Override
  public int abort(long comm) {
    return call("abort", "" + comm);
  }

  @Override
  public int destroy(long comm) {
    return call("destroy", "" + comm);
  }

  @Override
  public String lastError() {
    return failing.isEmpty() && failure == 0 ? "" : "\nsocket closed\n";
  }
}
