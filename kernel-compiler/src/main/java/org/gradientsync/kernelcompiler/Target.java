package org.gradientsync.kernelcompiler;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.regex.Pattern;
import org.tukaani.xz.LZMA2Options;
import org.tukaani.xz.XZ;
import org.tukaani.xz.XZOutputStream;

/**
 * The GPUs that a module is compiled for.
 *
 * @param architecture sm_NN for machine code (a cubin) for GPUs of compute capability N.N and later
 *     ones with the same major number; compute_NN for PTX, which drivers compile for any later GPU
 */
record Target(String architecture) {
  /** For the library's kernels: machine code for capability 7.5 to 9.0, PTX for newer GPUs. */
  static final List<Target> LIBRARY =
      List.of(
          new Target("sm_75"), new Target("sm_80"), new Target("sm_90"), new Target("compute_90"));

  /** For programs, which load PTX: GPUs of capability 7.5 and later. */
  static final Target PROGRAM = new Target("compute_75");

  private static final Pattern COUNT = Pattern.compile(" *// callseq \\d+(, \\d+)?");

  boolean isPtx() {
    return architecture.startsWith("compute_");
  }

  /** The name of a module's file for this target. */
  String file(String module) {
    String file = module + "." + architecture + (isPtx() ? ".ptx" : ".cubin");
    return this == PROGRAM ? module + ".ptx" : file + ".xz";
  }

  /**
   * An image as the jar contains it: compressed for the library, PTX text for programs. In comments
   * of PTX the compiler counts the calls of functions over all that its process has compiled; these
   * go, so that the same sources give the same bytes.
   */
  byte[] pack(byte[] image) throws IOException {
    byte[] content = image;
    if (isPtx()) {
      String text = new String(image, StandardCharsets.ISO_8859_1);
      content = COUNT.matcher(text).replaceAll("").getBytes(StandardCharsets.ISO_8859_1);
    }
    if (this == PROGRAM) {
      return content;
    }
    LZMA2Options options = new LZMA2Options();
    options.setDictSize(1 << 20); // small, because readers allocate as much
    ByteArrayOutputStream packed = new ByteArrayOutputStream();
    try (XZOutputStream out = new XZOutputStream(packed, options, XZ.CHECK_CRC32)) {
      out.write(content);
    }
    return packed.toByteArray();
  }

  /** The compiler's options. The promised bits need some, such as no fused multiply-add. */
  List<String> options() {
    return List.of(
        "--gpu-architecture=" + architecture,
        "-fmad=false",
        "-prec-div=true",
        "-ftz=false",
        "-std=c++17",
        "-default-device");
  }
}
