package org.gradientsync.cuda.internal.nccl;

import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Structure;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.host.NativeClasses;

/**
 * NCCL through JNA. The functions of calls are mapped directly, so that a call makes no garbage. A
 * process can map one library only; see {@link NcclLibrary}.
 */
final class JnaNccl implements Nccl {
  private final String library;
  private final int version;

  /** A {@code ncclUniqueId}, which the library takes by value. */
  @Structure.FieldOrder("internal")
  public static final class UniqueId extends Structure implements Structure.ByValue {
    /** The bytes. */
    public byte[] internal = new byte[ID_BYTES];
  }

  /** The functions by their own names, mapped when the version is known to be right. */
  private static final class Functions {
    private Functions() {}

    static native int ncclGetUniqueId(byte[] id);

    static native int ncclCommInitRank(long[] comm, int ranks, UniqueId id, int rank);

    static native int ncclAllReduce(
        long in, long out, long count, int type, int op, long comm, long stream);

    static native int ncclBroadcast(
        long in, long out, long count, int type, int root, long comm, long stream);

    static native int ncclReduce(
        long in, long out, long count, int type, int op, int root, long comm, long stream);

    static native int ncclAllGather(
        long in, long out, long count, int type, long comm, long stream);

    static native int ncclReduceScatter(
        long in, long out, long count, int type, int op, long comm, long stream);

    static native int ncclSend(long in, long count, int type, int peer, long comm, long stream);

    static native int ncclRecv(long out, long count, int type, int peer, long comm, long stream);

    static native int ncclGroupStart();

    static native int ncclGroupEnd();

    static native int ncclCommGetAsyncError(long comm, int[] error);

    static native int ncclCommAbort(long comm);

    static native int ncclCommDestroy(long comm);

    static native String ncclGetLastError(long comm);
  }

  /**
   * Loads a library.
   *
   * @param library a path, or a name for the system's loader
   * @throws UnavailableException if JNA cannot be used
   * @throws UnsatisfiedLinkError if it does not load, or is no NCCL
   */
  JnaNccl(String library) {
    NativeClasses.requireJna(JnaNccl.class);
    this.library = library;
    int[] found = new int[1];
    NativeLibrary.getInstance(library)
        .getFunction("ncclGetVersion")
        .invokeInt(new Object[] {found});
    version = found[0];
  }

  /**
   * Maps the functions, once in a process.
   *
   * @throws UnsatisfiedLinkError if the library lacks one
   */
  void map() {
    Native.register(Functions.class, NativeLibrary.getInstance(library));
  }

  @Override
  public String library() {
    return library;
  }

  @Override
  public int version() {
    return version;
  }

  @Override
  public int uniqueId(byte[] id) {
    return Functions.ncclGetUniqueId(id);
  }

  @Override
  public int init(long[] comm, int ranks, byte[] id, int rank) {
    UniqueId value = new UniqueId();
    System.arraycopy(id, 0, value.internal, 0, ID_BYTES);
    return Functions.ncclCommInitRank(comm, ranks, value, rank);
  }

  @Override
  public int allReduce(long in, long out, long count, int type, int op, long comm, long stream) {
    return Functions.ncclAllReduce(in, out, count, type, op, comm, stream);
  }

  @Override
  public int broadcast(long in, long out, long count, int type, int root, long comm, long stream) {
    return Functions.ncclBroadcast(in, out, count, type, root, comm, stream);
  }

  @Override
  public int reduce(
      long in, long out, long count, int type, int op, int root, long comm, long stream) {
    return Functions.ncclReduce(in, out, count, type, op, root, comm, stream);
  }

  @Override
  public int allGather(long in, long out, long count, int type, long comm, long stream) {
    return Functions.ncclAllGather(in, out, count, type, comm, stream);
  }

  @Override
  public int reduceScatter(
      long in, long out, long count, int type, int op, long comm, long stream) {
    return Functions.ncclReduceScatter(in, out, count, type, op, comm, stream);
  }

  @Override
  public int send(long in, long count, int type, int peer, long comm, long stream) {
    return Functions.ncclSend(in, count, type, peer, comm, stream);
  }

  @Override
  public int receive(long out, long count, int type, int peer, long comm, long stream) {
    return Functions.ncclRecv(out, count, type, peer, comm, stream);
  }

  @Override
  public int groupStart() {
    return Functions.ncclGroupStart();
  }

  @Override
  public int groupEnd() {
    return Functions.ncclGroupEnd();
  }

  @Override
  public int asyncError(long comm, int[] error) {
    return Functions.ncclCommGetAsyncError(comm, error);
  }

  @Override
  public int abort(long comm) {
    return Functions.ncclCommAbort(comm);
  }

  @Override
  public int destroy(long comm) {
    return Functions.ncclCommDestroy(comm);
  }

  @Override
  public String lastError() {
    String text = Functions.ncclGetLastError(0); // of any communicator
    return text == null ? "" : text;
  }
}
