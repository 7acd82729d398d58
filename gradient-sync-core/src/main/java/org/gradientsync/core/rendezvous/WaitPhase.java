package org.gradientsync.core.rendezvous;

/** The event for which a rank waits. */
public enum WaitPhase {
  /** Another rank reaches a collective. */
  RENDEZVOUS,
  /** The receiver arrives. */
  SEND,
  /** The sender arrives. */
  RECEIVE,
  /** A rank that has arrived does its part. */
  DATA
}
