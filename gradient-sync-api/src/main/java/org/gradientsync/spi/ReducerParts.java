package org.gradientsync.spi;

import java.nio.ByteBuffer;

/**
 * What the library offers to reducers that build on its own: reducers of other memory, and memory
 * that the ranks of a node share. All methods but {@link #hostDevice} are collective.
 */
public interface ReducerParts {
  /** The size of a message of host memory in bytes: fits in the second-level cache. */
  int HOST_CHUNK_BYTES = 256 << 10;

  /**
   * {@return a new reducer, which the caller closes, that hands the device's memory to the
   * transport} {@link AbstractDeviceBuffer#nativeView} is what {@link Transport#sender} gets. The
   * device adds.
   *
   * @param context the ranks, and a device whose memory the transport can read and write
   * @param name the reducer's {@link Reducer#name}
   * @param chunkBytes the size of a message in bytes, the same on all ranks; a multiple of 8
   */
  Reducer overMessages(SyncContext context, String name, int chunkBytes);

  /**
   * {@return a new reducer, which the caller closes: the fastest of host memory that all ranks can
   * use}
   *
   * @param context the ranks; its device does not count
   * @param host a device that {@link #hostDevice} returned
   */
  Reducer inHostMemory(SyncContext context, BackendDevice host);

  /** {@return a new device for host memory, which the caller closes} */
  BackendDevice hostDevice();

  /**
   * {@return for each rank new memory, all zeros, in native byte order, which all ranks of a node
   * have mapped} Its files have no names, so nothing is left behind, however the ranks end.
   *
   * @param context the ranks, all on one node
   * @param bytes the size for each rank, more than 0
   * @throws org.gradientsync.UnavailableException on all ranks if one of them fails
   */
  ByteBuffer[] memoryOfNode(SyncContext context, int bytes);
}
