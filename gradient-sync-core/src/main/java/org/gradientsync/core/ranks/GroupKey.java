package org.gradientsync.core.ranks;

/**
 * Identifies a group on all of its ranks.
 *
 * @param context the tag range, which other groups may have used, and may use on other ranks
 * @param id random
 */
public record GroupKey(long context, long id) {}
