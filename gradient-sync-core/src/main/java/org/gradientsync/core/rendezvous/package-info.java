/**
 * The check before a call: each rank learns the calls of all others before data moves.
 *
 * <p>{@link Calls} numbers and records a rank's calls, each as a {@link CallRecord}: the bytes that
 * travel and are compared. {@link CallMatcher} meets all ranks of a collective and compares what
 * they ask for, {@link MessageMatcher} the two ranks of a message, which exchange their calls by a
 * {@link Link}. If they differ, a {@link CallTable} shows the calls of all. Both see their group as
 * a {@link MatchingGroup} of {@link GroupParts}.
 *
 * <p>{@link Arrivals} has the group's {@link Rendezvous} and knows who is missing. There are two:
 * {@link MessageRendezvous} by messages, with which each group begins, and {@link
 * SharedMemoryRendezvous} in the {@link NodeMemory} of one node, which a reducer chooses. By
 * messages, the first rank of each node exchanges {@link GatheredCalls} with the others in a {@link
 * LeaderExchange}; where ranks share no memory, each counts as a node. Small contributions travel
 * along, or {@link LeaderSums} of them. {@link ArrivalNotices} say who has come to a late call.
 */
package org.gradientsync.core.rendezvous;
