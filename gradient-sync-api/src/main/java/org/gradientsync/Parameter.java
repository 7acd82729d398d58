package org.gradientsync;

import java.util.Objects;

/**
 * One parameter of a model: the name, type and size that {@link GradientBuckets} needs. Its
 * gradient has the same size.
 *
 * @param name the name in exceptions, by which the ranks also compare their parameters: the same on
 *     all ranks, and unique in the model
 * @param type the element type of the gradient, a floating-point type
 * @param count the number of elements, 0 or more
 */
public record Parameter(String name, DataType type, long count) {
  private static final long MAX_COUNT =
      Long.MAX_VALUE / 64; // so that bytes, and sums of them, fit a long
  private static final int MAX_SHOWN = 200;

  /**
   * Checks the arguments.
   *
   * @param name not null
   * @param type a floating-point type
   * @param count 0 or more
   * @throws IllegalArgumentException if the count is negative or too large, or the type is an
   *     integer type
   */
  public Parameter {
    Objects.requireNonNull(name, "name");
    Objects.requireNonNull(type, "type");
    if (count < 0 || count > MAX_COUNT) {
      throw new IllegalArgumentException(
          "count is out of range: parameter=" + shown(name) + ", count=" + count);
    }
    if (!type.isFloatingPoint()) {
      throw new IllegalArgumentException(
          "gradients of this type cannot be averaged: parameter=" + shown(name) + ", type=" + type);
    }
  }

  private static String shown(String name) {
    return name.length() <= MAX_SHOWN
        ? name
        : name.substring(0, MAX_SHOWN / 2) + "..." + name.substring(name.length() - MAX_SHOWN / 2);
  }

  /** For errors, which shorten a name of more than 200 characters to its beginning and its end. */
  @Override
  public String toString() {
    return shown(name) + " " + type + "[" + count + "]";
  }
}
