package org.gradientsync.core.rendezvous;

/** The event for which a rank waits. */
public enum WaitPhase {
  RENDEZVOUS, // another rank reaches a collective
  SEND, // the receiver of a message arrives
  RECEIVE, // the sender of a message arrives
  SEND_DATA, // the receiver, which has arrived, does its part: it may first meet other ranks
  RECEIVE_DATA, // the same of the sender
  DATA // a rank that has arrived at a collective does its part
}
