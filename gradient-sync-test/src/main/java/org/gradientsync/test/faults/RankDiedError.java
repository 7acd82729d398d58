package org.gradientsync.test.faults;

/** Ends a rank that is a thread. It is an error so that training code does not catch it. */
public final class RankDiedError extends Error {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an error.
   *
   * @param message names the rank
   */
  public RankDiedError(String message) {
    super(message);
  }
}
