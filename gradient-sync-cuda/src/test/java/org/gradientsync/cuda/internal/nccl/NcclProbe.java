package org.gradientsync.cuda.internal.nccl;

import java.util.Map;
import org.gradientsync.UnavailableException;
import org.gradientsync.spi.Settings;

/** Says whether this machine has an NCCL that can be used, for the script that runs the tests. */
public final class NcclProbe {
  private NcclProbe() {}

  /** Prints the library, or why there is none; then the exit code is 1. */
  public static void main(String[] args) {
    try {
      Nccl nccl = NcclLibrary.ofProcess().get(new Settings(Map.of()));
      System.out.println(nccl.library() + ", version=" + NcclLibrary.text(nccl.version()));
    } catch (UnavailableException e) {
      System.out.println(e.getMessage());
      System.exit(1);
    }
  }
}
