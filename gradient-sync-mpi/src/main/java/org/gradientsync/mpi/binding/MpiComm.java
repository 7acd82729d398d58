package org.gradientsync.mpi.binding;

import java.nio.ByteBuffer;
import java.util.BitSet;
import org.gradientsync.spi.Transport;

/** A communicator of MPI, as far as a job needs it. All memory is that of direct buffers. */
public interface MpiComm {
  /**
   * This rank's number.
   *
   * @return from 0 to size - 1
   * @throws MpiFailure if MPI fails
   */
  int rank() throws MpiFailure;

  /**
   * The number of ranks.
   *
   * @return 1 or more
   * @throws MpiFailure if MPI fails
   */
  int size() throws MpiFailure;

  /**
   * Creates a communicator of the same ranks, whose errors are returned. Collective.
   *
   * @return the new communicator
   * @throws MpiFailure if MPI fails
   */
  MpiComm duplicate() throws MpiFailure;

  /**
   * Creates a communicator of the ranks that can share memory with this one, in their order.
   * Collective.
   *
   * @return the new communicator
   * @throws MpiFailure if MPI fails
   */
  MpiComm node() throws MpiFailure;

  /**
   * Passes on rank 0's number. Collective.
   *
   * @param number this rank's number
   * @return that of rank 0
   * @throws MpiFailure if MPI fails
   */
  int broadcast(int number) throws MpiFailure;

  /**
   * Exchanges numbers. Collective.
   *
   * @param number this rank's number
   * @return the numbers of all ranks
   * @throws MpiFailure if MPI fails
   */
  int[] allGather(int number) throws MpiFailure;

  /**
   * Begins to exchange the memory of all ranks. Collective.
   *
   * @param own this rank's bytes, as many on each rank; unchanged until the request is complete
   * @param all receives the bytes of all ranks
   * @return a request that is active
   * @throws MpiFailure if MPI fails
   */
  MpiRequest allGather(ByteBuffer own, ByteBuffer all) throws MpiFailure;

  /**
   * Begins a barrier. Collective.
   *
   * @return a request that is active
   * @throws MpiFailure if MPI fails
   */
  MpiRequest barrier() throws MpiFailure;

  /**
   * Creates a persistent request that sends all of a buffer.
   *
   * @param memory the buffer
   * @param peer the rank to send to
   * @param tag the message's tag
   * @return a request that is not active
   * @throws MpiFailure if MPI fails
   */
  MpiRequest sender(ByteBuffer memory, int peer, int tag) throws MpiFailure;

  /**
   * Creates a persistent request that fills a buffer.
   *
   * @param memory the buffer
   * @param peer the rank to receive from, or {@link Transport#ANY_RANK}
   * @param tag the message's tag
   * @return a request that is not active
   * @throws MpiFailure if MPI fails
   */
  MpiRequest receiver(ByteBuffer memory, int peer, int tag) throws MpiFailure;

  /**
   * Acknowledges the ranks that have died, so that receives from any rank go on. Only if {@link
   * MpiCalls#letsOthersLive}.
   *
   * @return all ranks that MPI knows to have died
   * @throws MpiFailure if MPI fails
   */
  BitSet acknowledgeLosses() throws MpiFailure;

  /**
   * Ends all ranks.
   *
   * @param code the exit code
   * @throws MpiFailure if MPI fails
   */
  void abort(int code) throws MpiFailure;

  /**
   * Frees the communicator. Collective.
   *
   * @throws MpiFailure if MPI fails
   */
  void free() throws MpiFailure;
}
