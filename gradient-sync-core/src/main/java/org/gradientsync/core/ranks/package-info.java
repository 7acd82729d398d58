/**
 * Who takes part: numbers, places, and who is still there.
 *
 * <p>A {@link RankMap} translates a group's rank numbers to the job's, and names ranks in errors; a
 * {@link NodeLayout} says how they lie on nodes. {@link GroupTransport} makes a group's messages,
 * each on a {@link Channel} of its tag range, and a {@link Mailbox} is for short ones from any
 * rank. {@link JobLiveness} knows which processes have died, and {@link Liveness} the same for a
 * group. A rank that leaves sends {@link DepartureNotices}.
 */
package org.gradientsync.core.ranks;
