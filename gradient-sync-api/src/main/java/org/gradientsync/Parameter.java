package org.gradientsync;

import java.util.Objects;

/**
 * One parameter of a model, as far as {@link GradientBuckets} needs to know it: its gradient is as
 * large.
 *
 * @param name how exceptions call it, and how the ranks know that they mean the same one: alike on
 *     all of them, and no other parameter's of the model
 * @param type the element type of the gradient, a floating-point type
 * @param count the number of elements, 0 or more
 */
public record Parameter(String name, DataType type, long count) {
  private static final long MOST =
      Long.MAX_VALUE / 64; // so that bytes, and sums of them, fit a long

  /**
   * Checks it.
   *
   * @param name not null
   * @param type a floating-point type
   * @param count 0 or more
   * @throws IllegalArgumentException if the count is negative, or averages of the type are not
   *     defined
   */
  public Parameter {
    Objects.requireNonNull(name, "name");
    Objects.requireNonNull(type, "type");
    if (count < 0 || count > MOST) {
      throw new IllegalArgumentException(
          "count is out of range: parameter=" + name + ", count=" + count);
    }
    if (!type.isFloatingPoint()) {
      throw new IllegalArgumentException(
          "gradients of this type cannot be averaged: parameter=" + name + ", type=" + type);
    }
  }

  @Override
  public String toString() {
    return name + " " + type + "[" + count + "]";
  }
}
