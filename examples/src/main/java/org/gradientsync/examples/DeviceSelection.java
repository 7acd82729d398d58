package org.gradientsync.examples;

import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.gradientsync.GradientSync;
import org.gradientsync.UnavailableException;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.CudaGpu;
import org.gradientsync.tools.program.RankedProgram;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Shows which GPU each rank uses with each of three strategies. */
@Command(
    name = "device-selection",
    description = {
      "Shows which GPU each rank takes, and which it would take by each of three strategies.",
      "To see the first at work, which rules out the reducer peer: mpirun -np 2 bash -c"
          + " 'CUDA_VISIBLE_DEVICES=$OMPI_COMM_WORLD_LOCAL_RANK exec examples/bin/device-selection'",
      "The second: examples/bin/device-selection --gpu 1",
      "The third: mpirun -np 2 examples/bin/device-selection"
    })
public class DeviceSelection extends RankedProgram {
  private static final String VISIBLE = "CUDA_VISIBLE_DEVICES";
  private static final String PROPERTY = "gradientsync.cuda.device";

  @Option(
      names = "--gpu",
      paramLabel = "K",
      description = "Take the GPU of this number, on every rank that runs with this command line.")
  private Integer gpu;

  /**
   * Runs the program.
   *
   * @param args the command line
   */
  public static void main(String[] args) {
    start(new DeviceSelection(), args);
  }

  @Override
  public void checkOptions() {
    if (gpu != null) {
      requireAtLeast(0, "--gpu", gpu);
      if (onHost()) {
        throw badUse("--gpu chooses a GPU and --device host refuses one");
      }
    }
  }

  @Override
  public Set<String> ownOptions() {
    return Set.of("--gpu");
  }

  @Override
  public void configure(GradientSync.Builder builder) {
    if (gpu != null) {
      builder.set("cuda.device", Integer.toString(gpu));
      if (hereOrReason() == null) {
        builder.device(CudaDevice.KIND); // refuses a number that does not exist
      }
    }
  }

  @Override
  public int run(GradientSync sync) {
    print(sync, "Ranks: %d, launcher %s", sync.size(), sync.launcher());
    String reason = hereOrReason();
    if (!everywhere(sync, reason == null)) {
      print(
          sync,
          "No GPU is used here: %s. Every rank works in host memory.",
          reason == null ? "not every rank has one" : reason);
      return RIGHT;
    }
    List<CudaGpu> gpus = CudaGpu.visible();
    print(sync, "GPUs that rank 0 sees (%s=%s): %d", VISIBLE, visible(), gpus.size());
    for (CudaGpu each : gpus) {
      print(sync, "  %s", each);
    }
    CudaGpu byLocalRank = gpus.get(sync.localRank() % gpus.size());
    strategy(
        sync,
        "1. "
            + VISIBLE
            + " of its own for each rank, which then sees one GPU, as number 0, and cannot use the"
            + " reducer peer, for which it would have to see the others':",
        VISIBLE + "=" + entry(byLocalRank.ordinal()) + " would leave it " + byLocalRank);
    CudaGpu byRank = gpus.get(sync.rank() % gpus.size());
    strategy(
        sync,
        "2. An explicit choice, builder.set(\"cuda.device\", K) or -D"
            + PROPERTY
            + "=K; with K = rank modulo GPUs:",
        "K=" + byRank.ordinal() + " would give it " + byRank);
    strategy(
        sync,
        "3. By local rank on each node, modulo GPUs, where nothing else is said:",
        String.format(
            Locale.ROOT,
            "local rank %d of %d would give it %s",
            sync.localRank(),
            sync.localSize(),
            byLocalRank));
    strategy(sync, "Now:", taken(sync));
    return RIGHT;
  }

  /** Prints one line per rank, in rank order. Collective. */
  private void strategy(GradientSync sync, String title, String line) {
    print(sync, "%s", title);
    for (String each : gatherTexts(sync, "rank " + sync.rank() + ": " + line)) {
      print(sync, "  %s", each);
    }
  }

  private String taken(GradientSync sync) {
    if (!(sync.device() instanceof CudaDevice device)) {
      return "took " + sync.device().name();
    }
    CudaGpu took = new CudaGpu(device.ordinal(), device.name(), device.pciAddress());
    if (gpu != null) {
      return "took " + took + ", because --gpu says so";
    } else if (System.getProperty(PROPERTY) != null) {
      return "took " + took + ", because " + PROPERTY + " says so";
    }
    return "took "
        + took
        + ", by local rank"
        + (System.getenv(VISIBLE) == null ? "" : " among those of " + VISIBLE + "=" + visible());
  }

  /** Returns the entry of CUDA_VISIBLE_DEVICES for a GPU that this process sees under a number. */
  private static String entry(int ordinal) {
    String visible = System.getenv(VISIBLE);
    String[] entries = visible == null ? new String[0] : visible.split(",");
    return ordinal < entries.length ? entries[ordinal].strip() : Integer.toString(ordinal);
  }

  private static String visible() {
    String value = System.getenv(VISIBLE);
    return value == null ? "not set" : value;
  }

  /** Returns why there is no GPU, or null if there is one. */
  private static String hereOrReason() {
    try {
      CudaGpu.visible();
      return null;
    } catch (UnavailableException e) {
      return e.getMessage();
    }
  }
}
