package org.gradientsync.cuda;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import jcuda.driver.CUfunction;
import jcuda.driver.CUmodule;
import org.gradientsync.ReduceOp;
import org.gradientsync.spi.Resources;

/**
 * The kernels of {@code peer.cuh} on one GPU, loaded when they are needed: for each type a module
 * with those that add and one with the others, and the same for those that look for what is not
 * finite.
 */
final class PeerKernels implements AutoCloseable {
  /** From 8.0 on GPUs convert two floats at once, for which there are kernels of their own. */
  private static final int PACKS = 80;

  private final CudaDevice device;
  private final Map<String, CUmodule> modules = new HashMap<>();
  private CUmodule goodbye;
  private final Map<String, CUfunction> functions = new HashMap<>();

  /** None are loaded yet. */
  PeerKernels(CudaDevice device) {
    this.device = device;
  }

  /**
   * A kernel.
   *
   * @param op one that adds for {@link PeerWay#BROADCAST}
   * @param watched whether it looks for what is not finite; a broadcast does not, but comes from
   *     the same module as those that do
   */
  CUfunction function(PeerWay way, PeerFormat format, ReduceOp op, boolean watched) {
    String family = op.adds() ? "_ADDING" : "_OTHER";
    String name = way.text() + "_" + format.text() + (way == PeerWay.BROADCAST ? "" : family);
    String module =
        format.text()
            + (op.adds() ? "" : "_OTHER")
            + (watched ? "_watched" : "")
            + (packs(format) ? "_80" : "");
    return functions.computeIfAbsent(
        module + " " + name, key -> device.api().function(module(module), name));
  }

  private boolean packs(PeerFormat format) {
    return format.isNarrowed() && device.api().capability(device.ordinal()) >= PACKS;
  }

  private CUmodule module(String name) {
    return modules.computeIfAbsent(
        name, n -> device.api().loadModule(ReduceKernel.resource("peer_" + n + ".ptx")));
  }

  /**
   * Loads all kernels for an operation, which the driver otherwise does when each is first used.
   */
  void load(PeerFormat format, ReduceOp op, boolean watched) {
    for (PeerWay way : PeerWay.values()) {
      if (way.takes(format) && (way != PeerWay.BROADCAST || op.adds())) {
        perProcessor(function(way, format, op, watched), way);
      }
    }
  }

  /**
   * How many blocks of a kernel each of the GPU's processors holds at once. More than it has room
   * for must not be launched: blocks wait for other GPUs' blocks, and those that have no room yet
   * would be waited for in vain.
   */
  int perProcessor(CUfunction function, PeerWay way) {
    return device.api().blocksPerMultiprocessor(function, way.threads);
  }

  int processors() {
    return device.api().multiprocessors(device.ordinal());
  }

  /** The kernel that tells the others that this rank comes no more. */
  CUfunction goodbye() {
    if (goodbye == null) {
      goodbye = device.api().loadModule(ReduceKernel.resource("peer_goodbye.ptx"));
    }
    return functions.computeIfAbsent("goodbye", n -> device.api().function(goodbye, n));
  }

  @Override
  public void close() {
    List<CUmodule> all = new ArrayList<>(modules.values());
    if (goodbye != null) {
      all.add(goodbye);
    }
    goodbye = null;
    modules.clear();
    functions.clear();
    CudaApi api = device.api();
    Resources.closeAll(
        all.stream().<AutoCloseable>map(module -> () -> api.unloadModule(module)).toList());
  }
}
