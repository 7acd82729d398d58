package org.gradientsync.mpi.direct;

import java.nio.ByteBuffer;
import java.util.BitSet;
import org.gradientsync.mpi.binding.MpiComm;
import org.gradientsync.mpi.binding.MpiFailure;
import org.gradientsync.mpi.binding.MpiRequest;
import org.gradientsync.spi.Transport;

/** A communicator by its handle. */
final class DirectComm implements MpiComm {
  /** A function that creates a persistent request. */
  private interface Init {
    int call(long memory, int count, long type, int peer, int tag, long comm, long request);
  }

  private final MpiAbi abi;
  private final long comm;
  private int size; // 0 until somebody has asked

  DirectComm(MpiAbi abi, long comm) {
    this.abi = abi;
    this.comm = comm;
  }

  /** Makes MPI return codes, instead of ending the job. */
  DirectComm returnErrors() throws MpiFailure {
    Codes.check(Functions.MPI_Comm_set_errhandler(comm, abi.errorsReturn()));
    return this;
  }

  @Override
  public int rank() throws MpiFailure {
    NativeBlock rank = NativeBlock.of(Integer.BYTES);
    Codes.check(Functions.MPI_Comm_rank(comm, rank.address()));
    return rank.bytes().getInt(0);
  }

  @Override
  public int size() throws MpiFailure {
    if (size == 0) {
      NativeBlock answer = NativeBlock.of(Integer.BYTES);
      Codes.check(Functions.MPI_Comm_size(comm, answer.address()));
      size = answer.bytes().getInt(0);
    }
    return size;
  }

  @Override
  public MpiComm duplicate() throws MpiFailure {
    NativeBlock copy = NativeBlock.of(Long.BYTES);
    Codes.check(Functions.MPI_Comm_dup(comm, copy.address()));
    return new DirectComm(abi, abi.handle(copy.bytes())).returnErrors();
  }

  @Override
  public MpiComm node() throws MpiFailure {
    NativeBlock part = NativeBlock.of(Long.BYTES);
    Codes.check(
        Functions.MPI_Comm_split_type(
            comm, abi.sharedMemory(), rank(), abi.noInfo(), part.address()));
    return new DirectComm(abi, abi.handle(part.bytes()));
  }

  @Override
  public int broadcast(int number) throws MpiFailure {
    NativeBlock first = NativeBlock.of(Integer.BYTES);
    first.bytes().putInt(0, number);
    Codes.check(Functions.MPI_Bcast(first.address(), 1, abi.ints(), 0, comm));
    return first.bytes().getInt(0);
  }

  @Override
  public int[] allGather(int number) throws MpiFailure {
    NativeBlock own = NativeBlock.of(Integer.BYTES);
    own.bytes().putInt(0, number);
    int[] numbers = new int[size()];
    NativeBlock all = NativeBlock.of(numbers.length * Integer.BYTES);
    Codes.check(
        Functions.MPI_Allgather(own.address(), 1, abi.ints(), all.address(), 1, abi.ints(), comm));
    all.bytes().asIntBuffer().get(numbers);
    return numbers;
  }

  @Override
  public MpiRequest allGather(ByteBuffer own, ByteBuffer all) throws MpiFailure {
    DirectRequest request = new DirectRequest();
    int bytes = own.capacity();
    Codes.check(
        Functions.MPI_Iallgather(
            NativeBlock.addressOf(own),
            bytes,
            abi.bytes(),
            NativeBlock.addressOf(all),
            bytes,
            abi.bytes(),
            comm,
            request.handle()));
    return request;
  }

  @Override
  public MpiRequest barrier() throws MpiFailure {
    DirectRequest request = new DirectRequest();
    Codes.check(Functions.MPI_Ibarrier(comm, request.handle()));
    return request;
  }

  @Override
  public MpiRequest sender(ByteBuffer memory, int peer, int tag) throws MpiFailure {
    requireRank(peer);
    return persistent(Functions::MPI_Send_init, memory, peer, tag);
  }

  @Override
  public MpiRequest receiver(ByteBuffer memory, int peer, int tag) throws MpiFailure {
    if (peer == Transport.ANY_RANK) {
      return persistent(Functions::MPI_Recv_init, memory, abi.anySource(), tag);
    }
    requireRank(peer);
    return persistent(Functions::MPI_Recv_init, memory, peer, tag);
  }

  private MpiRequest persistent(Init init, ByteBuffer memory, int peer, int tag) throws MpiFailure {
    DirectRequest request = new DirectRequest();
    Codes.check(
        init.call(
            NativeBlock.addressOf(memory),
            memory.capacity(),
            abi.bytes(),
            peer,
            tag,
            comm,
            request.handle()));
    return request;
  }

  /** An MPI that was built to check nothing would read beyond its tables. */
  private void requireRank(int peer) throws MpiFailure {
    if (peer < 0 || peer >= size()) {
      throw new IllegalArgumentException("no such rank: peer=" + peer + ", size=" + size());
    }
  }

  @Override
  public BitSet acknowledgeLosses() throws MpiFailure {
    return Ulfm.acknowledge(comm, size());
  }

  @Override
  public void abort(int code) throws MpiFailure {
    Codes.check(Functions.MPI_Abort(comm, code));
  }

  @Override
  public void free() throws MpiFailure {
    NativeBlock handle = NativeBlock.of(Long.BYTES);
    if (abi.handleBytes() == Long.BYTES) {
      handle.bytes().putLong(0, comm);
    } else {
      handle.bytes().putInt(0, (int) comm);
    }
    Codes.check(Functions.MPI_Comm_free(handle.address()));
  }
}
