package org.gradientsync.internal.matching;

import java.nio.ByteBuffer;
import org.gradientsync.spi.Message;

/** How the ranks of a group learn that the others have come to a call, and what they ask for. */
public interface Rendezvous extends AutoCloseable {
  /**
   * Where this rank writes what it asks for before it comes.
   *
   * @param sequence the number of the call
   * @return memory for a {@link Call}
   */
  ByteBuffer own(long sequence);

  /**
   * How much of a rank's contribution each message of this rendezvous can bring.
   *
   * @return bytes, the same on all ranks
   */
  default int payloadBytes() {
    return 0;
  }

  /**
   * Chooses what the next messages bring.
   *
   * @param payload what fits, or null for nothing
   */
  default void load(InlinePayload payload) {}

  /**
   * Lets the others know.
   *
   * @param sequence the number of the call
   */
  void arrive(long sequence);

  /**
   * What finishes when a rank has come to the call that this rank has come to.
   *
   * @param peer another rank
   * @return to be waited for
   */
  Message arrival(int peer);

  /**
   * What finishes when a rank has been told, so that {@link #own} may be written again.
   *
   * @param peer another rank
   * @return to be waited for
   */
  Message sent(int peer);

  /**
   * What a rank asks for; valid once it has arrived, until the next call.
   *
   * @param peer any rank
   * @return memory with a {@link Call}, and behind it what the message has brought
   */
  ByteBuffer call(int peer);

  /** Lets the others know that this rank has given up: what it told them does not hold any more. */
  default void abandon() {}

  /**
   * Whether a rank has given up.
   *
   * @param peer another rank
   * @return true if it is known that it has
   */
  default boolean abandoned(int peer) {
    return false;
  }

  @Override
  void close();
}
