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
 * The kernels of {@code peer.cuh} on one GPU, loaded when they are needed: for each type a module,
 * and one with those that look for what is not finite.
 */
public final class PeerKernels implements AutoCloseable {
  private final Gpu gpu;
  private final Map<String, CUmodule> modules = new HashMap<>();
  private final Map<String, CUfunction> functions = new HashMap<>();

  /** None are loaded yet. */
  PeerKernels(Gpu gpu) {
    this.gpu = gpu;
  }

  /**
   * A kernel.
   *
   * @param op one that adds for {@link PeerAlgorithm#BROADCAST}
   * @param checkFinite whether it looks for what is not finite
   */
  CUfunction function(
      PeerAlgorithm algorithm, PeerFormat format, ReduceOp op, boolean checkFinite) {
    String name = nameOf(algorithm, format, op);
    String module = moduleOf(format, checkFinite);
    return functions.computeIfAbsent(
        module + " " + name, key -> gpu.api().function(module(module), name));
  }

  /** As in peer.cuh. */
  static String nameOf(PeerAlgorithm algorithm, PeerFormat format, ReduceOp op) {
    String family = op.adds() ? "_ADDING" : "_OTHER";
    return algorithm.text()
        + "_"
        + format.text()
        + (algorithm == PeerAlgorithm.BROADCAST ? "" : family);
  }

  /** As in kernels.txt. */
  static String moduleOf(PeerFormat format, boolean checkFinite) {
    return "peer_" + format.text() + (checkFinite ? "_check_finite" : "");
  }

  /** Those that there are kernels for. */
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

  private CUmodule module(String name) {
    return modules.computeIfAbsent(name, n -> KernelImages.load(gpu.api(), gpu.ordinal(), n));
  }

  /**
   * Loads all kernels for an operation, which the driver otherwise does when each is first used.
   */
  void load(PeerFormat format, ReduceOp op, boolean checkFinite) {
    for (PeerAlgorithm algorithm : algorithms(format, op, checkFinite)) {
      perSm(function(algorithm, format, op, checkFinite), algorithm);
    }
  }

  /**
   * How many blocks of a kernel each of the GPU's SMs holds at once. More than it has room for must
   * not be launched: blocks wait for other GPUs' blocks, and those that have no room yet would be
   * waited for in vain.
   */
  int perSm(CUfunction function, PeerAlgorithm algorithm) {
    return gpu.api().blocksPerSm(function, algorithm.threads);
  }

  int sms() {
    return gpu.sms();
  }

  /** The kernel that notifies the others that this rank departs. */
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
