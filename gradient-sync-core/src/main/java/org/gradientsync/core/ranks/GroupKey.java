package org.gradientsync.core.ranks;

/** Identifies a group on all of its ranks: its tag range, which others use later, and a number. */
public record GroupKey(long context, long id) {}
