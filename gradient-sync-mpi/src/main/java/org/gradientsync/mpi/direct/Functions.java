package org.gradientsync.mpi.direct;

/**
 * The functions of MPI by their own names, mapped directly. Addresses and handles are {@code long}:
 * with {@code Pointer} a call takes three times as long, and allocates.
 */
final class Functions {
  private Functions() {}

  static native int MPI_Get_library_version(long text, long length);

  static native int MPI_Init_thread(long count, long arguments, int level, long provided);

  static native int MPI_Initialized(long flag);

  static native int MPI_Finalized(long flag);

  static native int MPI_Query_thread(long level);

  static native int MPI_Is_thread_main(long flag);

  static native int MPI_Get_processor_name(long text, long length);

  static native int MPI_Finalize();

  static native int MPI_Error_string(int code, long text, long length);

  static native int MPI_Error_class(int code, long errorClass);

  static native int MPI_Comm_rank(long comm, long rank);

  static native int MPI_Comm_size(long comm, long size);

  static native int MPI_Comm_set_errhandler(long comm, long handler);

  static native int MPI_Comm_dup(long comm, long copy);

  static native int MPI_Comm_split_type(long comm, int type, int key, long info, long part);

  static native int MPI_Comm_free(long comm);

  static native int MPI_Bcast(long memory, int count, long type, int root, long comm);

  static native int MPI_Allgather(
      long own, int ownCount, long ownType, long all, int count, long type, long comm);

  static native int MPI_Iallgather(
      long own,
      int ownCount,
      long ownType,
      long all,
      int count,
      long type,
      long comm,
      long request);

  static native int MPI_Ibarrier(long comm, long request);

  static native int MPI_Send_init(
      long memory, int count, long type, int peer, int tag, long comm, long request);

  static native int MPI_Recv_init(
      long memory, int count, long type, int peer, int tag, long comm, long request);

  static native int MPI_Start(long request);

  static native int MPI_Test(long request, long flag, long status);

  static native int MPI_Cancel(long request);

  static native int MPI_Request_free(long request);

  static native int MPI_Abort(long comm, int code);
}
