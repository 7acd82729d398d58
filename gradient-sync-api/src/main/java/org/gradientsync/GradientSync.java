package org.gradientsync;

import java.nio.ByteBuffer;
import java.nio.LongBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.function.Consumer;
import org.gradientsync.spi.SyncProvider;

/**
 * Averages gradients over ranks: the entry point for training code.
 *
 * <pre>{@code
 * try (GradientSync sync = GradientSync.create()) {
 *   float[] gradient = computeGradient(sync.rank());
 *   sync.average(gradient); // in place, on every rank
 * }
 * }</pre>
 *
 * <p>Gradients that stay where the device can reach them need no copies:
 *
 * <pre>{@code
 * try (GradientSync sync = GradientSync.create();
 *     DeviceBuffer gradient = sync.allocate(DataType.FLOAT32, 10_000)) {
 *   sync.average(gradient);
 * }
 * }</pre>
 *
 * <p>{@link #create()} detects how this process was started (by {@code LocalRanks}, under mpirun,
 * with torchrun's variables or the settings {@code tcp.*}, or alone) and selects a device and the
 * fastest reducer that every rank can use. All ranks must make the same calls in the same order;
 * see {@link Communicator} for what happens otherwise.
 *
 * <p>Several threads may use a sync. Their calls run one after the other, and {@link #close()}
 * waits for a running call.
 *
 * <p>Every collective call and message throws, also where its own documentation names fewer:
 *
 * <ul>
 *   <li>an {@link IllegalArgumentException} for a buffer of another sync; a rank that there is not,
 *       or this one as a peer; an operation that is not defined for the type; an input and an
 *       output whose types or counts do not match, or that overlap in another way than documented;
 *       counts of the ranks' parts that are negative, not one for each rank, not those of the
 *       buffers, or with a sum that does not fit a long
 *   <li>an {@link IllegalStateException} if the sync or a buffer is closed
 *   <li>a {@link MismatchedCallException} on every rank if their calls differ; no buffer is changed
 *   <li>a {@link RankLostException} if a rank does not join in time, or if the waiting thread is
 *       interrupted; this breaks the sync
 *   <li>where elements are reduced, a {@link NotFiniteException} if {@link Builder#requireFinite}
 *       is on and a rank's elements are not finite
 * </ul>
 *
 * <p>A driver's error is a {@link DeviceException}.
 */
public abstract class GradientSync implements AutoCloseable {
  /** For the library, which has the only implementation. */
  protected GradientSync() {}

  /**
   * {@return a new sync with default settings and those of the system properties, which the caller
   * closes} Collective: every rank of the job creates its own at the same time.
   *
   * @throws UnavailableException if no device or reducer works here, or if the one that a system
   *     property asks for does not
   * @throws RankLostException as {@link Builder#create} does
   */
  public static GradientSync create() {
    return builder().create();
  }

  /**
   * {@return a new builder, for choosing settings in code}
   *
   * @throws UnavailableException if {@code gradient-sync-core}, or another {@link SyncProvider}, is
   *     neither on the class path nor on the module path
   */
  public static Builder builder() {
    return provider().builder();
  }

  /**
   * The engine that this class's own loader finds, or its module layer, or the thread's context
   * class loader.
   */
  private static SyncProvider provider() {
    ModuleLayer layer = GradientSync.class.getModule().getLayer(); // null on the class path
    return ServiceLoader.load(SyncProvider.class, GradientSync.class.getClassLoader())
        .findFirst()
        .or(
            () ->
                layer == null
                    ? Optional.empty()
                    : ServiceLoader.load(layer, SyncProvider.class).findFirst())
        .or(() -> ServiceLoader.load(SyncProvider.class).findFirst())
        .orElseThrow(
            () ->
                new UnavailableException(
                    "no engine was found: service="
                        + SyncProvider.class.getName()
                        + "; add org.gradientsync:gradient-sync-core to the class path or module"
                        + " path, and if jars were merged into one, merge their META-INF/services"));
  }

  /**
   * {@return a new buffer filled with zeros on this rank's device, which the caller closes}
   *
   * @param type the element type
   * @param count the number of elements, 0 or more; may exceed 2^31
   * @throws IllegalArgumentException if count is negative or larger than the device can address
   * @throws GradientSyncException if there is not enough memory
   */
  public abstract DeviceBuffer allocate(DataType type, long count);

