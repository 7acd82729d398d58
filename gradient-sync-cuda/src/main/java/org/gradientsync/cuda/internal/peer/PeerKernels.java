package org.gradientsync.cuda.internal.peer;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import jcuda.driver.CUfunction;
import jcuda.driver.CUmodule;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.internal.driver.CudaApi;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.cuda.internal.driver.KernelImages;
import org.gradientsync.spi.Resources;

/**
 * The kernels of {@code peer.cuh} on one GPU, loaded on first use. Each format has a module, and
 * floating-point formats have a second one, with the check for NaN and infinities. The kernels of
 * {@code put.cuh}, {@code stream_blocks.cuh}, {@code stream_parts.cuh}, {@code push.cuh} and {@code
 * message.cu} are in modules of their own.
 */
public final class PeerKernels implements AutoCloseable {
  private final Gpu gpu;
  private final Map<String, CUmodule> modules = new HashMap<>();
  private final Map<String, CUfunction> functions = new HashMap<>();

  /** Loads no kernel yet. */
  PeerKernels(Gpu gpu) {
    this.gpu = gpu;
  }

  /**
   * Returns a kernel, which it loads if needed.
   *
   * @param op for {@link PeerAlgorithm#BROADCAST}, an operation that adds
   * @param checkFinite whether the kernel checks for NaN and infinities
   */
  CUfunction function(
      PeerAlgorithm algorithm, PeerFormat format, ReduceOp op, boolean checkFinite) {
    String name = nameOf(algorithm, format, op);
    String module = moduleOf(format, checkFinite);
    return named(module, name);
  }

  /** A kernel's name in peer.cuh. */
  static String nameOf(PeerAlgorithm algorithm, PeerFormat format, ReduceOp op) {
    String family = op.adds() ? "_ADDING" : "_OTHER";
    return algorithm.text()
        + "_"
        + format.text()
        + (algorithm == PeerAlgorithm.BROADCAST ? "" : family);
  }

  /** A module's name in kernels.txt. */
  static String moduleOf(PeerFormat format, boolean checkFinite) {
    return "peer_" + format.text() + (checkFinite ? "_check_finite" : "");
  }

  /** The algorithms that have a kernel for this combination. */
  static List<PeerAlgorithm> algorithms(PeerFormat format, ReduceOp op, boolean checkFinite) {
    if (!op.isDefinedFor(format.type())
        || (format.isNarrowed() && !op.adds())
        || (checkFinite && !format.type().isFloatingPoint())) {
      return List.of();
    }
    return Arrays.stream(PeerAlgorithm.values())
        .filter(algorithm -> algorithm.takes(format, op, checkFinite))
        .toList();
  }

  /**
   * The kernel of a collective whose blocks go in lines.
   *
   * @param op null for one that copies
   */
  CUfunction push(PeerFormat format, ReduceOp op) {
    return op == null ? named("push_copy", "push_copy") : reducing("push", format, op);
  }

  /** The kernel of a reduction whose blocks go in chunks. */
  CUfunction streamBlocks(PeerFormat format, ReduceOp op) {
    return reducing("stream_blocks", format, op);
  }

  /** The kernel that reduces several buffers as one. */
  CUfunction streamParts(PeerFormat format) {
    return named("stream_parts", "stream_parts_" + format.text());
  }

  /** The kernel that writes into the ranks' outputs: of a broadcast, or else of a collective. */
  CUfunction put(boolean broadcast) {
    return named("put", broadcast ? "put_broadcast" : "put_copy");
  }

  private CUfunction reducing(String way, PeerFormat format, ReduceOp op) {
    return named(way + "_" + format.text(), collectiveNameOf(way, format, op));
  }

  /** The name of the kernel of a collective that reduces. */
  static String collectiveNameOf(String way, PeerFormat format, ReduceOp op) {
    return way + "_" + format.text() + (op.adds() ? "_ADDING" : "_OTHER");
  }

  CUfunction message(boolean sends) {
    return named("message", sends ? "message_send" : "message_receive");
  }

  private CUfunction named(String module, String name) {
    return functions.computeIfAbsent(
        module + " " + name, key -> gpu.api().function(module(module), name));
  }

  private CUmodule module(String name) {
    if (!modules.containsKey(name)) {
      gpu.gate().run(() -> modules.put(name, KernelImages.load(gpu.api(), gpu.ordinal(), name)));
    }
    return modules.get(name);
  }

  /**
   * Loads all kernels for an operation now. Otherwise the driver would load each at its first use.
   */
  void load(PeerFormat format, ReduceOp op, boolean checkFinite) {
    for (PeerAlgorithm algorithm : algorithms(format, op, checkFinite)) {
      perSm(function(algorithm, format, op, checkFinite), algorithm);
    }
  }

  /**
   * The number of blocks of a kernel that an SM holds at once. A launch must not have more blocks
   * than fit on the GPU: blocks wait for blocks on other GPUs, and would wait in vain for one that
   * has no room yet.
   */
  int perSm(CUfunction function, PeerAlgorithm algorithm) {
    return perSm(function, algorithm.threads);
  }

  /** As above, for a kernel with a number of threads. Loads the kernel. */
  int perSm(CUfunction function, int threads) {
    return gpu.api().blocksPerSm(function, threads);
  }

  int sms() {
    return gpu.sms();
  }

  /** The kernel that notifies the other ranks that this rank departs. */
  CUfunction depart() {
    return functions.computeIfAbsent(
        "depart", name -> gpu.api().function(module("peer_depart"), name));
  }

  @Override
  public void close() {
    List<CUmodule> all = new ArrayList<>(modules.values());
    modules.clear();
    functions.clear();
    CudaApi api = gpu.api();
    Resources.closeAll(
        all.stream().<AutoCloseable>map(module -> () -> api.unloadModule(module)).toList());
  }
}
