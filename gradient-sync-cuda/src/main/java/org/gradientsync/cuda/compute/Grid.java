package org.gradientsync.cuda.compute;

/**
 * How many blocks of how many threads run a kernel, in up to three dimensions.
 *
 * @param blocksX 1 to 2147483647
 * @param blocksY 1 to 65535
 * @param blocksZ 1 to 65535
 * @param threadsX threads of each block, 1 to 1024; in all three dimensions together 1024 at most
 * @param threadsY 1 to 1024
 * @param threadsZ 1 to 64
 * @param sharedBytes dynamic shared memory of each block, 0 or more
 */
public record Grid(
    int blocksX,
    int blocksY,
    int blocksZ,
    int threadsX,
    int threadsY,
    int threadsZ,
    int sharedBytes) {
  private static final int MOST_BLOCKS = 65_535;
  private static final int MOST_THREADS = 1024;
  private static final int MOST_THREADS_Z = 64;

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
   * @throws IllegalArgumentException if one of them is left
   */
  public Grid {
    require("blocksX", blocksX, 1, Integer.MAX_VALUE);
    require("blocksY", blocksY, 1, MOST_BLOCKS);
    require("blocksZ", blocksZ, 1, MOST_BLOCKS);
    require("threadsX", threadsX, 1, MOST_THREADS);
    require("threadsY", threadsY, 1, MOST_THREADS);
    require("threadsZ", threadsZ, 1, MOST_THREADS_Z);
    require("threads", threadsX * threadsY * threadsZ, 1, MOST_THREADS);
    require("sharedBytes", sharedBytes, 0, Integer.MAX_VALUE);
  }

  /**
   * One dimension.
   *
   * @param blocks how many blocks
   * @param threads threads of each block
   * @return the grid
   */
  public static Grid of(int blocks, int threads) {
    return new Grid(blocks, 1, 1, threads, 1, 1, 0);
  }

  /**
   * Two dimensions.
   *
   * @param blocksX blocks along x
   * @param blocksY blocks along y
   * @param threadsX threads of each block along x
   * @param threadsY threads of each block along y
   * @return the grid
   */
  public static Grid of(int blocksX, int blocksY, int threadsX, int threadsY) {
    return new Grid(blocksX, blocksY, 1, threadsX, threadsY, 1, 0);
  }

  /**
   * A thread for each element. The last block may have more threads than elements are left, and
   * without elements there is still one block: the kernel compares its index with the count.
   *
   * @param elements 0 or more
   * @param threads threads of each block
   * @return the grid, in one dimension
   */
  public static Grid covering(long elements, int threads) {
    require("threads", threads, 1, MOST_THREADS);
    require("elements", elements, 0, (long) Integer.MAX_VALUE * threads);
    return of((int) Math.max(1, (elements + threads - 1) / threads), threads);
  }

  /**
   * The same with dynamic shared memory.
   *
   * @param bytes for each block
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
