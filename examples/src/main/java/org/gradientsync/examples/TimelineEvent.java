package org.gradientsync.examples;

import java.nio.ByteBuffer;

/**
 * A piece of work on one of a rank's streams. Times are in milliseconds.
 *
 * @param rank the rank
 * @param kind the kind of work
 * @param number the number of the layer, bucket or shard; 0 for a forward pass
 * @param step the step of the training
 * @param start the start time, with the same origin for all events
 * @param duration 0 or more
 * @param bytes the size of the bucket
 * @param queued the time from when the bucket was full to the start
 * @param exposed how long the compute stream waited for the bucket
 */
record TimelineEvent(
    int rank,
    Kind kind,
    int number,
    long step,
    double start,
    double duration,
    long bytes,
    double queued,
    double exposed) {
  /** The bytes of a serialized event. */
  static final int BYTES = 3 * Integer.BYTES + 2 * Long.BYTES + 4 * Double.BYTES;

  enum Kind {
    FORWARD("forward", ""),
    BACKWARD("backward", "layer"),
    UPDATE("update", "layer"),
    AVERAGE("average", "bucket"),
    SHARD("update shard", "shard");

    final String text;
    final String counted; // what the number of an event counts, or nothing

    Kind(String text, String counted) {
      this.text = text;
      this.counted = counted;
    }
  }

  /** Returns whether it ran on the communication stream, not the compute stream. */
  boolean isAverage() {
    return kind == Kind.AVERAGE;
  }

  /** Returns a name for users, for example {@code backward layer2}. */
  String name() {
    return switch (kind) {
      case FORWARD -> kind.text;
      case BACKWARD, UPDATE, AVERAGE -> kind.text + " " + kind.counted + number;
      case SHARD -> kind.text + number;
    };
  }

  double end() {
    return start + duration;
  }

  TimelineEvent earlierBy(double milliseconds) {
    return new TimelineEvent(
        rank, kind, number, step, start - milliseconds, duration, bytes, queued, exposed);
  }

  void put(ByteBuffer target) {
    target.putInt(rank).putInt(kind.ordinal()).putInt(number).putLong(step).putLong(bytes);
    target.putDouble(start).putDouble(duration).putDouble(queued).putDouble(exposed);
  }

  static TimelineEvent get(ByteBuffer source) {
    int rank = source.getInt();
    Kind kind = Kind.values()[source.getInt()];
    int number = source.getInt();
    long step = source.getLong();
    long bytes = source.getLong();
    double start = source.getDouble();
    double duration = source.getDouble();
    double queued = source.getDouble();
    double exposed = source.getDouble();
    return new TimelineEvent(rank, kind, number, step, start, duration, bytes, queued, exposed);
  }
}
