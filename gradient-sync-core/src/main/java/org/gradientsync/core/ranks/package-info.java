/**
 * Who takes part: numbers, places, and who is still there.
 *
 * <p>A {@link org.gradientsync.core.ranks.RankMap} translates a group's rank numbers to the job's,
 * and names ranks in errors; a {@link org.gradientsync.core.ranks.NodeLayout} says how they lie on
 * nodes. A {@link org.gradientsync.core.ranks.GroupKey} identifies a group on all ranks, and {@link
 * org.gradientsync.core.ranks.ContextIds} gives it a range of tags, of which each {@link
 * org.gradientsync.core.ranks.Channel} is one kind of message. {@link
 * org.gradientsync.core.ranks.GroupTransport} makes a group's messages, and a {@link
 * org.gradientsync.core.ranks.Mailbox} is for short ones from any rank.
 *
 * <p>{@link org.gradientsync.core.ranks.JobLiveness} knows which processes have died, and {@link
 * org.gradientsync.core.ranks.Liveness} the same for a group. A rank that leaves sends {@link
 * org.gradientsync.core.ranks.DepartureNotices} with its {@link
 * org.gradientsync.core.ranks.Departure}; in large groups they go to {@link
 * org.gradientsync.core.ranks.Neighbours}, which pass them on. {@link
 * org.gradientsync.core.ranks.RankRanges} shortens lists of ranks in texts.
 */
package org.gradientsync.core.ranks;