  /**
   * Wraps host memory that the caller allocated in a buffer, without copying. For ranks whose
   * device is the host; the classes of other devices wrap memory of those devices. Buffers that
   * wrap the same memory separately are not known to overlap: use only one in a call or group.
   *
   * @param type the element type
   * @param memory a direct, writable buffer in native byte order, of which the part between
   *     position and limit is used; the caller keeps the ownership
   * @return a buffer that the caller closes; closing it does not free the memory
   * @throws IllegalArgumentException if it is not such a buffer, not a whole number of elements, or
   *     this rank's device is not the host
   */
  public abstract DeviceBuffer wrap(DataType type, ByteBuffer memory);

  /**
   * Averages each element over all ranks, in place. The same as {@link #allReduce} with {@link
   * ReduceOp#AVERAGE}.
   *
   * @param buffer a floating-point buffer of this sync
   */
  public void average(DeviceBuffer buffer) {
    allReduce(buffer, ReduceOp.AVERAGE);
  }

  /**
   * Averages each element of an array over all ranks, in place, with every device and reducer. The
   * same bits as {@link #average(DeviceBuffer)} of a buffer with these elements, at the cost of a
   * copy to the device and one back. The array has the averages when this returns. Collective.
   *
   * <p>The sync keeps a buffer for arrays of about the same length (up to a quarter more) until it
   * is closed: all together at most 6.5 times the longest array of a type. Programs with gradients
   * on a GPU allocate buffers of their own.
   *
   * @param array as long on all ranks; does not change if this method throws
   * @throws IllegalStateException inside of {@link #grouped}
   * @throws GradientSyncException if there is not enough memory
   */
  public abstract void average(float[] array);

  /**
   * {@link #average(float[])} in double.
   *
   * @param array as long on all ranks; does not change if this method throws
   */
  public abstract void average(double[] array);

  /**
   * Averages several arrays in place, with the bits of {@link #average(float[])} for each. They
   * share one call for each 16 million elements, so many small ones cost what their bytes cost,
   * plus one copy on the host. Collective.
   *
   * @param arrays as many on all ranks (also none on all), each as long; do not change if this
   *     method throws, unless there are more than 16 million elements
   */
  public abstract void average(List<float[]> arrays);

  /**
   * Averages rows of a table of which each rank has some, such as the gradients of an embedding. A
   * row that a rank does not have counts as zeros there. The result has the rows that any rank has,
   * with the bits of the average of the whole table in rank order, without moving the rest: the
   * host exchanges and sorts the indices of all ranks, the device averages these rows. A rank's
   * table is zeros to which its rows are added, so -0.0 becomes 0.0. Collective.
   *
   * @param rows this rank's; another number on each rank, or none; does not change
   * @return the same rows on all ranks, each once, in ascending order. If the given ones are in a
   *     buffer, so are these: in one that the next average of rows writes, and that this sync
   *     closes; the call then returns before the work is done, as with a buffer
   * @throws IllegalArgumentException if the rows of all ranks together do not fit an array, or a
   *     buffer belongs to another stream
   * @throws MismatchedCallException also if the ranks' tables have different sizes
   * @throws IllegalStateException inside of {@link #grouped}
   */
  public abstract SparseRows average(SparseRows rows);

  /**
   * Starts an average as {@link #average(DeviceBuffer)} makes it, in the background where the
   * reducer blocks the host: a thread of the sync makes it, after all calls before. The sync's
   * other calls, and those of {@link #communicator()}, wait until that thread is idle, so that all
   * ranks keep one order of calls. A reducer that does not block ({@code peer}) enqueues the
   * average on the buffer's stream before this method returns. Collective. Wait for the average
   * before you close the sync: that gives up what its thread has not made yet.
   *
   * @param buffer as for an average; neither read, write nor close it until the average is made
   * @return the average, to wait for
   * @throws IllegalArgumentException if the buffer is another sync's, or of a type without averages
   * @throws IllegalStateException if the buffer or this sync is closed, or inside of {@link
   *     #grouped}
   */
  public abstract PendingAverage averageAsync(DeviceBuffer buffer);

