package org.gradientsync.mpi.direct;

import org.gradientsync.mpi.binding.MpiFailure;
import org.gradientsync.mpi.binding.MpiRequest;

/** A request with the memory in which MPI keeps its handle and returns results. */
final class DirectRequest implements MpiRequest {
  private static final int FLAG = 8;
  private static final int STATUS = 16;
  private static final int BYTES = 64; // a status has 20, 24 or 32

  private final NativeBlock block = NativeBlock.of(BYTES);
  private final long handle = block.address();
  private final long flag = handle + FLAG;
  private final long status = handle + STATUS;

  /** The address to which MPI writes the handle. */
  long handle() {
    return handle;
  }

  @Override
  public void start() throws MpiFailure {
    Codes.check(RequestCalls.start(handle));
  }

  @Override
  public boolean test() throws MpiFailure {
    Codes.check(RequestCalls.test(handle, flag, status));
    return block.bytes().getInt(FLAG) != 0;
  }

  @Override
  public void cancel() throws MpiFailure {
    Codes.check(Functions.MPI_Cancel(handle));
  }

  @Override
  public void free() throws MpiFailure {
    Codes.check(Functions.MPI_Request_free(handle));
  }
}
