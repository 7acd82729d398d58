package org.gradientsync.core.buckets;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.gradientsync.DataType;
import org.gradientsync.GradientBuckets.Piece;
import org.gradientsync.Parameter;
import org.junit.jupiter.api.Test;

/** Tests the bucket and offset of each gradient. */
class BucketLayoutTest {
  private static final DataType[] TYPES = {
    DataType.FLOAT16, DataType.BFLOAT16, DataType.FLOAT32, DataType.FLOAT64
  };

  private static Parameter floats(long count) {
    return new Parameter("w", DataType.FLOAT32, count);
  }

  private static BucketLayout layout(
      List<Parameter> parameters, int[] order, long firstBytes, long bytes) {
    return new BucketLayout(parameters, order, firstBytes, bytes, 0, 1);
  }

  @Test
  void gradientsBeginAtMultiplesOf256Bytes() {
    for (DataType type : TYPES) {
      int line = 256 / type.sizeInBytes();
      List<Parameter> model =
          List.of(
              new Parameter("a", type, 1),
              new Parameter("b", type, line),
              new Parameter("c", type, line + 1),
              new Parameter("d", type, 0),
              new Parameter("e", type, 5));
      BucketLayout layout = layout(model, new int[] {0, 1, 2, 3, 4}, 1 << 20, 1 << 20);
      assertArrayEquals(new long[] {0, line, 2 * line, 4 * line, 4 * line}, layout.offsetOf);
      assertEquals(5L * line, layout.buckets.get(0).count);
      assertEquals(type, layout.buckets.get(0).type);
      assertEquals(-1, layout.flagOffset);
    }
  }

  @Test
  void aBucketIsClosedWhenItHasReachedItsSize() {
    // 256 bytes each
    List<Parameter> model = Collections.nCopies(6, floats(64));
    int[] order = {0, 1, 2, 3, 4, 5};
    assertArrayEquals(new int[] {0, 1, 1, 2, 2, 3}, layout(model, order, 256, 512).bucketOf);
    assertArrayEquals(new int[] {0, 0, 1, 1, 1, 2}, layout(model, order, 257, 513).bucketOf);
    assertArrayEquals(new int[] {0, 1, 2, 3, 4, 5}, layout(model, order, 1, 1).bucketOf);
    assertArrayEquals(
        new int[6], layout(model, order, Long.MAX_VALUE, 1).bucketOf, "only the first one");
    assertArrayEquals(
        new int[] {0, 1, 1, 1, 1, 1}, layout(model, order, 1, Long.MAX_VALUE).bucketOf);
  }

  @Test
  void theFirstInTheOrderLiesInTheFirstBucket() {
    List<Parameter> model = List.of(floats(10), floats(20), floats(30), floats(40));
    BucketLayout layout = layout(model, new int[] {3, 1, 0, 2}, 1, 512);
    assertArrayEquals(new int[] {1, 1, 2, 0}, layout.bucketOf);
    assertArrayEquals(new long[] {64, 0, 0, 0}, layout.offsetOf);
    assertEquals(List.of(3), layout.buckets.get(0).parameters);
    assertEquals(List.of(1, 0), layout.buckets.get(1).parameters);
    assertEquals(List.of(2), layout.buckets.get(2).parameters);
  }

  @Test
  void aLargeGradientIsNotCut() {
    List<Parameter> model = List.of(floats(3), floats(5_000_000_000L), floats(3));
    BucketLayout layout = layout(model, new int[] {2, 1, 0}, 1 << 20, 25 << 20);
    assertArrayEquals(new int[] {1, 0, 0}, layout.bucketOf);
    assertEquals(64 + 5_000_000_000L, layout.buckets.get(0).count);
  }

  @Test
  void bucketsAreInTheOrderInWhichTheyBecomeFull() {
    Parameter half = new Parameter("h", DataType.FLOAT16, 1);
    Parameter wide = new Parameter("d", DataType.FLOAT64, 1);
    // One bucket per type; the 16-bit and 64-bit gradients never fill theirs.
    List<Parameter> model = List.of(half, floats(64), wide, floats(64), floats(64), half);
    BucketLayout layout = layout(model, new int[] {0, 1, 2, 3, 4, 5}, 1 << 20, 512);
    assertEquals(
        List.of(DataType.FLOAT64, DataType.FLOAT32, DataType.FLOAT32, DataType.FLOAT16),
        layout.buckets.stream().map(b -> b.type).toList());
    assertArrayEquals(new int[] {3, 1, 0, 1, 2, 3}, layout.bucketOf);
  }

