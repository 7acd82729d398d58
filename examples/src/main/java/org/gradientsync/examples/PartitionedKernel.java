package org.gradientsync.examples;

import java.nio.DoubleBuffer;
import java.util.Locale;
import java.util.Set;
import org.gradientsync.DataType;
import org.gradientsync.GradientSync;
import org.gradientsync.UnavailableException;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.CudaGpu;
import org.gradientsync.cuda.compute.CudaModule;
import org.gradientsync.cuda.compute.Grid;
import org.gradientsync.tools.program.RankedProgram;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Uses several GPUs from one JVM: divides an array, and runs the kernel on each GPU's part. */
@Command(
    name = "partitioned-kernel",
    description = "Runs a kernel over an array that is divided over the GPUs of this machine.")
public class PartitionedKernel extends RankedProgram {
  private static final int THREADS = 256;

  /** Limits the result, because rank 0 gathers it into one array. */
  private static final int MOST_ELEMENTS = 200_000_000;

  @Option(
      names = "--gpus",
      paramLabel = "N",
      description = "How many GPUs to use, each with a thread of this JVM (default: all).")
  private Integer gpus;

  @Option(
      names = "--elements",
      paramLabel = "N",
      defaultValue = "1000003",
      description = "Elements of the array; need not divide (default: ${DEFAULT-VALUE}).")
  private int elements;

  /**
   * Runs the program.
   *
   * @param args the command line
   */
  public static void main(String[] args) {
    start(new PartitionedKernel(), args);
  }

  @Override
  public Set<String> hiddenOptions() {
    return Set.of("--local");
  }

  @Override
  public void checkOptions() {
    requireAtLeast(1, "--elements", elements);
    requireAtMost(MOST_ELEMENTS, "--elements", elements);
    if (gpus != null) {
      requireAtLeast(1, "--gpus", gpus);
    }
    if (super.embeddedRanks() != null) {
      throw badUse("every GPU gets a rank of its own: say how many with --gpus, not with --local");
    }
    if (onHost()) {
      throw badUse("a kernel needs a GPU, which --device host refuses");
    }
    requireNoMpirun("partitioned-kernel");
  }

  private static int visibleGpus() {
    try {
      return CudaGpu.visible().size();
    } catch (UnavailableException e) {
      throw new UnavailableException(
          "a kernel needs a GPU, and none can be used here: " + e.getMessage(), e);
    }
  }

  @Override
  public Integer embeddedRanks() {
    int here = visibleGpus();
    if (gpus != null && gpus > here) {
      throw badUse("there are not so many GPUs: --gpus " + gpus + ", found " + here);
    }
    return gpus != null ? gpus : Integer.valueOf(here);
  }

  @Override
  public void configure(GradientSync.Builder builder) {
    builder.device(CudaDevice.KIND);
  }

  @Override
  public int run(GradientSync sync) {
    print(sync, "GPUs: %d, elements: %d", sync.size(), elements);
    CudaDevice gpu = (CudaDevice) sync.device();
    // If the elements do not divide evenly, the first parts have one more.
    int share = elements / sync.size();
    int more = elements % sync.size();
    int first = sync.rank() * share + Math.min(sync.rank(), more);
    int count = share + (sync.rank() < more ? 1 : 0);

    double[] part = new double[count];
    for (int i = 0; i < count; i++) {
      part[i] = input(first + i);
    }
    stage(sync, "running the kernel");
    runKernel(gpu, part, first);
    for (String line : gatherTexts(sync, describe(sync, gpu, first, count))) {
      print(sync, "%s", line);
    }

    double[] whole = gather(sync, part, share, more);
    stage(sync, "checking the result");
    boolean right = everywhere(sync, whole == null || isRight(whole));
    print(
        sync,
        right
            ? "[PASS] Every element of the gathered result is right."
            : "[FAIL] The gathered result is wrong.");
    return right ? RIGHT : WRONG;
  }

  private static String describe(GradientSync sync, CudaDevice gpu, int first, int count) {
    return String.format(
        Locale.ROOT, "Rank %d: %s computed %d elements from %d on", sync.rank(), gpu, count, first);
  }

  /** Copies a part to the GPU, computes in place, and copies it back. */
  private static void runKernel(CudaDevice gpu, double[] part, long first) {
    try (CudaModule module = CudaModule.load(gpu, Kernels.ptx("square_and_shift"));
        CudaBuffer in = gpu.allocate(DataType.FLOAT64, part.length);
        CudaBuffer out = gpu.allocate(DataType.FLOAT64, part.length)) {
      in.copyFrom(part);
      Grid grid = Grid.covering(part.length, THREADS);
      module
          .kernel("square_and_shift")
          .launch(gpu.stream(), grid, in, out, first, (long) part.length);
      out.copyTo(part); // waits for the kernel
    }
  }

  /**
   * {@return on rank 0 the whole array, put together from the parts; null elsewhere} A gather takes
   * the same count on all ranks, so the extra elements of the first parts are sent separately.
   */
  private double[] gather(GradientSync sync, double[] part, int share, int more) {
    boolean root = sync.rank() == 0;
    double[] even = root ? new double[share * sync.size()] : null;
    double[] last = root ? new double[sync.size()] : null;
    sync.communicator()
        .gather(DoubleBuffer.wrap(part, 0, share), root ? DoubleBuffer.wrap(even) : null, 0);
    double[] own = {part.length > share ? part[share] : Double.NaN};
    sync.communicator().gather(DoubleBuffer.wrap(own), root ? DoubleBuffer.wrap(last) : null, 0);
    if (!root) {
      return null;
    }
    double[] whole = new double[elements];
    int at = 0;
    for (int rank = 0; rank < sync.size(); rank++) {
      System.arraycopy(even, rank * share, whole, at, share);
      at += share;
      if (rank < more) {
        whole[at++] = last[rank];
      }
    }
    return whole;
  }

  private boolean isRight(double[] whole) {
    for (int i = 0; i < elements; i++) {
      double expected = input(i) * input(i) + i;
      if (Double.doubleToRawLongBits(whole[i]) != Double.doubleToRawLongBits(expected)) {
        printError("wrong element: index=%d, is=%s, expected=%s", i, whole[i], expected);
        return false;
      }
    }
    return true;
  }

  private static double input(int index) {
    return index % 1000 / 7.0;
  }
}
