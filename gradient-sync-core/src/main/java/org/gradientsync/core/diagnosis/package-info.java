/**
 * Why a job is stuck: a proof of a deadlock while it waits, and a report after a time-out.
 *
 * <p>The {@link DeadlockDetector} sends a {@link Probe} from a {@link LongWait} along the ranks
 * that wait for each other. If it comes back, they wait in a circle.
 *
 * <p>After a time-out each rank writes its own {@link RankReport} into a {@link ReportFolder}. The
 * folder itself is the request: the {@link Watch} of each process looks for it, so a rank that is
 * stuck in the program's code writes a report, too. {@link Reports} sums them up.
 */
package org.gradientsync.core.diagnosis;