  /**
   * Reduces each element over all ranks, in place. {@link ReduceOp} defines the bits of the result;
   * if {@link #wire()} is set, sums and averages of FLOAT32 are rounded more coarsely. Ordered on
   * the buffer's stream: it takes effect after the work enqueued there earlier, and before the work
   * enqueued later. Collective.
   *
   * <p>If the reducer does not block the host ({@code peer}), a failure on the device is thrown
   * when the host next waits for the device, for example in {@link DeviceBuffer#copyTo}, or by the
   * next call, which then does nothing, or by {@link #close()}. Such a failure breaks the sync,
   * even if it is a call that does not match. With such a reducer, the ranks must always use the
   * same buffers together: those with which they made their first call. All this holds for {@link
   * #allGather}, {@link #reduceScatter} and {@link #allToAll}, too.
   *
   * @param buffer a buffer of this sync, with the same type and count, and the same {@linkplain
   *     DeviceBuffer#named name} if it has one, on all ranks
   * @param op the same on all ranks
   */
  public abstract void allReduce(DeviceBuffer buffer, ReduceOp op);

  /**
   * Copies one rank's elements, such as initial weights, to all ranks. Ordered on the buffer's
   * stream. Collective.
   *
   * @param buffer a buffer of this sync, with the same type and count, and the same name if it has
   *     one, on all ranks
   * @param root the rank that has the data, the same on all ranks
   */
  public abstract void broadcast(DeviceBuffer buffer, int root);

  /**
   * Gathers the elements of all ranks on every rank. Ordered as {@link #allReduce}, on the streams
   * of both buffers. Collective.
   *
   * @param in this rank's elements, the same type and count on all ranks; may be the slice of
   *     {@code out} that begins at {@code rank * in.count()}
   * @param out receives rank r's elements at {@code r * in.count()}; has {@code size * in.count()}
   *     elements
   */
  public abstract void allGather(DeviceBuffer in, DeviceBuffer out);

  /**
   * Gathers the elements of all ranks, of which each has a number of its own. As {@link
   * #allGather(DeviceBuffer, DeviceBuffer)} but for what follows. Each rank sends its elements to
   * each other rank.
   *
   * @param in this rank's elements: {@code counts[rank]}; may be their slice of {@code out}
   * @param out receives the elements of rank 0, those of rank 1, and so on: the sum of the counts
   * @param counts the number of elements of each rank, the same on all ranks; 0 or more; see {@link
   *     #counts}
   */
  public abstract void allGather(DeviceBuffer in, DeviceBuffer out, long[] counts);

  /**
   * Reduces each element over all ranks and leaves each rank one part of the result. {@link
   * ReduceOp} defines the bits, which are those of {@link #allReduce}. Moves (n-1)/n of the buffer
   * in each direction, half as much, and is ordered like it, on the streams of both buffers.
   * Collective.
   *
   * @param in this rank's elements, the same type and count on all ranks; {@code size *
   *     out.count()} elements, which do not change unless {@code out} is one of its slices
   * @param out receives the elements from {@code rank * out.count()} on; may be that slice of
   *     {@code in}
   * @param op the same on all ranks
   */
  public abstract void reduceScatter(DeviceBuffer in, DeviceBuffer out, ReduceOp op);

  /**
   * Reduces each element over all ranks and leaves each rank one part of the result, of a length of
   * its own. As {@link #reduceScatter(DeviceBuffer, DeviceBuffer, ReduceOp)} but for what follows.
   * Costs a {@linkplain #reduce reduction to one rank} for each rank.
   *
   * @param in this rank's elements: the part of rank 0, then that of rank 1, and so on
   * @param out receives this rank's part: {@code counts[rank]} elements; may be that slice of
   *     {@code in}
   * @param counts the number of elements of each rank's part, the same on all ranks; 0 or more
   * @param op the same on all ranks
   */
  public abstract void reduceScatter(DeviceBuffer in, DeviceBuffer out, long[] counts, ReduceOp op);

  /**
   * Reduces each element over all ranks, in place on one rank. {@link ReduceOp} defines the bits.
   * Ordered on the buffer's stream. Collective.
   *
   * @param buffer the same type and count on all ranks; changes on the root only
   * @param op the same on all ranks
   * @param root the rank that gets the result, the same on all ranks
   */
  public abstract void reduce(DeviceBuffer buffer, ReduceOp op, int root);

  /**
   * Gathers the elements of all ranks on one. Ordered on the streams of both buffers. Collective.
   *
   * @param in this rank's elements, the same type and count on all ranks; on the root it may be the
   *     slice of {@code out} that begins at {@code root * in.count()}
   * @param out on the root, receives rank r's elements at {@code r * in.count()}; ignored on other
   *     ranks, where it may be null
   * @param root the rank that gets the elements, the same on all ranks
   */
  public abstract void gather(DeviceBuffer in, DeviceBuffer out, int root);

