package org.gradientsync.djl;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import java.util.List;
import java.util.function.BiFunction;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.MismatchedCallException;
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
        Training.HOST,
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

  @Test
  void arraysHaveMemoryAfterTheSyncWasClosed() {
    LocalRanks.run(
        1,
        Training.HOST,
        sync -> {
          try (NDManager manager = NDManager.newBaseManager(Device.cpu());
              NDArray array = manager.create(new float[] {1, 2})) {
            Gradients gradients = Gradients.of(sync, List.of("weight"), List.of(array));
            sync.close();
            gradients.close();
            assertArrayEquals(new float[2], array.toFloatArray());
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
            new CopiedGradients(sync, NAMES, arrays, Gradients.buckets(sync, NAMES, arrays)));
  }

  /** As on a GPU, in host memory. */
  @Test
  void arraysCanBeAveragedOneByOne() {
    averages((sync, arrays) -> new GpuGradients(sync, NAMES, arrays, wrapping(sync)));
  }

  private static BiFunction<String, NDArray, DeviceBuffer> wrapping(GradientSync sync) {
    return (name, array) -> sync.wrap(HostCopy.typeOf(array), array.toByteBuffer(true));
  }

  @Test
  void errorsNameParametersThatAreAveragedOneByOne() {
    LocalRanks.run(
        2,
        Training.HOST,
        sync -> {
          try (NDManager manager = NDManager.newBaseManager(Device.cpu());
              NDArray array = manager.zeros(new Shape(20_000 + sync.rank()));
              Gradients gradients =
                  new GpuGradients(sync, List.of("weight"), List.of(array), wrapping(sync))) {
            String text =
                assertThrows(MismatchedCallException.class, () -> gradients.average(1))
                    .getMessage();
            assertTrue(text.contains("rank 1: allReduce(FLOAT32[20001] \"weight\", AVERAGE"), text);
          }
        });
  }

  /** On a GPU, where closing waits for the other ranks. */
  @Test
  void aFailureToCloseIsThrown() {
    LocalRanks.run(
        2,
        Training.HOST,
        sync -> {
          try (NDManager manager = NDManager.newBaseManager(Device.cpu());
              NDArray array = manager.zeros(new Shape(2))) {
            Gradients gradients =
                new GpuGradients(sync, List.of("weight"), List.of(array), wrapping(sync));
            assertThrows(
                MismatchedCallException.class,
                sync.rank() == 0 ? gradients::close : () -> sync.average(new float[1]));
          }
        });
  }

  @Test
  void aGradientThatIsTooLargeToMoveIsNamed() {
    try (NDManager manager = NDManager.newBaseManager(Device.cpu());
        NDArray array = manager.create(new float[] {1, 2})) {
      NDArray large = Elsewhere.sized(array, new Shape(1 << 28));
      assertNull(HostGradients.whyNotMoved(List.of("bias"), List.of(array)));
      assertEquals(
          "a gradient is too large for one bucket: parameter=weight, bytes=1073741824,"
              + " most=1006632960",
          HostGradients.whyNotMoved(List.of("bias", "weight"), List.of(array, large)));
    }
  }

  private static void averages(Opener opener) {
    LocalRanks.run(
        2,
        Training.HOST,
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
        Training.HOST,
        sync -> {
          try (NDManager manager = NDManager.newBaseManager(Device.cpu());
              NDArray array = manager.create(new float[] {1, 2});
              Gradients gradients =
                  Gradients.of(
                      sync, List.of("weight"), List.of(Elsewhere.array(array, Device.gpu(0))))) {
            assertInstanceOf(CopiedGradients.class, gradients);
          }
        });
  }
}
