package org.gradientsync.mpi.direct;

import java.nio.charset.StandardCharsets;
import org.gradientsync.mpi.binding.MpiFailure;

/** Turns codes of MPI into exceptions. */
final class Codes {
  private static final int TEXT_BYTES = 1024; // MPI_MAX_ERROR_STRING and more

  private Codes() {}

  static void check(int code) throws MpiFailure {
    if (code != 0) {
      throw failure(code);
    }
  }

  private static MpiFailure failure(int code) {
    NativeBlock text = NativeBlock.of(TEXT_BYTES);
    NativeBlock number = NativeBlock.of(Integer.BYTES);
    String message = "unknown error";
    if (Functions.MPI_Error_string(code, text.address(), number.address()) == 0) {
      message = text(text);
    }
    number.bytes().putInt(0, -1);
    Functions.MPI_Error_class(code, number.address());
    return new MpiFailure(message, code, number.bytes().getInt(0), null);
  }

  /** Reads up to the zero that ends a text of C. */
  static String text(NativeBlock block) {
    byte[] bytes = new byte[block.bytes().capacity()];
    block.bytes().get(0, bytes);
    int length = 0;
    while (length < bytes.length && bytes[length] != 0) {
      length++;
    }
    return new String(bytes, 0, length, StandardCharsets.UTF_8);
  }
}
