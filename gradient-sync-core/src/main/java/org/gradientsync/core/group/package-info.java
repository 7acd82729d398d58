/**
 * A group of ranks in operation: the frame of every call.
 *
 * <p>A {@link ProcessGroup} is the ranks of one communicator or sync. Its {@code run(call, body)}
 * is the way of each call: it meets the other ranks, by the matchers of {@link
 * org.gradientsync.core.rendezvous}; the body moves the data; the call is recorded as finished; and
 * what fails in the middle breaks the group on all ranks ({@link GroupState}). Each {@link Wait}
 * looks for what may end it. {@link GroupSplit} agrees on new groups, {@link Survivors} on the
 * ranks that are left after a loss, and {@link Exchange} moves small Java buffers. A {@link Job} is
 * what all groups of a process share.
 */
package org.gradientsync.core.group;
