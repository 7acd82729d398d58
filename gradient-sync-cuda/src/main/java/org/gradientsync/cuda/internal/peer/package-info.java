/**
 * The reducer {@code peer}: kernels that write into the other GPUs' memory over NVLink. A call is
 * one kernel on each GPU, or several in sequence if its buffer is too large for one.
 *
 * <p>{@link PeerReducer} gets the calls. {@link PeerRegistrar} registers a call's buffers on all
 * ranks once: {@link PeerMemory} maps the others', a {@link PeerRegistration} keeps them (of a
 * group of large buffers its {@link PeerParts}), and a {@link PeerTag} names them in the kernels'
 * flags. {@link PeerPlanner} then chooses a {@link PeerAlgorithm} by size and prepares a {@link
 * PeerPlan}: a CUDA graph of one {@link PeerLaunch} or several, which a {@link PeerQueue} launches
 * at each call. In a graph that the caller captures, the queue enqueues the plan's kernels one by
 * one instead. {@link PeerOrder} keeps the kernels of one rank in the order of its calls, and
 * {@link PeerMessages} moves messages of two ranks.
 *
 * <p>A {@link PeerMailbox} is where other ranks write: flags, and small buffers; {@link PeerLayout}
 * is its layout, as in {@code protocol.cuh}. {@link PeerKernels} loads the kernels. {@link
 * PeerTuning} has the sizes up to which each algorithm is the fastest, which {@link PeerAutotune}
 * measures and {@link PeerTuningCache} keeps. {@link PeerBudget} and {@link PeerSharing} divide a
 * GPU among syncs and ranks.
 *
 * <p>No kernel waits for ever: it polls a deadline, and leaves a {@link PeerReport}, which {@link
 * PeerFailure} puts into words and {@link PeerErrors} throws. {@link PeerProgress} shows the hosts
 * how far each rank is, {@link PeerWatchdog} looks for ranks that cannot come any more, and {@link
 * PeerFinite} collects what was not finite. {@link PeerUnmapFlags} say when mapped memory may be
 * freed.
 */
package org.gradientsync.cuda.internal.peer;
