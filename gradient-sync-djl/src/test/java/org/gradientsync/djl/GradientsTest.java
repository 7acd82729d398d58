package org.gradientsync.djl;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import java.lang.reflect.Proxy;
import java.util.List;
import org.gradientsync.GradientSync;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Test;

/** The ways to average DJL's arrays. */
class GradientsTest {
  private static final List<String> NAMES = List.of("weight", "bias");

  /** Opens a way of a rank. */
  private interface Opener {
    Gradients open(GradientSync sync, List<NDArray> arrays);
  }

  @Test
  void arraysOnTheCpuAreAveragedWhereTheyAre() {
    averages(
        (sync, arrays) -> assertInstanceOf(HostGradients.class, Gradients.of(sync, NAMES, arrays)));
  }

  /** The model may be trained again when the buckets' memory is gone. */
  @Test
  void arraysHaveMemoryOfTheirOwnInTheEnd() {
    LocalRanks.run(
        1,
        sync -> {
          try (NDManager manager = NDManager.newBaseManager(Device.cpu());
              NDArray array = manager.create(new float[] {1, 2})) {
            Gradients gradients = Gradients.of(sync, List.of("weight"), List.of(array));
            long inBucket = address(array);
            gradients.average(1);
            assertEquals(inBucket, address(array));
            gradients.close();
            assertNotEquals(inBucket, address(array));
            assertArrayEquals(new float[] {1, 2}, array.toFloatArray());
          }
        });
  }

  private static long address(NDArray array) {
    return Pointer.nativeValue(Native.getDirectBufferPointer(array.toByteBuffer(true)));
  }

  @Test
  void arraysCanBeCopied() {
    averages(
        (sync, arrays) ->
            new CopiedGradients(sync, arrays, Gradients.buckets(sync, NAMES, arrays)));
  }

  /** As on a GPU, in host memory. */
  @Test
  void arraysCanBeAveragedOneByOne() {
    averages(
        (sync, arrays) ->
            new GpuGradients(
                sync,
                arrays,
                array -> sync.wrap(HostCopy.typeOf(array), array.toByteBuffer(true))));
  }

  private static void averages(Opener opener) {
    LocalRanks.run(
        2,
        sync -> {
          try (NDManager manager = NDManager.newBaseManager(Device.cpu())) {
            NDArray weight = manager.create(new float[] {1, 2, 3, 4}, new Shape(2, 2));
            NDArray bias = manager.create(new double[] {5}).add(sync.rank());
            List<NDArray> arrays = List.of(weight, bias);
            try (Gradients gradients = opener.open(sync, arrays)) {
              weight.addi(sync.rank()); // as a backward pass does, in place
              gradients.average(1);
              assertArrayEquals(new float[] {1.5f, 2.5f, 3.5f, 4.5f}, weight.toFloatArray());
              assertArrayEquals(new double[] {5.5}, bias.toDoubleArray());

              gradients.average(sync.rank() == 0 ? 2 : 0); // rank 0 has all rows
              assertArrayEquals(new float[] {1.5f, 2.5f, 3.5f, 4.5f}, weight.toFloatArray());
            }
            weight.addi(1); // has memory of its own again
            assertArrayEquals(new float[] {2.5f, 3.5f, 4.5f, 5.5f}, weight.toFloatArray());
          }
        });
  }

  @Test
  void arraysOnAGpuAreCopiedIfTheSyncHasNone() {
    LocalRanks.run(
        2,
        sync -> {
          try (NDManager manager = NDManager.newBaseManager(Device.cpu());
              NDArray array = manager.create(new float[] {1, 2});
              Gradients gradients = Gradients.of(sync, List.of("weight"), List.of(onGpu(array)))) {
            assertInstanceOf(CopiedGradients.class, gradients);
          }
        });
  }

  private static NDArray onGpu(NDArray array) {
    return (NDArray)
        Proxy.newProxyInstance(
            NDArray.class.getClassLoader(),
            new Class<?>[] {NDArray.class},
            (proxy, method, args) ->
                method.getName().equals("getDevice") ? Device.gpu(0) : method.invoke(array, args));
  }
}
