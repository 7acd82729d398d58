package org.gradientsync.tools.perf;

import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;
import org.gradientsync.DataType;
import org.gradientsync.spi.CollectiveCall.Kind;

/** The collectives that are measured, with the sizes and bandwidths that nccl-tests gives them. */
enum PerfCollective {
  ALL_REDUCE(Kind.ALL_REDUCE),
  ALL_GATHER(Kind.ALL_GATHER),
  REDUCE_SCATTER(Kind.REDUCE_SCATTER),
  BROADCAST(Kind.BROADCAST),
  REDUCE(Kind.REDUCE),
  ALL_TO_ALL(Kind.ALL_TO_ALL),
  SEND_RECEIVE(Kind.SEND),
  GROUPED(Kind.ALL_REDUCE);

  /** The rank from which a broadcast goes, and to which a reduction goes. */
  static final int ROOT = 0;

  /** The number of all-reduces that a grouped call has, unless there are fewer elements. */
  static final int GROUP = 64;

  /** NCCL's tests let each rank's part begin at a multiple of this. */
  private static final int ALIGNMENT = 16;

  private final Kind kind;

  PerfCollective(Kind kind) {
    this.kind = kind;
  }

  static Optional<PerfCollective> of(String name) {
    return Arrays.stream(values()).filter(one -> one.toString().equalsIgnoreCase(name)).findFirst();
  }

  Kind kind() {
    return kind;
  }

  /** Returns the number of parts of the larger buffer, whose size the table has. */
  int parts(int ranks) {
    return Math.max(kind.inputBlocks(ranks), kind.outputBlocks(ranks));
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
    return switch (this) {
      case ALL_REDUCE, GROUPED -> 2.0 * (ranks - 1) / ranks;
      case ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL -> (double) (ranks - 1) / ranks;
      case BROADCAST, REDUCE, SEND_RECEIVE -> 1;
    };
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
    return this != ALL_TO_ALL && !kind.isMessage();
  }

  /** Returns whether the hosts of the ranks meet only once, so that a CUDA graph can hold it. */
  boolean capturable() {
    return !kind.isMessage();
  }

  int fewestRanks() {
    return kind.isMessage() ? 2 : 1;
  }

  /** Returns the name on the command line and in tables. */
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }
}
