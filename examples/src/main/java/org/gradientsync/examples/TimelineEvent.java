package org.gradientsync.examples;

import java.nio.ByteBuffer;

/**
 * What one of a rank's streams did for a while. Times are in milliseconds.
 *
 * @param rank whose
 * @param kind of work
 * @param number of the layer or the bucket; 0 for a forward pass
 * @param step of the training
 * @param start since a time that is the same for all events
 * @param duration 0 or more
 * @param bytes of the bucket
 * @param queued from the bucket's being full to its start
 * @param exposed what the stream that computes had to wait for the bucket
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
  /** The bytes of an event that is sent. */
  static final int BYTES = 3 * Integer.BYTES + 2 * Long.BYTES + 4 * Double.BYTES;

  /** Kinds of work. */
  enum Kind {
    FORWARD("forward"),
    BACKWARD("backward"),
    UPDATE("update"),
    AVERAGE("average");

    final String text;

    Kind(String text) {
      this.text = text;
    }
  }

  /** On the stream that averages, not the one that computes. */
  boolean isAverage() {
    return kind == Kind.AVERAGE;
  }

  /** For a reader: {@code backward layer2}. */
  String name() {
    return switch (kind) {
      case FORWARD -> kind.text;
      case BACKWARD, UPDATE -> kind.text + " layer" + number;
      case AVERAGE -> kind.text + " bucket" + number;
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
