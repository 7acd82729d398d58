package org.gradientsync.hooks;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.EOFException;
import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Supplier;
import org.gradientsync.BucketHook;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets;

/**
 * A hook that sends compressed gradients, and keeps for the next step what it has not sent (error
 * feedback). A parameter may have up to 2^31 - 9 elements.
 *
 * <p>A step in which the average of a parameter is not finite leaves that parameter's state as it
 * was, so that a {@link org.gradientsync.LossScaler} can skip the step. What {@link
 * GradientBuckets.Missing#SKIP} withholds from the update is lost, and so is what was sent in a
 * step that {@link GradientBuckets#discard} ends.
 *
 * <p>Set the options before the first step, alike on all ranks. Not thread-safe otherwise than
 * {@link BucketHook} says.
 */
public abstract sealed class Compression implements BucketHook permits PowerSgd, TopK {
  static final String ERROR = "error of ";
  private static final int MOST_ARRAYS = 1 << 24;

  /** An array grows from here on as it is read, because a damaged length may be any. */
  private static final int FIRST_ELEMENTS = 1 << 16;

  private final Map<String, double[]> state = new TreeMap<>();
  private final Map<String, Scratch> scratch = new HashMap<>();
  private boolean feedback = true;
  private long warmUp;
  private long steps; // that have begun
  private long bytes;

  private record Scratch(FullBucket bucket, DeviceBuffer memory) {}

  Compression() {}

  /**
   * Sets for how many steps gradients are averaged exactly before compression begins, because the
   * first gradients are large and change quickly.
   *
   * @param newSteps 0 or more; 0 if not set
   * @return this hook
   * @throws IllegalArgumentException if it is negative
   */
  public Compression warmUp(long newSteps) {
    if (newSteps < 0) {
      throw new IllegalArgumentException("warm-up must be 0 steps or more: steps=" + newSteps);
    }
    warmUp = newSteps;
    return this;
  }

  /**
   * Chooses whether to keep what was not sent and add it to the next step's gradient. Without it
   * training may stay far from the optimum; it is there for comparison.
   *
   * @param newFeedback true to keep it; true if not set
   * @return this hook
   */
  public Compression errorFeedback(boolean newFeedback) {
    feedback = newFeedback;
    return this;
  }

  /**
   * {@return the price in bytes, 0 or more: what this rank has given to collectives since this
   * object was created, in buffers that it averaged, and in its own block where all ranks gather
   * blocks} Call it between steps.
   */
  public final long bytes() {
    return bytes;
  }

  @Override
  public final void average(FullBucket bucket) {
    if (bucket.index() == 0) {
      steps++;
    }
    if (steps <= warmUp) {
      exchange(bucket, bucket.gradients());
    } else {
      compress(bucket);
    }
  }

  /** Replaces the gradients. */
  abstract void compress(FullBucket bucket);

  /** The name and the options that a state depends on. */
  abstract String kind();

  /** Adds what is not in {@link #state} to what is saved. */
  void addState(Map<String, Supplier<double[]>> entries) {
    // by default everything is there
  }

  /** Multiplies the errors that are not in {@link #state}. */
  void rescaleErrors(double factor) {
    // by default all are there
  }

  /** Called when {@link #load} has replaced the state. */
  void loaded() {
    // by default there is no other copy of it
  }

  final long steps() {
    return steps;
  }

  final boolean hasFeedback() {
    return feedback;
  }

  /** Averages a buffer. */
  final void exchange(FullBucket bucket, DeviceBuffer buffer) {
    bucket.sync().average(buffer);
    bytes += buffer.sizeInBytes();
  }

  /** Gathers a buffer of each rank. */
  final void exchange(FullBucket bucket, DeviceBuffer own, DeviceBuffer all) {
    bucket.sync().allGather(own, all);
    bytes += own.sizeInBytes();
  }

  /** A buffer of a bucket for each use of it, allocated by the first call. */
  final DeviceBuffer scratch(FullBucket bucket, String use, DataType type, long count) {
    String key = use + bucket.index();
    Scratch known = scratch.get(key);
    if (known == null || known.bucket != bucket) {
      known = new Scratch(bucket, bucket.allocate(type, count));
      scratch.put(key, known);
    }
    return known.memory;
  }