  /**
   * Gathers the elements of all ranks, of which each has a number of its own, on one rank. As
   * {@link #gather(DeviceBuffer, DeviceBuffer, int)} but for what follows.
   *
   * @param in this rank's elements: {@code counts[rank]}; on the root it may be their slice of
   *     {@code out}
   * @param out on the root, receives the elements of rank 0, then those of rank 1, and so on: the
   *     sum of the counts; ignored on other ranks, where it may be null
   * @param counts the number of elements of each rank, the same on all ranks; 0 or more
   * @param root the rank that gets the elements, the same on all ranks
   */
  public abstract void gather(DeviceBuffer in, DeviceBuffer out, long[] counts, int root);

  /**
   * Gives each rank one part of one rank's elements. Ordered on the streams of both buffers.
   * Collective.
   *
   * @param in on the root, rank r's elements begin at {@code r * out.count()}; ignored on other
   *     ranks, where it may be null
   * @param out receives this rank's elements, the same type and count on all ranks; on the root it
   *     may be its slice of {@code in}
   * @param root the rank that has the elements, the same on all ranks
   */
  public abstract void scatter(DeviceBuffer in, DeviceBuffer out, int root);

  /**
   * Sends one part of this rank's elements to each rank, and receives one from each. Ordered as
   * {@link #allReduce}, on the streams of both buffers. Collective.
   *
   * @param in part r goes to rank r; the same type and count on all ranks, a multiple of the number
   *     of ranks
   * @param out receives rank r's part as part r; as many as {@code in}, which it must not overlap
   */
  public abstract void allToAll(DeviceBuffer in, DeviceBuffer out);

  /**
   * Sends one part of this rank's elements to each rank, and receives one from each; each part has
   * a length of its own. As {@link #allToAll(DeviceBuffer, DeviceBuffer)} but for what follows.
   *
   * @param in the part for rank 0, then that for rank 1, and so on
   * @param inCounts the number of elements for each rank; 0 or more
   * @param out receives the part of rank 0, that of rank 1, and so on; must not overlap {@code in}
   * @param outCounts the number of elements from each rank; 0 or more, and what that rank gives for
   *     this one in its {@code inCounts}
   * @throws IllegalArgumentException also if this rank's own two counts differ
   * @throws MismatchedCallException on all ranks if one makes another call; on both ranks if what
   *     one sends is not what the other one receives, after all other parts have been received
   */
  public abstract void allToAll(
      DeviceBuffer in, long[] inCounts, DeviceBuffer out, long[] outCounts);

  /**
   * Sends a buffer's elements to another rank, which calls {@link #receive}. Ordered on the
   * buffer's stream. May wait for the receiver.
   *
   * @param buffer the same type and count as the receiver's, and the same name if both have one
   * @param peer another rank
   * @throws MismatchedCallException on both ranks if type, count or name differ; changes no buffer
   */
  public abstract void send(DeviceBuffer buffer, int peer);

  /**
   * Receives elements that another rank sends with {@link #send}. Ordered on the buffer's stream.
   *
   * @param buffer receives the elements; the same type and count as the sender's
   * @param peer another rank
   * @throws MismatchedCallException as {@link #send} does
   */
  public abstract void receive(DeviceBuffer buffer, int peer);

  /**
   * Makes several calls as one. The calls inside of {@code calls} are only recorded, and run when
   * it returns: first the collectives, with the results of their order, although all-reduces of
   * different buffers may run in another one, then all messages at the same time. So the ranks may
   * send and receive in any order without waiting in a circle, and all-reduces of small buffers (up
   * to 64 KiB, on GPUs 4 MiB) of the same type and operation cost one call together; with the
   * reducer {@code peer}, also floating-point sums and averages of large ones. Results are in the
   * buffers when this method has returned, in the order of their streams; {@code calls} must not
   * read or write them after the call that uses them. Messages move together, so what is received
   * must not overlap what another message sends or receives.
   *
   * <p>Inside, the collectives on device memory, {@link #send} and {@link #receive} of this sync
   * can be called, by the same thread. Its other calls throw an {@link IllegalStateException}. A
   * group inside of another one becomes a part of it. If {@code calls} throws, nothing runs.
   *
   * <p>Collective, if it has collectives: the ranks make the same ones in the same order, with the
   * same names, on streams and parts of buffers that are alike. Messages between two ranks in one
   * direction match in the order in which they were made. Keep the buffers, and repeat the same
   * calls, to prepare them only once; a sync keeps 16 groups, each with a copy of the buffers that
   * it packs. Before a group is captured into a graph, make it once outside.
   *
   * @param calls makes the calls
   * @throws IllegalArgumentException if messages overlap; nothing runs then
   * @throws IllegalStateException if this sync is closed, or if a stream is being captured and the
   *     same group was not made before
   * @throws MismatchedCallException if the ranks' collectives differ, after those before have taken
   *     effect; or, on both of its ranks, if type or count of a message differ, after all other
   *     messages have taken effect
   * @throws RankLostException if a rank does not join in time
   */
  public abstract void grouped(Runnable calls);

