/**
 * The transport between ranks that are threads, behind {@link org.gradientsync.local}. Elsewhere,
 * "local" means on the same node.
 *
 * <p>A {@link LocalGroup} is what the ranks of one run share: a {@link MatchingQueue} from each to
 * each, and the first failure. A {@link LocalTransport} is one rank's view of it. A message waits
 * in its queue until the other side starts; the side that comes second copies, so there is no
 * thread and no buffer in between. A sync's ranks compare their calls in memory that each {@link
 * LocalGroup#show shows} to the others.
 *
 * <p>{@link LocalWorld} is the group of a thread that no launcher has started: the run that it
 * belongs to, or itself alone. {@link LocalReducerProvider} provides {@code local}, the reference
 * for all other reducers.
 */
package org.gradientsync.core.local;