  /** The type in which parts of gradients travel: 16 bits would be too coarse. */
  static DataType wide(FullBucket bucket) {
    DataType type = bucket.gradients().type();
    return type == DataType.FLOAT64 ? type : DataType.FLOAT32;
  }

  /** A gradient, with what was not sent before. */
  final double[] withError(Part part) {
    double[] values = Elements.read(part.gradient());
    if (feedback) {
      double[] error = state(ERROR, part, values.length);
      for (int i = 0; i < values.length; i++) {
        values[i] += error[i];
      }
    }
    return values;
  }

  /** Keeps what was not sent. */
  final void keepError(Part part, double[] error) {
    if (feedback) {
      keep(ERROR, part, error);
    }
  }

  /** What was kept for a parameter; at first zeros. */
  final double[] state(String name, Part part, int length) {
    String key = name + part.parameter().name();
    double[] values = state.get(key);
    if (values == null) {
      values = new double[length];
      state.put(key, values);
    }
    if (values.length != length) {
      throw new IllegalStateException(
          ("the hook's state is of another model: parameter=%s, elements=%s, expected=%s;"
                  + " load the state of this model")
              .formatted(part.parameter(), values.length, length));
    }
    return values;
  }

  /** Returns what was kept for a parameter, and keeps it no longer; null if nothing was. */
  final double[] take(String name, Part part, int length) {
    String key = name + part.parameter().name();
    double[] values = state.containsKey(key) ? state(name, part, length) : null;
    state.remove(key);
    return values;
  }

  final void keep(String name, Part part, double[] values) {
    state.put(name + part.parameter().name(), values);
  }

  /** Multiplies what has not been sent yet. */
  @Override
  public final void rescale(double factor) {
    state.forEach(
        (name, values) -> {
          if (name.startsWith(ERROR)) {
            Arrays.setAll(values, i -> values[i] * factor);
          }
        });
    rescaleErrors(factor);
  }

  /**
   * Writes the number of steps, what has not been sent yet, and what a hook keeps besides. Ranks
   * have different states: each saves its own.
   */
  @Override
  public final void save(DataOutput out) throws IOException {
    Map<String, Supplier<double[]>> entries = new TreeMap<>();
    state.forEach((name, values) -> entries.put(name, () -> values));
    addState(entries);
    out.writeUTF(kind());
    out.writeLong(steps);
    out.writeInt(entries.size());
    for (Map.Entry<String, Supplier<double[]>> entry : entries.entrySet()) {
      double[] values = entry.getValue().get();
      out.writeUTF(entry.getKey());
      out.writeInt(values.length);
      for (double value : values) {
        out.writeDouble(value);
      }
    }
  }

  /**
   * Reads what {@link #save} has written, on the same rank of as many, by a hook with the same
   * options.
   *
   * @throws IOException if it cannot be read, or is the state of another hook; nothing is changed
   */
  @Override
  public final void load(DataInput in) throws IOException {
    try {
      read(in);
    } catch (EOFException e) {
      throw new EOFException("state is cut off: hook=" + kind());
    }
  }

  private void read(DataInput in) throws IOException {
    String found = in.readUTF();
    if (!found.equals(kind())) {
      throw new IOException(
          "state is another hook's: hook=%s, expected=%s; give the options that it was written with"
              .formatted(found, kind()));
    }
    long done = in.readLong();
    int arrays = in.readInt();
    if (arrays < 0 || arrays > MOST_ARRAYS || done < 0) {
      throw new IOException("state is damaged: steps=" + done + ", arrays=" + arrays);
    }
    Map<String, double[]> read = new HashMap<>();
    for (int i = 0; i < arrays; i++) {
      String name = in.readUTF();
      int length = in.readInt();
      if (length < 0) {
        throw new IOException("state is damaged: array=" + name + ", elements=" + length);
      }
      double[] values = new double[Math.min(length, FIRST_ELEMENTS)];
      for (int k = 0; k < length; k++) {
        if (k == values.length) {
          values = Arrays.copyOf(values, (int) Math.min(length, 2L * k));
        }
        values[k] = in.readDouble();
      }
      read.put(name, values);
    }
    steps = done;
    state.clear();
    state.putAll(read);
    loaded();
  }

  @Override
  public final String toString() {
    return kind();
  }
}
