package org.gradientsync.examples;

import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.security.DigestOutputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.List;
import java.util.random.RandomGenerator;
import org.gradientsync.Communicator;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.spi.BackendDevice;

/**
 * Reads and writes the weights of a perceptron, as numbers and as bits. They are FLOAT32 or
 * FLOAT64.
 */
final class Weights {
  private static final int PIECE = 1 << 16; // elements to copy at a time

  private Weights() {}

  /**
   * Returns a random layer: normally distributed, with the variance 2 / inputs of He et al., which
   * preserves the signal's size through layers with ReLU.
   */
  static double[] random(long seed, MlpData.Purpose purpose, int number, Layer[] layers) {
    Layer layer = layers[number];
    RandomGenerator random = MlpData.random(seed, purpose, number);
    double deviation = Math.sqrt(2.0 / layer.inputs());
    double[] values = new double[layer.count()];
    for (int i = 0; i < values.length; i++) {
      values[i] = deviation * random.nextGaussian();
    }
    return values;
  }

  /**
   * Returns a student's initial layer: {@link #random}, but in the last layer the weights are
   * smaller and not negative. So all outputs have a slope at first, whatever the inputs. An output
   * that ReLU makes zero for all rows would learn nothing.
   */
  static double[] start(long seed, int number, Layer[] layers) {
    double[] values = random(seed, MlpData.Purpose.START, number, layers);
    if (number == layers.length - 1) {
      double factor = Math.sqrt(2.0 / layers[number].inputs());
      Arrays.setAll(values, i -> Math.abs(values[i]) * factor);
    }
    return values;
  }

  /** Sets a layer's weights, rounded to their type. */
  static void set(DeviceBuffer weights, double[] values) {
    if (weights.type() == DataType.FLOAT64) {
      weights.copyFrom(values);
      return;
    }
    float[] rounded = new float[values.length];
    for (int i = 0; i < rounded.length; i++) {
      rounded[i] = (float) values[i];
    }
    weights.copyFrom(rounded);
  }

  /** Waits for a layer's weights, and returns them. */
  static double[] get(DeviceBuffer weights) {
    double[] values = new double[Math.toIntExact(weights.count())];
    if (weights.type() == DataType.FLOAT64) {
      weights.copyTo(values);
      return values;
    }
    float[] floats = new float[values.length];
    weights.copyTo(floats);
    for (int i = 0; i < floats.length; i++) {
      values[i] = floats[i];
    }
    return values;
  }

  /** Waits for all work of the device. */
  static void await(List<DeviceBuffer> weights) {
    try (DeviceBuffer one = weights.get(0).slice(0, 1)) {
      get(one);
    }
  }

  /** Returns whether no weight is NaN or infinite. */
  static boolean areFinite(List<DeviceBuffer> weights) {
    return weights.stream()
        .allMatch(layer -> ((BackendDevice) layer.device()).firstNotFinite(layer) < 0);
  }

  /** Returns the first 64 bits of the SHA-256 of all weights' bits. */
  static long digest(List<DeviceBuffer> weights) {
    try {
      MessageDigest sha = MessageDigest.getInstance("SHA-256");
      write(weights, new DigestOutputStream(OutputStream.nullOutputStream(), sha));
      return ByteBuffer.wrap(sha.digest()).getLong();
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every JDK has SHA-256", e);
    } catch (IOException e) {
      throw new UncheckedIOException(e); // this stream does not write anywhere
    }
  }

  /** Writes the bits of all weights, layer by layer, big-endian. */
  static void write(List<DeviceBuffer> weights, OutputStream out) throws IOException {
    ByteBuffer here = ByteBuffer.allocateDirect(PIECE * Long.BYTES).order(ByteOrder.nativeOrder());
    byte[] there = new byte[PIECE * Long.BYTES];
    for (DeviceBuffer layer : weights) {
      for (long first = 0; first < layer.count(); first += PIECE) {
        try (DeviceBuffer piece = piece(layer, first)) {
          here.clear().limit((int) piece.sizeInBytes());
          piece.copyTo(here);
          swap(here, ByteBuffer.wrap(there), layer.type());
          out.write(there, 0, here.limit());
        }
      }
    }
  }

  /** Reads what {@link #write} has written. */
  static void read(List<DeviceBuffer> weights, DataInputStream in) throws IOException {
    ByteBuffer here = ByteBuffer.allocateDirect(PIECE * Long.BYTES).order(ByteOrder.nativeOrder());
    byte[] there = new byte[PIECE * Long.BYTES];
    for (DeviceBuffer layer : weights) {
      for (long first = 0; first < layer.count(); first += PIECE) {
        try (DeviceBuffer piece = piece(layer, first)) {
          here.clear().limit((int) piece.sizeInBytes());
          in.readFully(there, 0, here.limit());
          swap(ByteBuffer.wrap(there, 0, here.limit()), here, layer.type());
          piece.copyFrom(here);
        }
      }
    }
  }

  /** Copies a layer's weights to another buffer of the same type, on any device. */
  static void copy(DeviceBuffer from, DeviceBuffer to) {
    ByteBuffer here = ByteBuffer.allocateDirect(PIECE * Long.BYTES).order(ByteOrder.nativeOrder());
    for (long first = 0; first < from.count(); first += PIECE) {
      try (DeviceBuffer source = piece(from, first);
          DeviceBuffer target = piece(to, first)) {
        here.clear().limit((int) source.sizeInBytes());
        source.copyTo(here);
        target.copyFrom(here);
      }
    }
  }

  /** Gives all ranks the values that one has in host memory. Collective. */
  static void broadcast(Communicator ranks, DeviceBuffer values, int root) {
    ByteBuffer here = ByteBuffer.allocateDirect(PIECE * Long.BYTES).order(ByteOrder.nativeOrder());
    for (long first = 0; first < values.count(); first += PIECE) {
      try (DeviceBuffer piece = piece(values, first)) {
        here.clear().limit((int) piece.sizeInBytes());
        piece.copyTo(here);
        ranks.broadcast(here, root);
        piece.copyFrom(here);
      }
    }
  }

  private static DeviceBuffer piece(DeviceBuffer layer, long first) {
    return layer.slice(first, Math.min(PIECE, layer.count() - first));
  }

  /** Copies elements from one byte order to another. */
  private static void swap(ByteBuffer from, ByteBuffer to, DataType type) {
    if (type.sizeInBytes() == Long.BYTES) {
      to.asLongBuffer().put(from.asLongBuffer());
    } else {
      to.asIntBuffer().put(from.asIntBuffer());
    }
  }
}
