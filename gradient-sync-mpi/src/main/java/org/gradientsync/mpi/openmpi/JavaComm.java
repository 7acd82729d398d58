package org.gradientsync.mpi.openmpi;

import java.nio.ByteBuffer;
import java.util.BitSet;
import mpi.Comm;
import mpi.Info;
import mpi.Intracomm;
import mpi.MPI;
import org.gradientsync.mpi.binding.MpiComm;
import org.gradientsync.mpi.binding.MpiFailure;
import org.gradientsync.mpi.binding.MpiRequest;
import org.gradientsync.spi.Transport;

/** A communicator of the bindings. */
final class JavaComm implements MpiComm {
  private final Intracomm comm;

  JavaComm(Intracomm comm) {
    this.comm = comm;
  }

  @Override
  public int rank() throws MpiFailure {
    return JavaBindings.call(comm::getRank);
  }

  @Override
  public int size() throws MpiFailure {
    return JavaBindings.call(comm::getSize);
  }

  @Override
  public MpiComm duplicate() throws MpiFailure {
    Intracomm copy = JavaBindings.call(comm::dup);
    JavaBindings.run(() -> copy.setErrhandler(MPI.ERRORS_RETURN));
    return new JavaComm(copy);
  }

  @Override
  public MpiComm node() throws MpiFailure {
    return new JavaComm(
        JavaBindings.call(() -> comm.splitType(Comm.TYPE_SHARED, comm.getRank(), new Info())));
  }

  @Override
  public int broadcast(int number) throws MpiFailure {
    int[] first = {number};
    JavaBindings.run(() -> comm.bcast(first, 1, MPI.INT, 0));
    return first[0];
  }

  @Override
  public int[] allGather(int number) throws MpiFailure {
    int[] all = new int[size()];
    JavaBindings.run(() -> comm.allGather(new int[] {number}, 1, MPI.INT, all, 1, MPI.INT));
    return all;
  }

  @Override
  public MpiRequest allGather(ByteBuffer own, ByteBuffer all) throws MpiFailure {
    int bytes = own.capacity();
    return new JavaRequest(
        JavaBindings.call(() -> comm.iAllGather(own, bytes, MPI.BYTE, all, bytes, MPI.BYTE)));
  }

  @Override
  public MpiRequest barrier() throws MpiFailure {
    return new JavaRequest(JavaBindings.call(comm::iBarrier));
  }

  @Override
  public MpiRequest sender(ByteBuffer memory, int peer, int tag) throws MpiFailure {
    return new JavaRequest(
        JavaBindings.call(() -> comm.sendInit(memory, memory.capacity(), MPI.BYTE, peer, tag)));
  }

  @Override
  public MpiRequest receiver(ByteBuffer memory, int peer, int tag) throws MpiFailure {
    int sender = peer == Transport.ANY_RANK ? MPI.ANY_SOURCE : peer;
    return new JavaRequest(
        JavaBindings.call(() -> comm.recvInit(memory, memory.capacity(), MPI.BYTE, sender, tag)));
  }

  @Override
  public BitSet acknowledgeLosses() {
    throw new UnsupportedOperationException("MPI ends the job");
  }

  @Override
  public void abort(int code) throws MpiFailure {
    JavaBindings.run(() -> comm.abort(code));
  }

  @Override
  public void free() throws MpiFailure {
    JavaBindings.run(comm::free);
  }
}
