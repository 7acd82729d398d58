/**
 * The reducer {@code peer}: kernels that write into the other GPUs' memory over NVLink. A call is
 * one kernel on each GPU, or several in sequence if its buffer is too large for one.
 *
 * <p>{@link org.gradientsync.cuda.internal.peer.PeerReducer} gets the calls. {@link
 * org.gradientsync.cuda.internal.peer.PeerRegistrar} registers a call's buffers on all ranks once:
 * {@link org.gradientsync.cuda.internal.peer.PeerMemory} maps the others', a {@link
 * org.gradientsync.cuda.internal.peer.PeerRegistration} keeps them (of a group of large buffers its
 * {@link org.gradientsync.cuda.internal.peer.PeerParts}), and a {@link
 * org.gradientsync.cuda.internal.peer.PeerTag} names them in the kernels' flags. {@link
 * org.gradientsync.cuda.internal.peer.PeerPlanner} then chooses a {@link
 * org.gradientsync.cuda.internal.peer.PeerAlgorithm} by size and prepares a {@link
 * org.gradientsync.cuda.internal.peer.PeerPlan}, whose {@link
 * org.gradientsync.cuda.internal.peer.PeerLaunch}es a {@link
 * org.gradientsync.cuda.internal.peer.PeerQueue} enqueues at each call. {@link
 * org.gradientsync.cuda.internal.peer.PeerOrder} keeps the kernels of one rank in the order of its
 * calls, and {@link org.gradientsync.cuda.internal.peer.PeerMessages} moves messages of two ranks.
 *
 * <p>A {@link org.gradientsync.cuda.internal.peer.PeerMailbox} is where other ranks write: flags,
 * and small buffers; {@link org.gradientsync.cuda.internal.peer.PeerLayout} is its layout, as in
 * {@code protocol.cuh}. {@link org.gradientsync.cuda.internal.peer.PeerKernels} loads the kernels.
 * {@link org.gradientsync.cuda.internal.peer.PeerTuning} has the sizes up to which each algorithm
 * is the fastest, which {@link org.gradientsync.cuda.internal.peer.PeerAutotune} measures and
 * {@link org.gradientsync.cuda.internal.peer.PeerTuningCache} keeps. {@link
 * org.gradientsync.cuda.internal.peer.PeerBudget} and {@link
 * org.gradientsync.cuda.internal.peer.PeerSharing} divide a GPU among syncs and ranks.
 *
 * <p>No kernel waits for ever: it polls a deadline, and leaves a {@link
 * org.gradientsync.cuda.internal.peer.PeerReport}, which {@link
 * org.gradientsync.cuda.internal.peer.PeerFailure} puts into words and {@link
 * org.gradientsync.cuda.internal.peer.PeerErrors} throws. {@link
 * org.gradientsync.cuda.internal.peer.PeerProgress} shows the hosts how far each rank is, {@link
 * org.gradientsync.cuda.internal.peer.PeerWatchdog} looks for ranks that cannot come any more, and
 * {@link org.gradientsync.cuda.internal.peer.PeerFinite} collects what was not finite. {@link
 * org.gradientsync.cuda.internal.peer.PeerUnmapFlags} say when mapped memory may be freed.
 */
package org.gradientsync.cuda.internal.peer;
