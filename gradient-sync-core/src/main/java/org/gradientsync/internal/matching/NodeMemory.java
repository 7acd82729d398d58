package org.gradientsync.internal.matching;

import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.LongBuffer;
import java.util.function.IntUnaryOperator;
import org.gradientsync.Communicator;
import org.gradientsync.ReduceOp;
import org.gradientsync.UnavailableException;
import org.gradientsync.internal.host.HostBuffers;
import org.gradientsync.internal.host.SharedFiles;

/**
 * Memory of each rank of a node, mapped by all of them. The files have no names once every rank has
 * mapped them, so nothing is left behind, however the ranks end. Files of another user or of
 * another size are not mapped.
 */
public final class NodeMemory {
  private final SharedFiles files; // null if no other process maps the memory
  private final long[] processes;
  private final long[] secrets;
  private final ByteBuffer[] memory;

  private NodeMemory(SharedFiles files, long[] processes, long[] secrets, ByteBuffer[] memory) {
    this.files = files;
    this.processes = processes;
    this.secrets = secrets;
    this.memory = memory;
  }

  /** Whether the ranks are on one node; the same answer on all of them. */
  public static boolean isPossible(Communicator communicator) {
    return communicator.nodeCount() == 1;
  }

  /**
   * Creates and maps the memory. Collective.
   *
   * @param communicator the ranks, all on one node
   * @param bytes the size for each rank
   * @return the memory, all zeros
   * @throws UnavailableException on all ranks if one of them fails
   */
  public static NodeMemory share(Communicator communicator, int bytes) {
    return share(communicator, bytes, new SharedFiles());
  }

  /**
   * Creates and maps the memory. Collective.
   *
   * @param communicator the ranks, all on one node
   * @param bytes the size for each rank
   * @param files create this rank's memory
   * @return the memory, all zeros
   * @throws UnavailableException on all ranks if one of them fails
   */
  public static NodeMemory share(Communicator communicator, int bytes, SharedFiles files) {
    return share(communicator, rank -> bytes, files);
  }

  /**
   * Creates and maps the memory. Collective.
   *
   * @param communicator the ranks, all on one node
   * @param bytes the size for a rank
   * @param files create this rank's memory
   * @return the memory, all zeros
   * @throws UnavailableException on all ranks if one of them fails
   */
  public static NodeMemory share(
      Communicator communicator, IntUnaryOperator bytes, SharedFiles files) {
    int size = communicator.size();
    ByteBuffer[] memory = new ByteBuffer[size];
    String failure = "another rank failed";
    long id = -1;
    try {
      SharedFiles.Writable own = files.createWritable(bytes.applyAsInt(communicator.rank()));
      memory[communicator.rank()] = own.memory();
      id = own.id();
    } catch (UncheckedIOException e) {
      failure = e.toString();
    }
    long[] found = new long[3 * size];
    communicator.allGather(
        LongBuffer.wrap(new long[] {files.process(), files.secret(), id}), LongBuffer.wrap(found));
    long[] mapped = {id < 0 ? 0 : 1};
    long[] processes = new long[size];
    long[] secrets = new long[size];
    for (int peer = 0; peer < size; peer++) {
      processes[peer] = found[3 * peer];
      secrets[peer] = found[3 * peer + 1];
      if (peer != communicator.rank() && found[3 * peer + 2] >= 0) {
        try {
          memory[peer] =
              SharedFiles.openWritable(
                  processes[peer], secrets[peer], found[3 * peer + 2], bytes.applyAsInt(peer));
        } catch (UncheckedIOException e) {
          failure = e.toString();
          mapped[0] = 0;
        }
      }
    }
    communicator.allReduce(LongBuffer.wrap(mapped), ReduceOp.MIN);
    files.release(id);
    if (mapped[0] == 0) {
      throw new UnavailableException(
          "shared memory cannot be mapped, rank=" + communicator.rank() + ": " + failure);
    }
    return new NodeMemory(files, processes, secrets, memory);
  }

  /** Private memory of a rank that is alone on its node: all zeros. */
  public static NodeMemory ofOne(int bytes, SharedFiles files) {
    return new NodeMemory(
        files,
        new long[] {files.process()},
        new long[] {files.secret()},
        new ByteBuffer[] {HostBuffers.allocate(bytes)});
  }

  /** Private memory of a rank that shares none: all zeros. */
  static NodeMemory ofOne(int bytes) {
    ByteBuffer[] memory = {HostBuffers.allocate(bytes)};
    return new NodeMemory(null, new long[1], new long[1], memory);
  }

  /** Keeps the files: the other ranks may still be reading. */
  void keep() {
    if (files != null) {
      files.keep();
    }
  }

  /** The memory of a rank, in native byte order. */
  public ByteBuffer of(int rank) {
    return memory[rank];
  }

  public SharedFiles files() {
    return files;
  }

  public long process(int rank) {
    return processes[rank];
  }

  public long secret(int rank) {
    return secrets[rank];
  }
}
