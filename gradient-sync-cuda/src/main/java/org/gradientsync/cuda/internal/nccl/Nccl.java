package org.gradientsync.cuda.internal.nccl;

/**
 * The functions of NCCL that the reducer uses, with their codes as results (see {@link
 * NcclResult}). Communicators, streams and device memory are addresses. {@link JnaNccl} is the real
 * one.
 */
interface Nccl {
  /** The bytes of a {@code ncclUniqueId}. */
  int ID_BYTES = 128;

  /** The library's path, or the name by which the system's loader finds it. */
  String library();

  /** For example 22105 for 2.21.5. */
  int version();

  int uniqueId(byte[] id);

  /**
   * Creates a communicator, for the calling thread's current context. Waits for the other ranks.
   *
   * @param comm receives the communicator
   */
  int init(long[] comm, int ranks, byte[] id, int rank);

  int allReduce(long in, long out, long count, int type, int op, long comm, long stream);

  int broadcast(long in, long out, long count, int type, int root, long comm, long stream);

  int reduce(long in, long out, long count, int type, int op, int root, long comm, long stream);

  int allGather(long in, long out, long count, int type, long comm, long stream);

  int reduceScatter(long in, long out, long count, int type, int op, long comm, long stream);

  int send(long in, long count, int type, int peer, long comm, long stream);

  int receive(long out, long count, int type, int peer, long comm, long stream);

  int groupStart();

  int groupEnd();

  /**
   * Asks for a failure of calls that have been enqueued. Any thread may call it.
   *
   * @param error receives the code
   */
  int asyncError(long comm, int[] error);

  /** Ends what runs on the device, and frees the communicator. Any thread may call it. */
  int abort(long comm);

  /** Frees a communicator whose work is done. */
  int destroy(long comm);

  /** What the library has logged as its last error, or an empty text. */
  String lastError();
}
