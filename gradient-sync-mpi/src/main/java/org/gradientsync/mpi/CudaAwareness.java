package org.gradientsync.mpi;

import com.sun.jna.Function;
import com.sun.jna.NativeLibrary;
import org.gradientsync.core.host.NativeClasses;
import org.gradientsync.spi.Availability;

/**
 * Queries whether the MPI library supports device memory. The result depends on the settings of
 * this run, not only on the build: with {@code --mca opal_cuda_support 0} it is negative.
 */
final class CudaAwareness {
  private CudaAwareness() {}

  static Availability ask() {
    String failure = NativeClasses.jnaFailure(CudaAwareness.class);
    if (failure != null) {
      return Availability.no("JNA cannot be used: " + failure);
    }
    try {
      Function query =
          NativeLibrary.getInstance(MpiBinding.library()).getFunction("MPIX_Query_cuda_support");
      return query.invokeInt(new Object[0]) == 1
          ? Availability.yes()
          : Availability.no(
              "this Open MPI does not take device memory: build it with --with-cuda,"
                  + " and see that opal_cuda_support is not off");
    } catch (UnsatisfiedLinkError e) {
      return Availability.no(
          "this MPI cannot be asked whether it takes device memory: " + e.getMessage());
    }
  }
}