  @Test
  void flagsAreElementsBehindTheGradientsOfTheLastBucket() {
    List<Parameter> model = List.of(floats(3), new Parameter("h", DataType.FLOAT16, 200));
    int[] order = {0, 1};
    BucketLayout without = new BucketLayout(model, order, 1, 1, 0, 1);
    BucketLayout with = new BucketLayout(model, order, 1, 1, 130, 1);
    assertEquals(256, with.flagOffset);
    assertEquals(512, with.buckets.get(1).count);
    assertEquals(without.buckets.get(0).count, with.buckets.get(0).count);
    assertArrayEquals(without.offsetOf, with.offsetOf);
    BucketLayout empty = new BucketLayout(List.of(floats(0)), new int[] {0}, 1, 1, 3, 1);
    assertEquals(0, empty.flagOffset);
    assertTrue(empty.buckets.get(0).count >= 3);
  }

  @Test
  void bucketsConsistOfAlignedBlocks() {
    List<Parameter> model =
        List.of(floats(3), new Parameter("h", DataType.FLOAT16, 600), floats(0), floats(129));
    int[] order = {0, 1, 2, 3};
    BucketLayout whole = layout(model, order, 1, 1);
    BucketLayout blocks = new BucketLayout(model, order, 1, 1, 0, 3);
    assertTrue(blocks.isSameAs(whole)); // the padding is at the end
    assertEquals(
        List.of(3 * 64L, 2 * 3 * 128L, 3 * 64L),
        blocks.buckets.stream().map(bucket -> bucket.count).toList());
  }

  @Test
  void piecesAreThePartsOfParametersInABlock() {
    List<Parameter> model = List.of(floats(3), floats(0), floats(129), floats(64), floats(64));
    BucketLayout layout = new BucketLayout(model, new int[] {0, 1, 2, 3, 4}, 1, 2000, 0, 2);
    assertEquals(2, layout.buckets.size());
    assertEquals(2 * 64, layout.buckets.get(0).count); // the first is full with one parameter
    assertEquals(List.of(new Piece(0, 0, 0, 3)), layout.pieces(0, 0, 64, model));
    assertEquals(List.of(), layout.pieces(0, 64, 64, model)); // padding only
    assertEquals(6 * 64, layout.buckets.get(1).count); // 192 + 64 + 64, and padding
    assertEquals(List.of(new Piece(2, 0, 0, 129)), layout.pieces(1, 0, 192, model)); // and not 1
    assertEquals(
        List.of(new Piece(3, 0, 0, 64), new Piece(4, 0, 64, 64)),
        layout.pieces(1, 192, 192, model));
    assertEquals(
        List.of(new Piece(2, 128, 0, 1), new Piece(3, 0, 64, 64)),
        layout.pieces(1, 128, 128, model)); // begins within a parameter
  }

  @Test
  void nothingOverlapsInAnyModel() {
    Random random = new Random(7);
    for (int round = 0; round < 300; round++) {
      int size = 1 + random.nextInt(20);
      List<Parameter> model = new ArrayList<>();
      for (int i = 0; i < size; i++) {
        model.add(new Parameter("p", TYPES[random.nextInt(4)], random.nextInt(400)));
      }
      List<Integer> shuffled = new ArrayList<>(IntStream.range(0, size).boxed().toList());
      Collections.shuffle(shuffled, random);
      int[] order = shuffled.stream().mapToInt(Integer::intValue).toArray();
      long firstBytes = 1 + random.nextInt(3_000);
      long bytes = 1 + random.nextInt(3_000);
      check(model, order, firstBytes, bytes, random.nextBoolean());
    }
  }

  private static void check(
      List<Parameter> model, int[] order, long firstBytes, long bytes, boolean flag) {
    BucketLayout layout = new BucketLayout(model, order, firstBytes, bytes, flag ? 7 : 0, 1);
    List<Integer> seen = new ArrayList<>();
    int lastFull = -1;
    for (int b = 0; b < layout.buckets.size(); b++) {
      BucketLayout.Place bucket = layout.buckets.get(b);
      long end = 0;
      int full = -1;
      for (int parameter : bucket.parameters) {
        assertEquals(b, layout.bucketOf[parameter]);
        assertEquals(bucket.type, model.get(parameter).type());
        assertEquals(0, layout.offsetOf[parameter] * bucket.type.sizeInBytes() % 256);
        assertTrue(layout.offsetOf[parameter] >= end);
        end = layout.offsetOf[parameter] + model.get(parameter).count();
        int position = shuffledIndex(order, parameter);
        assertTrue(position > full, "in the order of readiness");
        full = position;
      }
      if (flag && b == layout.buckets.size() - 1) {
        assertTrue(layout.flagOffset >= end);
        end = layout.flagOffset + 7;
      }
      assertTrue(bucket.count >= end);
      assertTrue(full > lastFull, "becomes full after the bucket before");
      lastFull = full;
      seen.addAll(bucket.parameters);
    }
    Collections.sort(seen);
    assertEquals(IntStream.range(0, model.size()).boxed().toList(), seen);
  }

  private static int shuffledIndex(int[] order, int parameter) {
    return IntStream.range(0, order.length).filter(i -> order[i] == parameter).findAny().orElse(-1);
  }
}
