/**
 * The check before a call: each rank learns the calls of all others before data moves.
 *
 * <p>A {@link org.gradientsync.core.rendezvous.CallRecord} is a call in the bytes that travel and
 * are compared. A {@link org.gradientsync.core.rendezvous.CallTable} shows the calls of all ranks
 * if they differ. {@link org.gradientsync.core.rendezvous.Calls} numbers and records a rank's
 * calls; {@link org.gradientsync.core.rendezvous.CallerThreads} knows which threads make them.
 *
 * <p>{@link org.gradientsync.core.rendezvous.Arrivals} has the group's {@link
 * org.gradientsync.core.rendezvous.Rendezvous} and knows who is missing. There are two: {@link
 * org.gradientsync.core.rendezvous.MessageRendezvous} by messages, with which each group begins,
 * and {@link org.gradientsync.core.rendezvous.SharedMemoryRendezvous} in the {@link
 * org.gradientsync.core.rendezvous.NodeMemory} of one node, which a reducer chooses. By messages,
 * the first rank of each node exchanges {@link org.gradientsync.core.rendezvous.GatheredCalls} with
 * the others in {@link org.gradientsync.core.rendezvous.LeaderRounds} of a {@link
 * org.gradientsync.core.rendezvous.LeaderExchange}; where ranks share no memory, each counts as a
 * node. Small contributions travel along, or {@link org.gradientsync.core.rendezvous.LeaderSums} of
 * them, added by a {@link org.gradientsync.core.rendezvous.SumTree}.
 *
 * <p>{@link org.gradientsync.core.rendezvous.ArrivalNotices} report to a waiting rank on another
 * node who has come. {@link org.gradientsync.core.rendezvous.Pairs} is for messages of two ranks,
 * and a {@link org.gradientsync.core.rendezvous.WaitPhase} says what a wait is for.
 */
package org.gradientsync.core.rendezvous;
