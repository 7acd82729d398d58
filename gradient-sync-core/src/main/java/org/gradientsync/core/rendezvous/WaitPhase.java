package org.gradientsync.core.rendezvous;

/** The event for which a rank waits. */
public enum WaitPhase {
  RENDEZVOUS, // another rank reaches a collective
  SEND, // the receiver arrives
  RECEIVE, // the sender arrives
  DATA // a rank that has arrived does its part
}
