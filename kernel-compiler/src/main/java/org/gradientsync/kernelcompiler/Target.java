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
 * @param compressed whether the jar has it compressed
 */
record Target(String architecture, boolean compressed) {
  /** For the library's kernels: machine code for capability 7.5 to 9.0, PTX for newer GPUs. */
  static final List<Target> LIBRARY =
      List.of(
          new Target("sm_75", true),
          new Target("sm_80", true),
          new Target("sm_90", true),
          new Target("compute_90", true));

  /** For programs, which load PTX: GPUs of capability 7.5 and later. */
  static final Target PROGRAM = new Target("compute_75", false);

  private static final Pattern COUNT = Pattern.compile(" *// callseq \\d+(, \\d+)?");

  /**
   * Those of {@link #LIBRARY} that are chosen.
   *
   * @param architectures with commas between, or null for all
   * @throws BuildException if there is none
   */
  static List<Target> library(String architectures) throws BuildException {
    if (architectures == null) {
      return LIBRARY;
    }
    List<String> chosen = List.of(architectures.split(","));
    List<Target> targets =
        LIBRARY.stream().filter(target -> chosen.contains(target.architecture)).toList();
    if (targets.size() < chosen.size()) {
      throw new BuildException("no such kernels: GRADIENTSYNC_KERNELS=" + architectures);
    }
    return targets;
  }

  boolean isPtx() {
    return architecture.startsWith("compute_");
  }

  /** The name of a module's file for this target. */
  String file(String module) {
    String kind = isPtx() ? ".ptx" : ".cubin";
    return compressed ? module + "." + architecture + kind + ".xz" : module + kind;
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
    if (!compressed) {
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
