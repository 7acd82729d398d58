package org.gradientsync.core.rendezvous;

import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.LongBuffer;
import java.util.function.IntUnaryOperator;
import org.gradientsync.Communicator;
import org.gradientsync.core.backend.Agreement;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.core.host.SharedFiles;

/**
 * Memory of each rank of a node, mapped by all of them. The files have no names once every rank has
 * mapped them, so nothing is left behind, however the ranks end. Files of another user or of
 * another size are not mapped.
 *
 * @param files create this rank's memory; null if nobody needs them
 * @param owners of the files of each rank; only if there are files
 * @param memory of each rank, in native byte order
 */
public record NodeMemory(SharedFiles files, SharedFiles.Owner[] owners, ByteBuffer[] memory) {
  public static NodeMemory share(Communicator communicator, int bytes) {
    return share(communicator, rank -> bytes, new SharedFiles());
  }

  /** Creates and maps zeros of all ranks on one node, or throws on all of them. Collective. */
  public static NodeMemory share(
      Communicator communicator, IntUnaryOperator bytes, SharedFiles files) {
    int size = communicator.size();
    ByteBuffer[] memory = new ByteBuffer[size];
    String failure = "";
    long id = -1;
    try {
      SharedFiles.Writable own = files.createWritable(bytes.applyAsInt(communicator.rank()));
      memory[communicator.rank()] = own.memory();
      id = own.id();
    } catch (UncheckedIOException e) {
      failure = e.toString();
    }
    SharedFiles.Owner owner = files.owner();
    long[] announced = {owner.namespace(), owner.process(), owner.secret(), id};
    LongBuffer found = LongBuffer.allocate(announced.length * size);
    communicator.allGather(LongBuffer.wrap(announced), found);
    SharedFiles.Owner[] owners = new SharedFiles.Owner[size];
    for (int peer = 0; peer < size; peer++) {
      int at = announced.length * peer;
      owners[peer] = new SharedFiles.Owner(found.get(at), found.get(at + 1), found.get(at + 2));
      long peersId = found.get(at + 3);
      if (peer != communicator.rank() && peersId >= 0) {
        try {
          memory[peer] = SharedFiles.openWritable(owners[peer], peersId, bytes.applyAsInt(peer));
        } catch (UncheckedIOException e) {
          failure = e.toString();
        }
      }
    }
    try {
      Agreement.requireAll(communicator, failure);
    } finally {
      files.release(id);
    }
    return new NodeMemory(files, owners, memory);
  }

  /** Private zeros of a rank that shares no memory; files may be null. */
  public static NodeMemory ofOne(int bytes, SharedFiles files) {
    SharedFiles.Owner[] owners = {files == null ? null : files.owner()};
    return new NodeMemory(files, owners, new ByteBuffer[] {HostBuffers.allocate(bytes)});
  }

  /** Keeps the files: the other ranks may still be reading. */
  void keep() {
    if (files != null) {
      files.keep();
    }
  }

  public ByteBuffer of(int rank) {
    return memory[rank];
  }

  public SharedFiles.Owner owner(int rank) {
    return owners[rank];
  }
}
