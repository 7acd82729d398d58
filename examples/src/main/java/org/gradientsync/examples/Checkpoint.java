package org.gradientsync.examples;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UTFDataFormatException;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.List;
import java.util.zip.CRC32;
import java.util.zip.CheckedOutputStream;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.core.backend.OwnFiles;
import org.gradientsync.core.backend.TemporaryFiles;

/**
 * A file from which training can resume: the number of finished steps, the bits of the weights and
 * of the optimizer's state.
 *
 * <p>All numbers are big-endian: magic (8 bytes), version (4), bytes of an element (4), name of the
 * data and of the optimizer (as {@link DataOutputStream#writeUTF} writes them), seed (8), number of
 * widths (4), the widths (4 each), steps (8), weights layer by layer, each part of the optimizer's
 * state likewise, with hooks the number of ranks (4) and for each the number of its bytes (4) and
 * its state, CRC32 of everything before (8).
 */
final class Checkpoint {
  private static final long MAGIC = 0x47_53_59_4e_43_4d_4c_50L; // GSYNCMLP
  private static final int VERSION = 3;
  private static final int BUFFER = 1 << 16;
  private static final int MOST_WIDTHS = 1 << 16;

  /** The bytes before the weights, without the two names and the widths. */
  private static final int HEADER_BYTES = 40;

  /**
   * Identifies the training that a checkpoint belongs to.
   *
   * @param data the data's name, in ASCII
   * @param optimizer the optimizer's name, in ASCII
   * @param seed the data's seed
   * @param widths the layers' widths
   */
  record Training(String data, String optimizer, long seed, int[] widths) {}

  private Checkpoint() {}

  /** Writes a temporary file first, so that a complete checkpoint always exists. */
  static void write(Path file, Training training, long steps, List<DeviceBuffer> weights)
      throws IOException {
    write(file, training, steps, weights, List.of());
  }

  /**
   * As above.
   *
   * @param hooks the state of each rank's hook; empty without hooks
   */
  static void write(
      Path file, Training training, long steps, List<DeviceBuffer> weights, List<byte[]> hooks)
      throws IOException {
    Path folder = file.toAbsolutePath().getParent();
    Path temporary = new TemporaryFiles(folder, "checkpoint").createFile(".part");
    try {
      CRC32 crc = new CRC32();
      try (FileOutputStream bytes = new FileOutputStream(temporary.toFile());
          OutputStream checked = new CheckedOutputStream(bytes, crc);
          DataOutputStream out = new DataOutputStream(new BufferedOutputStream(checked, BUFFER))) {
        out.writeLong(MAGIC);
        out.writeInt(VERSION);
        out.writeInt(elementBytes(weights));
        out.writeUTF(training.data);
        out.writeUTF(training.optimizer);
        out.writeLong(training.seed);
        out.writeInt(training.widths.length);
        for (int width : training.widths) {
          out.writeInt(width);
        }
        out.writeLong(steps);
        Weights.write(weights, out);
        if (!hooks.isEmpty()) {
          out.writeInt(hooks.size());
          for (byte[] hook : hooks) {
            out.writeInt(hook.length);
            out.write(hook);
          }
        }
        out.flush();
        out.writeLong(crc.getValue());
        out.flush();
        bytes.getFD().sync();
      }
      Files.move(
          temporary,
          file.toAbsolutePath(),
          StandardCopyOption.ATOMIC_MOVE,
          StandardCopyOption.REPLACE_EXISTING);
    } finally {
      Files.deleteIfExists(temporary);
    }
  }

  /**
   * Reads the weights, after checking everything else.
   *
   * @return the number of finished steps
   * @throws IOException if the file cannot be read, is damaged, belongs to another training, or
   *     another user could have written it; says which
   */
  static long read(Path file, Training training, List<DeviceBuffer> weights) throws IOException {
    return read(file, training, weights, null);
  }

