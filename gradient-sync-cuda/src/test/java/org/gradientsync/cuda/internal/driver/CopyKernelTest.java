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
  /** What one launch copies, the first block of each copy, and the number of blocks. */
  private record Launch(List<List<Long>> copies, List<Integer> first, int blocks) {}

  private final CudaApi api = mock(CudaApi.class);
  private final CUfunction function = new CUfunction();
  private final CUstream stream = new CUstream();
  private final List<Launch> launches = new ArrayList<>();
  private ByteBuffer struct;

  private CopyKernel kernel() {
    when(api.capability(anyInt())).thenReturn(100);
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
    assertArrayEquals(new int[] {1, 1}, new int[] {grid[1], grid[2]});
    int row = CopyKernel.MAX_COPIES * Long.BYTES;
    int rows = 3 * row + CopyKernel.MAX_COPIES * Integer.BYTES;
    int count = struct.getInt(rows);
    List<List<Long>> copies =
        IntStream.range(0, count)
            .mapToObj(
                i ->
                    List.of(
                        struct.getLong(i * Long.BYTES),
                        struct.getLong(row + i * Long.BYTES),
                        struct.getLong(2 * row + i * Long.BYTES)))
            .toList();
    List<Integer> first =
        IntStream.range(0, count)
            .mapToObj(i -> struct.getInt(3 * row + i * Integer.BYTES))
            .toList();
    return new Launch(copies, first, grid[0]);
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 145, 146, 147, 292, 293})
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
      assertEquals((count + 145) / 146, launches.size());
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
    assertEquals(List.of(new Launch(List.of(List.of(16L, 32L, 4L)), List.of(0), 1)), launches);
  }

  @Test
  void eachTileOfEachCopyHasABlock() {
    CopyKernel kernel = kernel();
    kernel.begin(stream);
    kernel.copy(16, 32, 2);
    kernel.copy(16, 32, CopyKernel.TILE);
    kernel.copy(16, 32, CopyKernel.TILE + 2);
    kernel.copy(16, 32, 100L << 30);
    kernel.end();
    assertEquals(List.of(0, 1, 2, 4), launches.get(0).first());
    assertEquals(4 + (100L << 30) / CopyKernel.TILE, launches.get(0).blocks());
    kernel.copy(16, 32, 2);
    kernel.end();
    assertEquals(1, launches.get(1).blocks()); // the long ones are forgotten
  }

  @Test
  void whatWasLeftByAnEarlierRowIsForgotten() {
    CopyKernel kernel = kernel();
    kernel.begin(stream);
    kernel.copy(16, 32, 4); // and then an exception, say, because a buffer is closed
    kernel.begin(stream);
    kernel.copy(48, 64, 6);
    kernel.end();
    assertEquals(List.of(new Launch(List.of(List.of(48L, 64L, 6L)), List.of(0), 1)), launches);
  }

  @Test
  void theCompiledKernelTakesAsMuch() {
    String ptx = new String(KernelImages.read("copy_many.compute_90.ptx"), StandardCharsets.UTF_8);
    kernel();
    assertTrue(ptx.contains("copy_many_param_0[" + struct.capacity() + "]"), ptx);
  }
}