  /**
   * Prepares a buffer for reductions, so that the first one is as fast as the others. Required only
   * before calls are captured into a graph. Collective: the ranks register the buffers that they
   * will reduce together. Each slice is prepared separately. Keep slices that you reduce often,
   * because each new one costs as much as a first call; {@code peer} supports 2 million of them.
   *
   * <p>Launches of a {@code CudaGraph} keep the order of this sync's calls on any stream. A program
   * that launches a graph through the driver keeps that order itself, and must wait for the
   * launches to end before it closes the sync or a buffer.
   *
   * @param buffer a buffer of this sync, with the same type and count, and the same name if it has
   *     one, on all ranks
   */
  public abstract void register(DeviceBuffer buffer);

  /**
   * {@return the average of one number over all ranks, such as a loss or another metric: (v0 + v1 +
   * ...) / n in rank order, in double, with the same bits on all ranks} Does not wait for the
   * device. Collective.
   *
   * @param value this rank's number; NaN and infinities pass through
   */
  public abstract double mean(double value);

  /**
   * {@return how many elements each rank has, in rank order, for what differs in length; the same
   * on all ranks} Does not wait for the device. Collective.
   *
   * @param mine this rank's number, 0 or more
   * @throws IllegalArgumentException on every rank if a number is negative
   */
  public long[] counts(long mine) {
    long[] counts = new long[size()];
    communicator().allGather(LongBuffer.wrap(new long[] {mine}), LongBuffer.wrap(counts));
    for (int rank = 0; rank < counts.length; rank++) {
      if (counts[rank] < 0) {
        throw new IllegalArgumentException(
            "count is negative: rank=" + rank + ", count=" + counts[rank]);
      }
    }
    return counts;
  }

  /** Waits until every rank has called it. Does not wait for the device. Collective. */
  public abstract void barrier();

  /**
   * Asks all ranks to stop after a step: {@link GradientBuckets#stopRequested} is then true on all
   * ranks whose buckets average with this rank's, those of this sync and of the parts that are
   * {@linkplain #split split} from it. If groups of ranks have buckets each, agree before stopping:
   * {@code sync.communicator().any(buckets.stopRequested())}. Not collective, and any thread may
   * call it, at any time; it communicates nothing itself. Stays in effect, also in a sync that
   * takes this one's place ({@link #survivors}). Later calls do nothing.
   */
  public abstract void requestStop();

  /**
   * Splits the ranks into groups with a sync each, for example into tensor-parallel and
   * data-parallel groups. Collective over this sync's ranks.
   *
   * <p>A part has its own rank numbers, its own reducer (the fastest one that its ranks can use)
   * and its own communicator. It shares this sync's device and settings: a buffer of either works
   * with both, and with every other sync that was split from the same one. Calls on different syncs
   * do not wait for each other, unless the buffers' stream orders them. Ranks that are in several
   * groups must make their calls in an order that does not wait in a circle.
   *
   * <p>Closing this sync closes its parts. On a GPU, do not call {@link DeviceBuffer#copyFrom} for
   * two groups in different threads: it can wait for another group's call.
   *
   * @param color ranks with the same color form a group; a negative color joins none
   * @param key orders the ranks in the group; ranks with the same key keep their order
   * @return a sync that the caller closes, or null if the color is negative
   * @throws UnavailableException on all ranks of the group if the reducer that a setting names does
   *     not work for it
   */
  public abstract GradientSync split(int color, int key);

