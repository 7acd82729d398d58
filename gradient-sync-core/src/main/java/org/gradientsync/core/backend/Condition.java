package org.gradientsync.core.backend;

import org.gradientsync.spi.Message;

/** A predicate to wait on: a message that needs no start and holds nothing. */
@FunctionalInterface
public interface Condition extends Message {}
