package org.gradientsync.mpi.binding;

/** A call of MPI that has returned an error. */
public final class MpiFailure extends Exception {
  private static final long serialVersionUID = 1L;

  /** What the call has returned. */
  private final int code;

  /** The class that MPI assigns to the code. */
  private final int errorClass;

  /**
   * Creates a failure.
   *
   * @param message MPI's text for the code
   * @param code what the call has returned
   * @param errorClass the class that MPI assigns to the code
   * @param cause the exception of the bindings, or null
   */
  public MpiFailure(String message, int code, int errorClass, Throwable cause) {
    super(message, cause);
    this.code = code;
    this.errorClass = errorClass;
  }

  int code() {
    return code;
  }

  int errorClass() {
    return errorClass;
  }
}