  /**
   * Goes on without the ranks that were lost. Called by all ranks that are left, each after its
   * call has thrown {@link RankLostException}, or when another rank has left on purpose. This sync
   * is closed, and its parts with it; calls of ranks that still use it end with {@link
   * RankLostException}.
   *
   * <p>The new sync has the ranks that are left in their order, with numbers from 0 on, and the
   * reducer that is fastest for them. Buffers of this sync work with it, because it has the same
   * device; {@link GradientBuckets} and communicators do not, and are made again. What a failed
   * call has left in its buffers differs between ranks: {@link
   * org.gradientsync.GradientSync#broadcast} what must be the same from a rank that has it whole.
   *
   * <p>It waits for the ranks that are left, up to the time-out, or up to three if the lowest of
   * them does not answer. One that lives and does not come in time is left behind, and so is one
   * that cannot be reached. A rank that is lost during this call is left out, too; for one that is
   * lost later, call it again on the new sync. If the network is divided, the part with more than
   * half of the ranks that may live goes on; of two equal halves, the one with the lowest rank. In
   * other parts this method throws. If the network is soon whole again, both parts may go on.
   *
   * <p>From then on each rank ends by itself: a rank that ends no longer ends the others, nor waits
   * for them, except that under {@code mpirun} each process waits at its end.
   *
   * @return a sync that the caller closes; closing it closes the device
   * @throws IllegalStateException if this sync is closed
   * @throws RankLostException if the others have gone on without this rank, or too few have come
   * @throws UnavailableException if this kind of job ends with its first lost rank: it works over
   *     TCP, as threads, and under Open MPI 5's {@code mpirun --with-ft ulfm}
   */
  public abstract GradientSync survivors();

  /** {@return this rank's number, from 0 to size - 1} */
  public abstract int rank();

  /** {@return the number of ranks, 1 or more} */
  public abstract int size();

  /** {@return this rank's number among the ranks of its node, from 0 to localSize - 1} */
  public abstract int localRank();

  /** {@return the number of ranks on this rank's node, 1 or more} */
  public abstract int localSize();

  /** {@return this rank's device, on which {@link #allocate} allocates} */
  public abstract Device device();

  /** {@return the name of the selected reducer, for example {@code local}} */
  public abstract String reducer();

  /**
   * {@return the reducers that were not selected, and why: from a reducer's name to the reason, the
   * fastest first; the same on all ranks}
   */
  public abstract Map<String, String> alternatives();

  /**
   * {@return the type in which FLOAT32 sums and averages travel, FLOAT16 or BFLOAT16; empty if they
   * travel as FLOAT32} See {@link Builder#wire}.
   */
  public abstract Optional<DataType> wire();

  /**
   * {@return the name of the launcher that started the ranks: {@code local} for threads of one JVM
   * and for a single process, {@code mpi} under mpirun, {@code tcp} over TCP}
   */
  public abstract String launcher();

  /**
   * {@return the communicator of this sync's ranks, for small exchanges of host memory, which this
   * sync closes} Its calls and this sync's form one order, which must be the same on all ranks.
   */
  public abstract Communicator communicator();

  /**
   * Reports the times of each reduction from now on to a listener. This costs a few microseconds
   * per reduction. JDK Flight Recorder's event {@code org.gradientsync.Synchronization} has the
   * same data and the rank, if a recording enables it.
   *
   * @param listener called in the order of the reductions, by a thread that makes the same or a
   *     later call of this sync or its buckets, or closes the sync. If the listener makes
   *     collective calls of the sync, or closes it or its buckets, these throw an {@link
   *     IllegalStateException}. The first exception that a listener throws is logged; exceptions of
   *     listeners have no other effect. Reductions that fail, and those in graphs, are not reported
   * @return the event at which {@link Synchronization#startedAt} is 0 for this listener, for
   *     comparison with the caller's own events; this sync closes it
   * @throws IllegalStateException if this sync is closed
   */
  public abstract Event observe(Consumer<Synchronization> listener);

  /**
   * Releases everything but the memory of buffers, which become unusable; the caller still closes
   * them. Not collective, but it first waits until the work enqueued on the device is done or has
   * timed out. A second call does nothing.
   *
   * @throws GradientSyncException after everything is released, if a call has failed on the device
   *     or in the background and the program has not seen that: no call and no wait has thrown it.
   *     Of a call in the background it is what that call has thrown, of whatever type
   * @throws IllegalStateException if a hook, a listener or the calls of a group close it
   */
  @Override
  public abstract void close();

  /**
   * {@return a new builder for {@link GradientBuckets#builder}}
   *
   * @param parameters the model's parameters; may be empty, on all ranks
   */
  protected abstract GradientBuckets.Builder newBuckets(List<Parameter> parameters);

  /**
   * Chooses settings that {@link GradientSync#create()} would select by itself. A setting made here
   * takes precedence over the system property.
   */
  public abstract static class Builder {
    /** For the library, which has the only implementation. */
    protected Builder() {}

