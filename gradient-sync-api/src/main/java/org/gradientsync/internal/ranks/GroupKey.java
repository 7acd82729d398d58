package org.gradientsync.internal.ranks;

/**
 * A group, as all its ranks know it.
 *
 * @param context its tag range, which other groups may have had, and have on other ranks
 * @param id random
 */
public record GroupKey(long context, long id) {}
