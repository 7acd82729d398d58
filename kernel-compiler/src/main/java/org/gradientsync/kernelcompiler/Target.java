package org.gradientsync.kernelcompiler;

import java.util.List;

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
    return module + "." + architecture + (isPtx() ? ".ptx" : ".cubin");
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
