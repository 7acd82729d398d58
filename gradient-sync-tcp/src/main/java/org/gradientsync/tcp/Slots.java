package org.gradientsync.tcp;

import java.util.Arrays;

/** Numbers for objects, used again after they were freed. Allocates only to grow. */
final class Slots<T> {
  private Object[] used = new Object[16];
  private int[] free = new int[16];
  private int freeCount;
  private int size;

  int add(T object) {
    int number = freeCount > 0 ? free[--freeCount] : size++;
    if (number == used.length) {
      used = Arrays.copyOf(used, 2 * number);
      free = Arrays.copyOf(free, 2 * number);
    }
    used[number] = object;
    return number;
  }

  /** Returns null if the number, which a peer has sent, is not in use. */
  @SuppressWarnings("unchecked")
  T get(int number) {
    return number < 0 || number >= size ? null : (T) used[number];
  }

  void set(int number, T object) {
    used[number] = object;
  }

  void free(int number) {
    used[number] = null;
    free[freeCount++] = number;
  }

  int size() {
    return size;
  }
}
