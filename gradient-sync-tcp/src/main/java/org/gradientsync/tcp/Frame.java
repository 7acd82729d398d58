package org.gradientsync.tcp;

/** The frames of a connection. Each begins with four ints: type, tag, length, id. */
final class Frame {
  /** The size of a frame without its payload in bytes. */
  static final int HEADER = 16;

  /** A whole message, as the payload. */
  static final int EAGER = 1;

  /** Announces a message: its length, and the sender's number for it. */
  static final int ANNOUNCE = 2;

  /** Asks for an announced message: the receiver's number for it in the place of the tag. */
  static final int GRANT = 3;

  /** A piece of a message, as the payload, under the receiver's number. */
  static final int DATA = 4;

  /** Takes an announcement back, under the sender's number. */
  static final int WITHDRAW = 5;

  /** Confirms {@link #WITHDRAW}. */
  static final int WITHDRAWN = 6;

  /** Returns bytes of the window for eager messages: the length. */
  static final int CREDIT = 7;

  /** To rank 0: the sender has come to its end. */
  static final int END = 8;

  /** All ranks have come to their end, or go on without the receiver. */
  static final int ALL_ENDED = 9;

  /** The job is aborted; the length is the exit code. */
  static final int ABORT = 10;

  /** The sender leaves; nothing follows. */
  static final int BYE = 11;

  /** The sender lives. */
  static final int HEARTBEAT = 12;

  private Frame() {}
}