  /**
   * As above.
   *
   * @param hooks receives the state of each rank's hook; null without hooks
   */
  static long read(Path file, Training training, List<DeviceBuffer> weights, List<byte[]> hooks)
      throws IOException {
    // Open the file once, so that a replaced file cannot pass the checks of another one.
    try (FileChannel channel =
        OwnFiles.ofThisUser().open(file, Long.MAX_VALUE, StandardOpenOption.READ)) {
      DataInputStream in = from(channel, 0);
      if (channel.size() < Long.BYTES || in.readLong() != MAGIC) {
        throw new IOException(
            "not a checkpoint: file=" + file + "; give a file that --checkpoint has written");
      }
      long bytes = HEADER_BYTES + Long.BYTES;
      bytes += training.data.length() + training.optimizer.length();
      bytes += (long) training.widths.length * Integer.BYTES;
      for (DeviceBuffer layer : weights) {
        bytes += layer.sizeInBytes();
      }
      // A larger file belongs to another training or is no checkpoint. Its header tells which, so
      // do not read all of it.
      if (channel.size() <= bytes || hooks != null) {
        requireWhole(file, channel);
      }
      in = from(channel, Long.BYTES);
      try {
        requireVersion(file, in.readInt());
        requireSame(file, "bytes of a weight", elementBytes(weights), in.readInt());
        requireSame(file, "data", training.data, in.readUTF());
        requireSame(file, "optimizer", training.optimizer, in.readUTF());
        requireSame(file, "seed", training.seed, in.readLong());
        int[] read = new int[Math.max(0, Math.min(in.readInt(), MOST_WIDTHS))];
        for (int i = 0; i < read.length; i++) {
          read[i] = in.readInt();
        }
        requireSame(file, "widths", Arrays.toString(training.widths), Arrays.toString(read));
        if (hooks == null ? channel.size() != bytes : channel.size() < bytes) {
          throw damaged(file, channel);
        }
        long steps = in.readLong();
        Weights.read(weights, in);
        if (hooks != null) {
          readHooks(in, channel.size(), hooks);
        }
        return steps;
      } catch (EOFException | UTFDataFormatException e) {
        throw damaged(file, channel);
      }
    }
  }

  private static void readHooks(DataInputStream in, long most, List<byte[]> hooks)
      throws IOException {
    for (int left = in.readInt(); left > 0; left--) {
      int length = in.readInt();
      if (length < 0 || length > most) {
        throw new EOFException();
      }
      byte[] hook = new byte[length];
      in.readFully(hook);
      hooks.add(hook);
    }
  }

  private static DataInputStream from(FileChannel channel, long position) throws IOException {
    channel.position(position);
    return new DataInputStream(new BufferedInputStream(Channels.newInputStream(channel), BUFFER));
  }

  private static void requireWhole(Path file, FileChannel channel) throws IOException {
    CRC32 crc = new CRC32();
    byte[] piece = new byte[BUFFER];
    long left = channel.size() - Long.BYTES;
    DataInputStream in = from(channel, 0);
    while (left > 0) {
      int count = (int) Math.min(left, BUFFER);
      in.readFully(piece, 0, count);
      crc.update(piece, 0, count);
      left -= count;
    }
    if (in.readLong() != crc.getValue()) {
      throw damaged(file, channel);
    }
  }

  private static IOException damaged(Path file, FileChannel channel) throws IOException {
    return new IOException(
        "checkpoint is damaged: file=%s, bytes=%s; take an earlier one"
            .formatted(file, channel.size()));
  }

  private static void requireVersion(Path file, int version) throws IOException {
    if (version != VERSION) {
      throw new IOException(
          ("checkpoint is of another release: file=%s, version=%s, expected=%s;"
                  + " resume with the release that has written it")
              .formatted(file, version, VERSION));
    }
  }

  private static void requireSame(Path file, String what, Object expected, Object found)
      throws IOException {
    if (!expected.equals(found)) {
      throw new IOException(
          ("checkpoint is another training's: file=%s, %s=%s, expected=%s;"
                  + " give the options that it was written with")
              .formatted(file, what, found, expected));
    }
  }

  private static int elementBytes(List<DeviceBuffer> weights) {
    return weights.get(0).type().sizeInBytes();
  }
}
