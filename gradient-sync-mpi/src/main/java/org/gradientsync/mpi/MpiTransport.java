package org.gradientsync.mpi;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Optional;
import org.gradientsync.mpi.binding.MpiJob;
import org.gradientsync.spi.JobProcess;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Transport;

/** Messages between the ranks of an mpirun job. */
final class MpiTransport implements Transport {
  private final MpiJob mpi;
  private final int[] nodes;

  MpiTransport(MpiJob mpi) {
    this.mpi = mpi;
    this.nodes = mpi.nodes();
  }

  @Override
  public String name() {
    return MpiLauncher.NAME;
  }

  @Override
  public int rank() {
    return mpi.rank();
  }

  @Override
  public int size() {
    return mpi.size();
  }

  @Override
  public int nodeOf(int rank) {
    return nodes[rank];
  }

  @Override
  public String placeOf(int rank) {
    return mpi.placeOf(rank);
  }

  @Override
  public boolean isAlive(int rank) {
    return mpi.isAlive(rank);
  }

  @Override
  public Optional<JobProcess> process() {
    return Optional.of(mpi);
  }

  @Override
  public Message sender(ByteBuffer memory, int peer, int tag) {
    return mpi.sender(memory, peer, tag);
  }

  @Override
  public Message receiver(ByteBuffer memory, int peer, int tag) {
    return mpi.receiver(memory, peer, tag);
  }

  @Override
  public void goOnWithout(List<Integer> lost) {
    mpi.goOnWithout(lost);
  }

  @Override
  public void close() {
    // MPI is finalized when the JVM exits, because it cannot be initialized twice
  }
}
