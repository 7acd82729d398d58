/**
 * A group of ranks in operation: the frame of every call.
 *
 * <p>A {@link ProcessGroup} is the ranks of one communicator or sync. Its {@code run(call, body)}
 * is the way of each call: {@link CallMatcher} meets the other ranks, or {@link MessageMatcher} the
 * peer of a message; the body moves the data; the call is recorded as finished; and what fails in
 * the middle breaks the group on all ranks. A reducer whose device compares the calls meets once,
 * and then records what it enqueues in {@code deviceCalls()}. {@link GroupState} is whether it can
 * still be used, and makes the exceptions. {@link GroupSplit} agrees on new groups, {@link
 * Survivors} on the ranks that are left after a loss, and {@link Exchange} moves small Java
 * buffers.
 *
 * <p>A {@link Wait} polls a message. Meanwhile it looks for an interrupt, a rank that has left, a
 * deadlock, a dead process, the deadline, and somebody to warn of.
 *
 * <p>A {@link Job} is what all groups of a process share.
 */
package org.gradientsync.core.group;
