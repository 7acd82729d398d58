/**
 * Who takes part: numbers, places, and who is still there.
 *
 * <p>A {@link RankMap} translates a group's rank numbers to the job's, and names ranks in errors; a
 * {@link NodeLayout} says how they lie on nodes. A {@link GroupKey} identifies a group on all
 * ranks, and {@link ContextIds} gives it a range of tags, of which each {@link Channel} is one kind
 * of message. {@link GroupTransport} makes a group's messages, and a {@link Mailbox} is for short
 * ones from any rank.
 *
 * <p>{@link JobLiveness} knows which processes have died, and {@link Liveness} the same for a
 * group. A rank that leaves sends {@link DepartureNotices} with its {@link Departure}; in large
 * groups they go to {@link Neighbours}, which pass them on. {@link RankRanges} shortens lists of
 * ranks in texts.
 */
package org.gradientsync.core.ranks;
