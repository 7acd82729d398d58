package org.gradientsync.mpi.direct;

import com.sun.jna.Native;
import com.sun.jna.Pointer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * A little memory that MPI writes to. Java reads it through a buffer, which the JIT compiler turns
 * into a load.
 *
 * @param bytes the memory
 * @param address its address, valid while {@code bytes} is reachable
 */
record NativeBlock(ByteBuffer bytes, long address) {
  static NativeBlock of(int size) {
    ByteBuffer bytes = ByteBuffer.allocateDirect(size).order(ByteOrder.nativeOrder());
    return new NativeBlock(bytes, addressOf(bytes));
  }

  /** The address of a direct buffer's first byte. */
  static long addressOf(ByteBuffer memory) {
    if (!memory.isDirect()) {
      throw new IllegalArgumentException(
          "MPI takes direct buffers only: bytes=" + memory.capacity());
    }
    return Pointer.nativeValue(Native.getDirectBufferPointer(memory));
  }
}
