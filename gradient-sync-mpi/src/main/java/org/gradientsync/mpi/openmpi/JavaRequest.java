package org.gradientsync.mpi.openmpi;

import mpi.MPIException;
import mpi.Prequest;
import mpi.Request;
import org.gradientsync.mpi.binding.MpiFailure;
import org.gradientsync.mpi.binding.MpiRequest;

/** A request of the bindings. */
final class JavaRequest implements MpiRequest {
  private final Request request;

  JavaRequest(Request request) {
    this.request = request;
  }

  @Override
  public void start() throws MpiFailure {
    try {
      ((Prequest) request).start();
    } catch (MPIException e) {
      throw JavaBindings.failure(e);
    }
  }

  @Override
  public boolean test() throws MpiFailure {
    try {
      return request.test();
    } catch (MPIException e) {
      throw JavaBindings.failure(e);
    }
  }

  @Override
  public void cancel() throws MpiFailure {
    JavaBindings.run(request::cancel);
  }

  @Override
  public void free() throws MpiFailure {
    JavaBindings.run(request::free);
  }
}