    /**
     * Chooses a reducer instead of the fastest. System property {@code gradientsync.reducer}.
     *
     * @param name for example {@code host-staged}
     * @return this builder
     */
    public Builder reducer(String name) {
      return set("reducer", name);
    }

    /**
     * Chooses a kind of device instead of the fastest. System property {@code gradientsync.device}.
     *
     * @param kind {@code cuda} or {@code gpu}, {@code host} or {@code cpu}
     * @return this builder
     */
    public Builder device(String kind) {
      return set("device", kind);
    }

    /**
     * Sets how long a call waits for another rank before it throws. System property {@code
     * gradientsync.timeout}, in seconds. Five minutes if not set. Time for which the waiting
     * process is suspended does not count, unless a GPU waits.
     *
     * @param timeout more than zero
     * @return this builder
     * @throws IllegalArgumentException if it is zero or negative
     */
    public Builder timeout(Duration timeout) {
      Objects.requireNonNull(timeout, "timeout");
      if (timeout.isZero() || timeout.isNegative()) {
        throw new IllegalArgumentException("time-out must be more than zero: timeout=" + timeout);
      }
      return set("timeout", timeout.toString());
    }

    /**
     * Sets the folder for reports. A time-out creates a folder in it with a report of each rank:
     * its current call, its last calls, its threads, versions and settings. System property {@code
     * gradientsync.reports}; {@code off} for none. If not set, the working folder, or the folder
     * for temporary files if the working folder is not writable.
     *
     * <p>One rank logs a summary of the reports. Nodes that do not share the folder have a folder
     * and a summary each.
     *
     * @param folder a folder, which is created if it does not exist
     * @return this builder
     */
    public Builder reports(Path folder) {
      return set("reports", Objects.requireNonNull(folder, "folder").toString());
    }

    /**
     * Makes each {@link GradientSync#allReduce} check this rank's elements for NaN and infinities
     * before the reduction. System property {@code gradientsync.finite}: {@code true} or {@code
     * false}. Off if not set; then these values pass through to all ranks. The check does not find
     * values that become infinite only in the sum, or on a 16-bit wire. All ranks must choose the
     * same.
     *
     * <p>With reducers that block the host, every rank throws a {@link NotFiniteException} that
     * names the ranks, the buffer and an index, and no buffer is changed. With {@code peer} the GPU
     * checks while it reduces, and the host does not wait: every rank throws the exception when its
     * host next waits for the results, which contain the values that are not finite. If the program
     * does not wait through this library, all ranks throw in the same later call: the first one on
     * device memory, or {@link GradientBuckets#finish()}, that no rank has begun when one of them
     * sees the report; and {@link GradientSync#close()} throws what no call has. {@code
     * docs/performance.md} lists the costs.
     *
     * <p>{@link GradientSync#reduceScatter} and {@link GradientSync#reduce} check in the same way
     * as reducers that block the host, with every reducer, and so wait for the device and the other
     * ranks. Captured into a graph, they do not check.
     *
     * @param required true to check
     * @return this builder
     */
    public Builder requireFinite(boolean required) {
      return set("finite", Boolean.toString(required));
    }

    /**
     * Calls {@link GradientSync#requestStop} when this process receives SIGTERM or SIGUSR1, for
     * programs that save their state before a scheduler ends them. The first signal does that for
     * all syncs of this process that were built so, and no longer ends the process. System property
     * {@code gradientsync.stop.on.signal}.
     *
     * <p>A second one of either kind, while one of these syncs is open, ends the process at once,
     * with exit code 143 after SIGTERM. It does not wait for other ranks, which throw {@link
     * RankLostException}, and runs no shutdown hooks. The same signal again within a second counts
     * as one: a scheduler may signal both a launcher, which passes it on, and its ranks. One that
     * comes within ten seconds after {@link GradientBuckets#stopRequested} has become true is the
     * first one of this process, also if its last sync has closed by then.
     *
     * <p>Launchers treat signals that they get in ways of their own: {@code gradient-sync run},
     * {@code mpirun} and {@code srun} pass SIGUSR1 on to all ranks; at SIGTERM {@code mpirun} ends
     * the job within seconds.
     *
     * @param stop {@code false} if not set
     * @return this builder
     */
    public Builder stopOnSignal(boolean stop) {
      return set("stop.on.signal", Boolean.toString(stop));
    }

