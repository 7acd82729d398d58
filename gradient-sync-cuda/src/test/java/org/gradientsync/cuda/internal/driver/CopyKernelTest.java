package org.gradientsync.cuda.internal.driver;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.ArgumentMatchers.eq;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import jcuda.Pointer;
import jcuda.driver.CUfunction;
import jcuda.driver.CUmodule;
import jcuda.driver.CUstream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests what the kernel that copies many buffers is launched with. Needs no GPU. */
class CopyKernelTest {
  private static final int SMS = 3;

  /** What one launch copies, and its blocks. */
  private record Launch(List<List<Long>> copies, int perCopy) {}

  private final CudaApi api = mock(CudaApi.class);
  private final CUfunction function = new CUfunction();
  private final CUstream stream = new CUstream();
  private final List<Launch> launches = new ArrayList<>();
  private ByteBuffer struct;

  private CopyKernel kernel() {
    when(api.capability(anyInt())).thenReturn(90);
    when(api.sms(anyInt())).thenReturn(SMS);
    when(api.loadImage(any(), any())).thenReturn(new CUmodule());
    when(api.function(any(), eq("copy_many"))).thenReturn(function);
    when(api.arguments(any(), any()))
        .thenAnswer(
            call -> {
              struct = call.getArgument(0);
              return new Pointer();
            });
    doAnswer(call -> launches.add(launch(call.getArgument(1), call.getArgument(2))))
        .when(api)
        .launch(eq(function), any(), any(), eq(0), eq(stream), any());
    return new CopyKernel(api, 0);
  }

  private Launch launch(int[] grid, int[] block) {
    assertArrayEquals(new int[] {256, 1, 1}, block);
    assertEquals(1, grid[2]);
    int row = CopyKernel.MAX_COPIES * Long.BYTES;
    List<List<Long>> copies =
        IntStream.range(0, grid[1])
            .mapToObj(
                i ->
                    List.of(
                        struct.getLong(i * Long.BYTES),
                        struct.getLong(row + i * Long.BYTES),
                        struct.getLong(2 * row + i * Long.BYTES)))
            .toList();
    return new Launch(copies, grid[0]);
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 169, 170, 171, 340, 341})
  void eachCopyIsInOneLaunch(int count) {
    CopyKernel kernel = kernel();
    List<List<Long>> expected =
        LongStream.range(0, count)
            .mapToObj(i -> List.of(1000 + 10 * i, 90_000 + 10 * i, 2 * i + 2))
            .toList();
    for (int round = 0; round < 2; round++) {
      launches.clear();
      kernel.begin(stream);
      expected.forEach(copy -> kernel.copy(copy.get(0), copy.get(1), copy.get(2)));
      kernel.end();
      assertEquals(
          expected, launches.stream().flatMap(launch -> launch.copies().stream()).toList());
      assertEquals((count + 169) / 170, launches.size());
    }
  }

  @Test
  void emptyBuffersTakeNoPart() {
    CopyKernel kernel = kernel();
    kernel.begin(stream);
    kernel.copy(0, 0, 0);
    kernel.end();
    assertEquals(List.of(), launches);
    kernel.copy(16, 32, 4);
    kernel.copy(0, 0, 0);
    kernel.end();
    assertEquals(List.of(new Launch(List.of(List.of(16L, 32L, 4L)), 1)), launches);
  }

  @Test
  void theLongestCopySaysHowManyBlocksThereAreUpToTheGpusMost() {
    CopyKernel kernel = kernel();
    long[][] cases = {{16 << 10, 1}, {(16 << 10) + 2, 2}, {1L << 40, 8 * SMS}};
    for (long[] one : cases) {
      launches.clear();
      kernel.begin(stream);
      kernel.copy(16, 32, one[0]);
      kernel.end();
      assertEquals(one[1], launches.get(0).perCopy());
    }
    launches.clear();
    kernel.begin(stream);
    for (int i = 0; i < 100; i++) {
      kernel.copy(16, 32, i == 50 ? 1 << 20 : 2);
    }
    kernel.end();
    assertEquals(1, launches.get(0).perCopy());
    kernel.copy(16, 32, 2);
    kernel.end();
    assertEquals(1, launches.get(1).perCopy()); // the long one is forgotten
  }

  @Test
  void whatWasLeftByAnEarlierRowIsForgotten() {
    CopyKernel kernel = kernel();
    kernel.begin(stream);
    kernel.copy(16, 32, 4); // and then an exception, say, because a buffer is closed
    kernel.begin(stream);
    kernel.copy(48, 64, 6);
    kernel.end();
    assertEquals(List.of(new Launch(List.of(List.of(48L, 64L, 6L)), 1)), launches);
  }

  @Test
  void theCompiledKernelTakesAsMuch() {
    String ptx = new String(KernelImages.read("copy_many.compute_90.ptx"), StandardCharsets.UTF_8);
    kernel();
    assertTrue(ptx.contains("copy_many_param_0[" + struct.capacity() + "]"), ptx);
  }
}
