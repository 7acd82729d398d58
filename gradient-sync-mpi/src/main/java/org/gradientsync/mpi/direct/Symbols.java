package org.gradientsync.mpi.direct;

import com.sun.jna.NativeLibrary;

/** The symbols of a library. */
final class Symbols {
  private Symbols() {}

  static boolean has(NativeLibrary library, String symbol) {
    try {
      return library.getGlobalVariableAddress(symbol) != null;
    } catch (UnsatisfiedLinkError e) {
      return false;
    }
  }
}
