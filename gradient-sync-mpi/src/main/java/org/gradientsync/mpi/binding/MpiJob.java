package org.gradientsync.mpi.binding;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.IntPredicate;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.RankLostException;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.backend.RankPlace;
import org.gradientsync.core.backend.WaitClock;
import org.gradientsync.spi.JobProcess;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.Timeouts;
import org.gradientsync.spi.Transport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A job of MPI, and this process as one of its ranks.
 *
 * <p>Every call of MPI holds one lock, so thread level SERIALIZED is sufficient. All calls return
 * at once, so no thread holds the lock for long. The exceptions are {@link #connect}, before which
 * no other thread needs the lock, and {@link #finish}, after which none does.
 */
public final class MpiJob implements JobProcess {
  private static final Logger log = LoggerFactory.getLogger(GradientSync.class);
  private static final long LATE_NANOS = Settings.DEFAULT_LATE.toNanos();

  private static final Object LOCK = new Object();
  private static MpiStart starting;
  private static volatile Runnable beforeFinalize = () -> {};

  private final MpiCalls mpi;
  private final MpiComm world;
  private final int rank;
  private final int size;
  private final int[] nodes;
  private final int misplaced; // the first rank that MPI reports on another node, or size
  private final boolean owner;
  private final RankPlace[] places;
  private final boolean[] visible; // ranks whose processes can be seen from here
  private final LostRanks lost;
  private final LastWords lastWords;
  private volatile boolean finished; // without MPI_Finalize
  private MpiRequest end; // a barrier for the end of all ranks, or null

  /**
   * Creates a job that has started.
   *
   * @param ofMpi for each rank, the lowest rank of its node as MPI reports it
   * @param seen ranks whose processes are visible under the process ids that they sent
   */
  MpiJob(
      MpiCalls mpi, MpiComm world, boolean owner, int[] ofMpi, RankPlace[] places, boolean[] seen)
      throws MpiFailure {
    this.mpi = mpi;
    this.world = world;
    this.owner = owner;
    this.nodes = RankPlace.nodes(ofMpi, places);
    this.places = places;
    rank = world.rank();
    size = world.size();
    lost = new LostRanks(world, mpi.letsOthersLive());
    lastWords = new LastWords(this);
    int different = Arrays.mismatch(nodes, ofMpi);
    misplaced = different < 0 ? size : different;
    visible = new boolean[size];
    for (int peer = 0; peer < size; peer++) {
      // Containers on one node may share memory, but not process ids.
      visible[peer] = nodes[peer] == nodes[rank] && seen[peer];
    }
  }

  /**
   * A rank's host and process.
   *
   * @param peer a rank
   * @return for example {@code host=node7, process=4711}
   */
  public String placeOf(int peer) {
    return places[peer].toString();
  }

  /**
   * Whether a rank is alive. Does not communicate.
   *
   * @param peer a rank
   * @return false if it runs on this node and has ended, or MPI has reported its death
   */
  public boolean isAlive(int peer) {
    return !lost.has(peer) && (!visible[peer] || places[peer].isAlive());
  }

  /**
   * Lets this rank go on without others, and end without ending the job. Can be called again.
   *
   * @param without ranks of the job
   * @throws UnavailableException if MPI ends the job with its first lost rank
   */
  public void goOnWithout(List<Integer> without) {
    if (!lost.letOthersLive()) {
      throw new UnavailableException(
          ("this MPI ends the job with its first lost rank: launcher=mpi, rank=%s, library=%s;"
                  + " start the job with Open MPI 5's mpirun --with-ft ulfm,"
                  + " and gradientsync.mpi.binding=direct, or with gradient-sync run --launcher tcp")
              .formatted(rank, version()));
    }
    lastWords.goOnWithout(without);
  }

  /**
   * Starts MPI, or uses the one that the program has started, and creates its own communicator.
   * Collective. After a time-out this process cannot use MPI any more, because one of its threads
   * remains blocked in it.
   *
   * @param mpi the functions of MPI, the same ones at each call
   * @param timeouts how long to wait for the other ranks, and when to log that
   * @return the job
   * @throws RankLostException if not all ranks join; later calls throw it, too
   * @throws UnavailableException if MPI has been finalized, or the program has initialized it with
   *     too low a thread level
   */
  public static MpiJob connect(MpiCalls mpi, Timeouts timeouts) {
    synchronized (LOCK) {
      try {
        if (mpi.isFinalized()) {
          throw new UnavailableException(
              "MPI has been finalized already; create the sync before MPI.Finalize()");
        }
        boolean owner = !mpi.isInitialized();
        boolean anyThread = owner || mpi.threadLevel() >= mpi.serialized();
        if (!anyThread && !mpi.isMainThread()) {
          throw new UnavailableException(
              ("MPI was started for one thread only and this is another: threadLevel=%s, needed=%s;"
                      + " start it with MPI.InitThread(args, MPI.THREAD_SERIALIZED)")
                  .formatted(mpi.threadLevel(), mpi.serialized()));
        }
        if (starting == null) { // otherwise an interrupted earlier attempt goes on
          starting = new MpiStart(mpi, owner, anyThread, timeouts);
        }
        return starting.await(timeouts);
      } catch (MpiFailure e) {
        throw failed("connect", e);
      }
    }
  }

  /**
   * {@return for the error, an explanation of a deadlock of an Open MPI 4.1 that was moved after
   * its installation; otherwise an empty text} If mpirun knows the new place but the rank does not,
   * MPI_Init tries to log a warning before it is able to.
   */
  static String prefixMissing(Map<String, String> environment) {
    String prefix = environment.get("PMIX_INSTALL_PREFIX");
    return prefix == null || environment.containsKey("OPAL_PREFIX")
        ? ""
        : ", or because this rank has not got OPAL_PREFIX, prefix="
            + prefix
            + "; start the job with mpirun -x OPAL_PREFIX="
            + prefix;
  }

  /** {@return the version of the MPI library, for example {@code Open MPI v4.1.4}} */
  public String version() {
    return mpi.version();
  }

  /** {@return this rank's number, from 0 to size - 1} */
  public int rank() {
    return rank;
  }

  /** {@return the number of ranks, 1 or more} */
  public int size() {
    return size;
  }

  /** {@return for each rank, the lowest rank of its node} */
  public int[] nodes() {
    return nodes.clone();
  }

  /**
   * {@return a warning where MPI and this library disagree about the nodes, the same on all ranks,
   * or empty if they agree}
   */
  public Optional<String> misplaced() {
    if (misplaced == size) {
      return Optional.empty();
    }
    int first = nodes[misplaced];
    return Optional.of(
        ("MPI reports ranks that can share memory on different nodes: rank=%s (%s), other=%s (%s),"
                + " library=%s; taking them for one node, so local ranks and GPUs are right;"
                + " MPI's own messages may be slow until it reaches its process manager (PMIx, PMI),"
                + " or until containers of one machine have one host name")
            .formatted(first, places[first], misplaced, places[misplaced], version()));
  }

  /** Whether this class has initialized MPI, and not the program. */
  @Override
  public boolean isOwner() {
    return owner;
  }

  /**
   * Creates a message that sends all of a direct buffer.
   *
   * @param memory the buffer
   * @param peer the rank to send to
   * @param tag from 0 to {@link Transport#MAX_TAG}, or that of {@link LastWords}
   * @return a message that the caller closes
   */
  public MpiMessage sender(ByteBuffer memory, int peer, int tag) {
    synchronized (LOCK) {
      try {
        MpiRequest request = world.sender(memory, peer, tag);
        return new MpiMessage(LOCK, mpi, lost, request, memory, peer, true);
      } catch (MpiFailure e) {
        throw failed("sendInit", e);
      }
    }
  }

  /**
   * Creates a message that fills a direct buffer.
   *
   * @param memory the buffer
   * @param peer the rank to receive from, or {@link Transport#ANY_RANK}
   * @param tag from 0 to {@link Transport#MAX_TAG}, or that of {@link LastWords}
   * @return a message that the caller closes
   */
  public MpiMessage receiver(ByteBuffer memory, int peer, int tag) {
    synchronized (LOCK) {
      try {
        MpiRequest request = world.receiver(memory, peer, tag);
        return new MpiMessage(LOCK, mpi, lost, request, memory, peer, false);
      } catch (MpiFailure e) {
        throw failed("recvInit", e);
      }
    }
  }

  @Override
  public boolean isFinished() {
    synchronized (LOCK) {
      try {
        return finished || mpi.isFinalized();
      } catch (MpiFailure e) {
        throw failed("finalized", e);
      }
    }
  }

  @Override
  public boolean haveAllCome() {
    if (lost.letOthersLive()) {
      return isFinished() || lastWords.haveAllCome();
    }
    synchronized (LOCK) {
      try {
        if (mpi.isFinalized()) {
          return true;
        }
        if (end == null) {
          end = world.barrier();
        }
        return end.test();
      } catch (MpiFailure e) {
        throw failed("barrier", e);
      }
    }
  }

  /**
   * Sets an action that the thread that finalizes MPI runs just before. Replaces an earlier one.
   *
   * @param preparation may throw nothing
   */
  public static void beforeFinalize(Runnable preparation) {
    beforeFinalize = preparation;
  }

  @Override
  public String finishName() {
    return "MPI_Finalize";
  }

  @Override
  public void finish() {
    if (lastWords.isAlone()) {
      WaitClock time = new WaitClock();
      boolean warned = false;
      while (!haveAllCome()) {
        MpiStart.pause();
        if (!warned && time.look() > LATE_NANOS) {
          warned = true;
          log.warn(
              "rank {} has come to its end, and waits for ranks {}, without which mpirun may end"
                  + " the job",
              rank,
              lastWords.awaited());
        }
      }
      finished = true;
      return;
    }
    synchronized (LOCK) {
      try {
        if (!mpi.isFinalized()) {
          beforeFinalize.run();
          MpiStart.beforeCall.accept("MPI_Finalize");
          mpi.finish();
        }
      } catch (MpiFailure e) {
        throw failed("finalize", e);
      }
    }
  }

  @Override
  public String troubles(IntPredicate asked) {
    return IntStream.range(0, size)
        .filter(asked)
        .filter(peer -> visible[peer] && !places[peer].trouble().isEmpty())
        .mapToObj(peer -> "rank " + peer + " (" + places[peer] + ") " + places[peer].trouble())
        .collect(Collectors.joining(", "));
  }

  /** Hydra, the launcher of MPICH and of MPIs made from it, kills the others and ends with 0. */
  @Override
  public boolean earlyExitFails() {
    return version().startsWith("Open MPI");
  }

  @Override
  public void abort(int code) {
    if (lastWords.isAlone()) {
      Runtime.getRuntime().halt(code); // the others may be well without this rank
    }
    synchronized (LOCK) {
      try {
        if (!mpi.isFinalized()) {
          mpi.world().abort(code);
        }
      } catch (MpiFailure e) {
        throw failed("abort", e);
      }
    }
  }

  static GradientSyncException failed(String operation, MpiFailure e) {
    return new GradientSyncException(
        "MPI %s failed: %s (%s), class=%s"
            .formatted(operation, e.getMessage(), e.code(), e.errorClass()),
        e);
  }

  @Override
  public String toString() {
    return "rank " + rank + " of " + size + ", nodes=" + Arrays.toString(nodes);
  }
}
