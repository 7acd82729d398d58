package org.gradientsync.kernelcompiler;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.List;
import org.tukaani.xz.LZMA2Options;
import org.tukaani.xz.XZ;
import org.tukaani.xz.XZOutputStream;

/**
 * What is compiled for.
 *
 * @param architecture sm_NN for machine code (a cubin) of GPUs of compute capability N.N and of the
 *     later ones with the same first number; compute_NN for PTX, which drivers compile for any
 *     later GPU
 */
record Target(String architecture) {
  /** For the library's kernels: GPUs from 7.5 on need no compiling up to 9.0. */
  static final List<Target> LIBRARY =
      List.of(
          new Target("sm_75"), new Target("sm_80"), new Target("sm_90"), new Target("compute_90"));

  /** For programs, which load PTX: GPUs from 7.5 on. */
  static final Target PROGRAM = new Target("compute_75");

  boolean isPtx() {
    return architecture.startsWith("compute_");
  }

  /** How a module's file for it is called. */
  String file(String module) {
    String file = module + "." + architecture + (isPtx() ? ".ptx" : ".cubin");
    return this == PROGRAM ? module + ".ptx" : file + ".xz";
  }

  /** As it lies in a jar: the library's kernels compressed, programs' as text. */
  byte[] pack(byte[] image) throws IOException {
    if (this == PROGRAM) {
      return image;
    }
    LZMA2Options options = new LZMA2Options();
    options.setDictSize(1 << 20); // which whoever reads it allocates
    ByteArrayOutputStream packed = new ByteArrayOutputStream();
    try (XZOutputStream out = new XZOutputStream(packed, options, XZ.CHECK_CRC32)) {
      out.write(image);
    }
    return packed.toByteArray();
  }

  /** The bits that the library promises depend on these: no fused multiply-add, for example. */
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
