package org.gradientsync.cuda.compute;

/**
 * The number of blocks and of threads per block that run a kernel, in up to three dimensions.
 *
 * @param blocksX 1 to 2147483647
 * @param blocksY 1 to 65535
 * @param blocksZ 1 to 65535
 * @param threadsX threads per block, 1 to 1024; the product of all three dimensions is at most 1024
 * @param threadsY 1 to 1024
 * @param threadsZ 1 to 64
 * @param sharedBytes dynamic shared memory per block in bytes, 0 or more
 */
public record Grid(
    int blocksX,
    int blocksY,
    int blocksZ,
    int threadsX,
    int threadsY,
    int threadsZ,
    int sharedBytes) {
  private static final int MAX_BLOCKS_YZ = 65_535;
  private static final int MAX_THREADS = 1024;
  private static final int MAX_THREADS_Z = 64;

  /**
   * Checks the ranges.
   *
   * @param blocksX 1 to 2147483647
   * @param blocksY 1 to 65535
   * @param blocksZ 1 to 65535
   * @param threadsX 1 to 1024
   * @param threadsY 1 to 1024
   * @param threadsZ 1 to 64
   * @param sharedBytes 0 or more
   * @throws IllegalArgumentException if a value, or the number of threads per block, is out of
   *     range
   */
  public Grid {
    require("blocksX", blocksX, 1, Integer.MAX_VALUE);
    require("blocksY", blocksY, 1, MAX_BLOCKS_YZ);
    require("blocksZ", blocksZ, 1, MAX_BLOCKS_YZ);
    require("threadsX", threadsX, 1, MAX_THREADS);
    require("threadsY", threadsY, 1, MAX_THREADS);
    require("threadsZ", threadsZ, 1, MAX_THREADS_Z);
    require("threads", threadsX * threadsY * threadsZ, 1, MAX_THREADS);
    require("sharedBytes", sharedBytes, 0, Integer.MAX_VALUE);
  }

  /**
   * A one-dimensional grid.
   *
   * @param blocks the number of blocks
   * @param threads threads per block
   * @return the grid
   */
  public static Grid of(int blocks, int threads) {
    return new Grid(blocks, 1, 1, threads, 1, 1, 0);
  }

  /**
   * A two-dimensional grid.
   *
   * @param blocksX blocks along x
   * @param blocksY blocks along y
   * @param threadsX threads per block along x
   * @param threadsY threads per block along y
   * @return the grid
   */
  public static Grid of(int blocksX, int blocksY, int threadsX, int threadsY) {
    return new Grid(blocksX, blocksY, 1, threadsX, threadsY, 1, 0);
  }

  /**
   * A one-dimensional grid with a thread for each element. The last block may have threads without
   * an element, and there is one block even for 0 elements, so the kernel must compare its index
   * with the count.
   *
   * @param elements the number of elements, from 0 to 2147483647 times {@code threads}
   * @param threads threads per block
   * @return the grid
   */
  public static Grid covering(long elements, int threads) {
    require("threads", threads, 1, MAX_THREADS);
    require("elements", elements, 0, (long) Integer.MAX_VALUE * threads);
    return of((int) Math.max(1, (elements + threads - 1) / threads), threads);
  }

  /**
   * The same grid with dynamic shared memory.
   *
   * @param bytes bytes per block, 0 or more
   * @return the grid
   */
  public Grid withSharedBytes(int bytes) {
    return new Grid(blocksX, blocksY, blocksZ, threadsX, threadsY, threadsZ, bytes);
  }

  int[] blocks() {
    return new int[] {blocksX, blocksY, blocksZ};
  }

  int[] threads() {
    return new int[] {threadsX, threadsY, threadsZ};
  }

  private static void require(String name, long value, long from, long to) {
    if (value < from || value > to) {
      throw new IllegalArgumentException(
          "grid is out of range: " + name + "=" + value + ", from=" + from + ", to=" + to);
    }
  }
}
