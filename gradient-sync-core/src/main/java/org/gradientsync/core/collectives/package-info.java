/**
 * Reducers of host memory, and of any memory that messages can carry. Each algorithm is a class, in
 * the package of the way that its data goes.
 *
 * <p>{@code messages} is for every transport: each rank owns a shard, gets the others' parts of it
 * in messages, adds them in rank order, and sends the result. {@code shared} is for processes of
 * one node, which read each other's memory. {@code nodes} is for several nodes: within a node as
 * above, and between nodes a running sum.
 *
 * <p>A reducer is a class that chooses a plan by call and keeps it in a {@link
 * org.gradientsync.core.backend.PlanCache}. A plan has what an algorithm needs for a call, such as
 * messages and views of buffers; running it allocates nothing.
 *
 * <p>{@link CompressedReducer} wraps any reducer whose elements travel in 16 bits. A {@link
 * org.gradientsync.spi.ForwardingReducer} changes some calls and hands on the others.
 */
package org.gradientsync.core.collectives;
