package org.gradientsync.tools.perf;

import java.util.List;
import java.util.Locale;
import java.util.Optional;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;
import org.gradientsync.spi.CollectiveCall.Kind;

/**
 * A collective that is measured, with the sizes and bandwidths that nccl-tests gives it.
 *
 * @param name on the command line and in tables
 * @param kind what sizes and bandwidths follow from
 * @param group the number of calls that are grouped as one, unless there are fewer elements
 * @param call makes one call
 */
record PerfCollective(String name, Kind kind, int group, Call call) {
  /** Makes a call on all ranks. */
  @FunctionalInterface
  interface Call {
    void make(GradientSync sync, DeviceBuffer in, DeviceBuffer out, ReduceOp op);
  }

  /** The rank from which a broadcast goes, and to which a reduction goes. */
  static final int ROOT = 0;

  /** NCCL's tests let each rank's part begin at a multiple of this. */
  private static final int ALIGNMENT = 16;

  private static final Call ALL_REDUCE = (sync, in, out, op) -> sync.allReduce(out, op);

  /** All that are measured, in the order of tables. */
  static final List<PerfCollective> ALL =
      List.of(
          of(Kind.ALL_REDUCE, ALL_REDUCE),
          of(Kind.ALL_GATHER, (sync, in, out, op) -> sync.allGather(in, out)),
          of(Kind.REDUCE_SCATTER, (sync, in, out, op) -> sync.reduceScatter(in, out, op)),
          of(Kind.BROADCAST, (sync, in, out, op) -> sync.broadcast(out, ROOT)),
          of(Kind.REDUCE, (sync, in, out, op) -> sync.reduce(isRoot(sync) ? out : in, op, ROOT)),
          of(Kind.ALL_TO_ALL, (sync, in, out, op) -> sync.allToAll(in, out)),
          new PerfCollective("send-receive", Kind.SEND, 1, PerfCollective::passOn),
          new PerfCollective("grouped", Kind.ALL_REDUCE, 64, ALL_REDUCE));

  private static PerfCollective of(Kind kind, Call call) {
    return new PerfCollective(name(kind), kind, 1, call);
  }

  private static String name(Kind kind) {
    return kind.name().toLowerCase(Locale.ROOT).replace('_', '-');
  }

  static PerfCollective of(Kind kind) {
    return of(name(kind)).orElseThrow();
  }

  static Optional<PerfCollective> of(String name) {
    return ALL.stream().filter(one -> one.name.equalsIgnoreCase(name)).findFirst();
  }

  static boolean isRoot(GradientSync sync) {
    return sync.rank() == ROOT;
  }

  /** The rank from which a rank receives that sends to the next one. */
  static int previous(GradientSync sync) {
    return (sync.rank() + sync.size() - 1) % sync.size();
  }

  /** Sends to the next rank. A send may wait for its receiver, so ranks take turns. */
  private static void passOn(GradientSync sync, DeviceBuffer in, DeviceBuffer out, ReduceOp op) {
    int next = (sync.rank() + 1) % sync.size();
    if (sync.rank() % 2 == 0) {
      sync.send(in, next);
      sync.receive(out, previous(sync));
    } else {
      sync.receive(out, previous(sync));
      sync.send(in, next);
    }
  }

  /** Returns the number of parts of the larger buffer, whose size the table has. */
  int parts(int ranks) {
    return Math.max(kind.inputBlocks(ranks), kind.outputBlocks(ranks));
  }

  private boolean hasParts() {
    return parts(2) > 1;
  }

  /** Returns the elements of a part, at least one, if the larger buffer has a number of bytes. */
  long count(long bytes, DataType type, int ranks) {
    long elements = bytes / type.sizeInBytes();
    if (parts(ranks) == 1) {
      return elements;
    }
    long part = elements / parts(ranks);
    long aligned = part & -(ALIGNMENT / type.sizeInBytes());
    return Math.max(1, aligned > 0 ? aligned : part);
  }

  /** Returns the bandwidth of the busiest link, divided by the size over the time. */
  double busFactor(int ranks) {
    double others = (double) (ranks - 1) / ranks;
    return kind == Kind.ALL_REDUCE ? 2 * others : hasParts() ? others : 1;
  }

  boolean reduces() {
    return kind.reduces();
  }

  /** Returns the root as the table has it: -1 if there is none. */
  int root() {
    return kind.hasRoot() ? ROOT : -1;
  }

  /** Returns whether the output may be, or hold, the input. */
  boolean hasInPlace() {
    return !kind.isMessage() && (kind.inputBlocks(2) == 1 || kind.outputBlocks(2) == 1);
  }

  /** Returns whether a rank copies its input first, as the library calls for it in place only. */
  boolean copiesFirst(int rank) {
    return !kind.isMessage() && !hasParts() && (!kind.hasRoot() || rank == ROOT);
  }

  /** Returns whether the hosts of the ranks meet only once, so that a CUDA graph can hold it. */
  boolean capturable() {
    return !kind.isMessage();
  }

  int fewestRanks() {
    return kind.isMessage() ? 2 : 1;
  }

  @Override
  public String toString() {
    return name;
  }
}
