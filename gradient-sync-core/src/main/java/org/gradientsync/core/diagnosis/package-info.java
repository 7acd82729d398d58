/**
 * Why a job is stuck: a proof of a deadlock while it waits, and a report after a time-out.
 *
 * <p>A rank whose wait is long has a {@link LongWait} looked at by the {@link DeadlockDetector},
 * which sends a {@link Probe} along the ranks that wait for each other. A probe that comes back
 * proves that they wait in a circle. A {@link WatchedGroup} is what it sees of a group.
 *
 * <p>After a time-out each rank writes its own {@link RankReport} into a {@link ReportFolder}. The
 * folder itself is the request: the {@link Watch} of each process looks for it, so a rank that is
 * stuck in the program's code writes a report, too. {@link Reports} sums up what each rank was
 * doing. A {@link WorkerThread} is a daemon thread that runs one task after the other.
 */
package org.gradientsync.core.diagnosis;
