package org.gradientsync.internal.matching;

/** What a rank waits for. */
public enum WaitPhase {
  /** That another rank comes to a collective. */
  RENDEZVOUS,
  /** That a receiver comes. */
  SEND,
  /** That a sender comes. */
  RECEIVE,
  /** What a rank that has come does by itself. */
  DATA
}
