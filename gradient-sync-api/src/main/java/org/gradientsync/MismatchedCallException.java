package org.gradientsync;

/**
 * The ranks' calls differ. Every rank throws this exception with a table of the ranks' calls. No
 * buffer is changed. If the hosts have compared the calls, the sync remains usable.
 *
 * <p>It is broken, and every later call throws, if GPUs have found the difference: then the
 * exception may come from a later call or from a wait for the GPU. The same holds for ranks that
 * deadlock, which throw this exception, too: for example, if one rank sends and the other is in a
 * barrier.
 */
public class MismatchedCallException extends GradientSyncException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception with the table of calls.
   *
   * @param message each rank's call
   */
  public MismatchedCallException(String message) {
    super(message);
  }
}
