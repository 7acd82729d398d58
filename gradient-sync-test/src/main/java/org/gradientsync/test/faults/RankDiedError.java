package org.gradientsync.test.faults;

/** By which a rank that is a thread dies. An error, so that training code does not catch it. */
public final class RankDiedError extends Error {
  private static final long serialVersionUID = 1L;

  /**
   * An error.
   *
   * @param message which rank
   */
  public RankDiedError(String message) {
    super(message);
  }
}
