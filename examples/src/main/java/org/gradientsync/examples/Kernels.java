package org.gradientsync.examples;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;

/** Loads the programs' own kernels: the PTX that the build makes from src/main/cuda. */
final class Kernels {
  private Kernels() {}

  /** Returns the PTX of a .cu file, by its name without the extension. */
  static String ptx(String name) {
    try (InputStream in = Kernels.class.getResourceAsStream(name + ".ptx")) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new IllegalStateException("the jar is damaged: resource=" + name + ".ptx", e);
    }
  }
}
