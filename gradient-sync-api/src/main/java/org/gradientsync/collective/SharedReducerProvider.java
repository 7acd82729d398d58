package org.gradientsync.collective;

import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.LongBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.UnavailableException;
import org.gradientsync.host.HostDevice;
import org.gradientsync.host.SharedFiles;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.Reducer;
import org.gradientsync.spi.ReducerProvider;
import org.gradientsync.spi.SyncContext;

/** Offers {@code shared}: processes of one node that read each other's host memory. */
public final class SharedReducerProvider implements ReducerProvider {
  @Override
  public String name() {
    return "shared";
  }

  @Override
  public int priority() {
    return 200;
  }

  @Override
  public Availability availability(SyncContext context) {
    Group group = context.group();
    if (!(context.device() instanceof HostDevice)) {
      return Availability.no(
          "the gradients are not in host memory: device=" + context.device().kind());
    }
    if (!isPossible(group)) {
      return Availability.no(
          "the ranks are threads of one JVM, or on several nodes: launcher="
              + group.transport().name());
    }
    return SharedFiles.availability();
  }

  /** Whether the ranks are processes of one node; the same answer on all of them. */
  boolean isPossible(Group group) {
    boolean oneNode = true;
    for (int peer = 0; peer < group.size(); peer++) {
      oneNode &= group.nodeOf(peer) == group.nodeOf(group.rank());
    }
    return oneNode && !group.transport().name().equals("local");
  }

  @Override
  public Reducer create(SyncContext context) {
    Group group = context.group();
    int size = group.size();
    GroupCommunicator communicator = new GroupCommunicator(group);
    SharedFiles files = new SharedFiles();
    int bytes = Board.bytes(size);
    ByteBuffer memory = null;
    String failure = "another rank failed";
    long boardId = -1;
    if (group.rank() == 0) {
      try {
        memory = files.createBoard(bytes);
        boardId = SharedFiles.lastId();
      } catch (UncheckedIOException e) {
        failure = e.toString();
      }
    }
    long[] found = new long[3 * size];
    communicator.allGather(
        LongBuffer.wrap(new long[] {files.process(), files.secret(), boardId}),
        LongBuffer.wrap(found));
    if (group.rank() != 0 && found[2] >= 0) {
      try {
        memory = SharedFiles.openBoard(found[0], found[1], found[2]);
      } catch (UncheckedIOException e) {
        failure = e.toString();
      }
    }
    long[] mapped = {memory == null ? 0 : 1};
    communicator.allReduce(LongBuffer.wrap(mapped), ReduceOp.MIN);
    files.release(boardId); // it has been mapped by all who will
    if (mapped[0] == 0) {
      throw new UnavailableException(
          "shared memory cannot be mapped, rank=" + group.rank() + ": " + failure);
    }
    long[] processes = new long[size];
    long[] secrets = new long[size];
    for (int peer = 0; peer < size; peer++) {
      processes[peer] = found[3 * peer];
      secrets[peer] = found[3 * peer + 1];
    }
    HostDevice device = (HostDevice) context.device();
    device.share(files);
    Board board = new Board(memory, group.rank(), size);
    group.meetOn(board);
    return new SharedReducer(name(), group, board, device, files, processes, secrets);
  }
}