    /**
     * Lets a rank that fails end alone. Otherwise its uncaught exception ends the whole job, as
     * under {@code mpirun}. The calls of the others throw {@link RankLostException}, and they may
     * go on with {@link GradientSync#survivors}. Over TCP, a rank of another node that sends
     * nothing for 30 seconds, not even a heartbeat, is then lost, too; the setting {@code
     * elastic.silence} is another time in seconds. All ranks must choose the same. System property
     * {@code gradientsync.elastic}.
     *
     * @param elastic {@code false} if not set
     * @return this builder
     * @see GradientSync#survivors
     */
    public Builder elastic(boolean elastic) {
      return set("elastic", Boolean.toString(elastic));
    }

    /**
     * Makes FLOAT32 gradients travel as a 16-bit type, in half the bytes. System property {@code
     * gradientsync.wire}: {@code bfloat16} or {@code float16}. All ranks must choose the same. If
     * not set, gradients travel as FLOAT32; {@code set("wire", "")} overrides the property with
     * that.
     *
     * <p>The setting affects {@link ReduceOp#SUM} and {@link ReduceOp#AVERAGE} of FLOAT32 buffers
     * on two or more ranks. Each rank's elements are rounded to the type, to nearest even. They are
     * added in float32 in rank order and, for an average, divided. The result is rounded to the
     * type and widened to float32. So all ranks get the same bits, with every reducer but {@code
     * nccl}. Other types, other operations and broadcasts are not affected.
     *
     * <p>With u = 2<sup>-8</sup> for BFLOAT16 and 2<sup>-11</sup> for FLOAT16, the error of an
     * average a of n ranks' elements g is at most u mean(|g|) + u |a|, plus the error of n
     * operations in float32, about n 2<sup>-24</sup> mean(|g|). The bound for a sum has the sum of
     * |g| instead of the mean.
     *
     * <p>Use FLOAT16 only for gradients that are neither large nor small. Elements and results of
     * magnitude 65520 or more become infinite. Below 2<sup>-14</sup> each rounding has an error of
     * up to 2<sup>-25</sup>, so that magnitudes up to 2<sup>-25</sup> become zero. BFLOAT16 has
     * nearly the range of float32: only magnitudes within a 512th of its end become infinite.
     *
     * @param type BFLOAT16 or FLOAT16
     * @return this builder
     * @throws IllegalArgumentException for other types
     */
    public Builder wire(DataType type) {
      if (type != DataType.BFLOAT16 && type != DataType.FLOAT16) {
        throw new IllegalArgumentException(
            "not a type that gradients can travel as: wire="
                + Objects.requireNonNull(type, "wire")
                + "; give BFLOAT16 or FLOAT16");
      }
      return set("wire", type.name().toLowerCase(Locale.ROOT));
    }

    /**
     * Sets the order in which sums are added. System property {@code gradientsync.order}: {@code
     * ranks} or {@code any}. All ranks must choose the same. If not set, it is {@link
     * SumOrder#RANKS}: every reducer but {@code nccl} gives the same bits, on any number of nodes.
     * {@link SumOrder#ANY} allows reducers that move less between three nodes or more, and those of
     * libraries whose order depends on the machine.
     *
     * @param order the order
     * @return this builder
     */
    public Builder order(SumOrder order) {
      return set("order", Objects.requireNonNull(order, "order").name().toLowerCase(Locale.ROOT));
    }

    /**
     * Sets any setting by name, including those of backends: the same as the system property {@code
     * gradientsync.<name>}. Backends for GPUs read {@code cuda.device}, the number of the GPU, and
     * {@code overlap.sms}, the number of SMs for averages that overlap with a backward pass.
     *
     * <p>For ranks that reach each other by TCP and whose environment does not name them: {@code
     * tcp.rank}, {@code tcp.size}, {@code tcp.master} ({@code host:port} of rank 0) and {@code
     * tcp.secret}. Then each sync may be a rank of its own, on a thread of its own, and the rank
     * leaves the job when its last sync closes. {@code tcp.interface} is the name or an address of
     * the network interface.
     *
     * @param name the setting's name
     * @param value its value
     * @return this builder
     */
    public abstract Builder set(String name, String value);

    /**
     * Creates the sync. Collective: every rank of the job creates its own at the same time, with
     * the same settings.
     *
     * @return a sync that the caller closes
     * @throws UnavailableException on every rank if the chosen settings do not work here
     * @throws RankLostException if a rank does not join in time, or has ended; with an MPI the
     *     process cannot create a sync after that
     */
    public abstract GradientSync create();
  }
}
