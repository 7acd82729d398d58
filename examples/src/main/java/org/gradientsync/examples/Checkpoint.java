package org.gradientsync.examples;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;
import java.util.List;
import java.util.zip.CRC32;
import java.util.zip.CheckedOutputStream;
import org.gradientsync.DeviceBuffer;

/**
 * A file with which training goes on later: the steps that were done and the bits of the weights.
 *
 * <p>All numbers have their most significant byte first: magic (8 bytes), version (4), bytes of an
 * element (4), number of widths (4), the widths (4 each), steps (8), weights layer by layer, CRC32
 * of everything before (8).
 */
final class Checkpoint {
  private static final long MAGIC = 0x47_53_59_4e_43_4d_4c_50L; // GSYNCMLP
  private static final int VERSION = 1;
  private static final int BUFFER = 1 << 16;

  private Checkpoint() {}

  /** Writes beside the file first, so that there is a whole one at any time. */
  static void write(Path file, int[] widths, long steps, List<DeviceBuffer> weights)
      throws IOException {
    Path folder = file.toAbsolutePath().getParent();
    Path temporary = Files.createTempFile(folder, file.getFileName() + ".", ".part");
    try {
      CRC32 crc = new CRC32();
      try (FileOutputStream bytes = new FileOutputStream(temporary.toFile());
          OutputStream checked = new CheckedOutputStream(bytes, crc);
          DataOutputStream out = new DataOutputStream(new BufferedOutputStream(checked, BUFFER))) {
        out.writeLong(MAGIC);
        out.writeInt(VERSION);
        out.writeInt(elementBytes(weights));
        out.writeInt(widths.length);
        for (int width : widths) {
          out.writeInt(width);
        }
        out.writeLong(steps);
        Weights.write(weights, out);
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
   * Reads the weights, after everything else was found right.
   *
   * @return the steps that were done
   * @throws IOException if it cannot be read, is damaged, or is another model's: says which
   */
  static long read(Path file, int[] widths, List<DeviceBuffer> weights) throws IOException {
    try (DataInputStream in = open(file)) {
      if (Files.size(file) < Long.BYTES || in.readLong() != MAGIC) {
        throw new IOException(
            "not a checkpoint: file=" + file + "; give a file that --checkpoint has written");
      }
      requireWhole(file);
      requireSame(file, "version", VERSION, in.readInt());
      requireSame(file, "bytes of a weight", elementBytes(weights), in.readInt());
      int[] read = new int[Math.max(0, Math.min(in.readInt(), BUFFER))];
      for (int i = 0; i < read.length; i++) {
        read[i] = in.readInt();
      }
      requireSame(file, "widths", Arrays.toString(widths), Arrays.toString(read));
      long steps = in.readLong();
      Weights.read(weights, in);
      return steps;
    }
  }

  private static DataInputStream open(Path file) throws IOException {
    return new DataInputStream(new BufferedInputStream(Files.newInputStream(file), BUFFER));
  }

  private static void requireWhole(Path file) throws IOException {
    CRC32 crc = new CRC32();
    byte[] piece = new byte[BUFFER];
    long left = Files.size(file) - Long.BYTES;
    try (InputStream bytes = Files.newInputStream(file);
        DataInputStream in = new DataInputStream(bytes)) {
      while (left > 0) {
        int count = (int) Math.min(left, BUFFER);
        in.readFully(piece, 0, count);
        crc.update(piece, 0, count);
        left -= count;
      }
      if (left < 0 || in.readLong() != crc.getValue()) {
        throw new IOException(
            "checkpoint is damaged: file="
                + file
                + ", bytes="
                + Files.size(file)
                + "; take an earlier one");
      }
    }
  }

  private static void requireSame(Path file, String what, Object expected, Object found)
      throws IOException {
    if (!expected.equals(found)) {
      throw new IOException(
          "checkpoint is another model's: file="
              + file
              + ", "
              + what
              + "="
              + found
              + ", expected="
              + expected
              + "; give the options that it was written with");
    }
  }

  private static int elementBytes(List<DeviceBuffer> weights) {
    return weights.get(0).type().sizeInBytes();
  }
}
