/**
 * Who takes part: numbers, places, and who is still there.
 *
 * <p>A {@link RankMap} translates a group's rank numbers to the job's, and names ranks in errors; a
 * {@link NodeLayout} says how they lie on nodes. A {@link GroupKey} identifies a group on all
 * ranks; of its range of tags, each {@link Channel} is one kind of message. {@link GroupTransport}
 * makes a group's messages, and a {@link Mailbox} is for short ones from any rank.
 *
 * <p>{@link JobLiveness} knows which processes have died, and {@link Liveness} the same for a
 * group. A rank that leaves sends {@link DepartureNotices} with its {@link Departure}; in large
 * groups they go to {@linkplain RankMap#neighbours neighbours}, which pass them on.
 */
package org.gradientsync.core.ranks;
