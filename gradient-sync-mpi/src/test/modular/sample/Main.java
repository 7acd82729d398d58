package sample;

import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.local.LocalRanks;

/** A program that is a module: three threads, or the ranks of mpirun. */
public final class Main {
  private Main() {}

  public static void main(String[] args) {
    if (args.length > 0) {
      LocalRanks.run(Integer.parseInt(args[0]), Main::average);
      return;
    }
    try (GradientSync sync = GradientSync.create()) {
      average(sync);
    }
  }

  private static void average(GradientSync sync) {
    try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 5)) {
      buffer.copyFrom(new float[] {sync.rank(), 1, 2, 3, 4});
      sync.average(buffer);
      float[] average = new float[5];
      buffer.copyTo(average);
      System.out.println("rank " + sync.rank() + " " + sync.reducer() + " " + average[0] + ";");
    }
  }
}
