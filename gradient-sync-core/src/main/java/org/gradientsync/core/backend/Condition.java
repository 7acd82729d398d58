package org.gradientsync.core.backend;

import org.gradientsync.spi.Message;

/** What other ranks bring about: a message that nothing has to start, and nothing to release. */
@FunctionalInterface
public interface Condition extends Message {
  @Override
  default void start() {}

  @Override
  default void close() {}
}
