package org.gradientsync.core.rendezvous;

/** The event for which a rank waits. */
public enum WaitPhase {
  RENDEZVOUS, // another rank reaches a collective
  SEND, // the receiver of a message arrives
  RECEIVE, // the sender of a message arrives
  SEND_DATA, // the receiver, which has arrived, has met the ranks of its other messages
  RECEIVE_DATA, // the sender, likewise
  DATA // a rank that has arrived at a collective does its part
}
