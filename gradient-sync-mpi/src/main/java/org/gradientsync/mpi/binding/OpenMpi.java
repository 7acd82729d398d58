package org.gradientsync.mpi.binding;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import mpi.Intracomm;
import mpi.MPI;
import mpi.MPIException;
import mpi.Prequest;
import mpi.Request;
import org.gradientsync.GradientSyncException;
import org.gradientsync.RankLostException;
import org.gradientsync.UnavailableException;
import org.gradientsync.spi.Timeouts;

/**
 * The one door to Open MPI's Java bindings: nothing else imports {@code mpi.*}, so that another
 * binding can take its place.
 *
 * <p>Every call into MPI holds one lock. That makes thread level SERIALIZED enough. All calls made
 * here return at once, so the lock is never held for long; but for {@link #connect}, before which
 * nobody else can need it, and {@link #finish}, after which nobody does.
 */
public final class OpenMpi {
  private static final Object LOCK = new Object();
  private static MpiStart starting;

  private final Intracomm world;
  private final int rank;
  private final int size;
  private final int[] nodes;
  private final boolean owner;
  private final RankPlace[] places;
  private final boolean[] visible; // ranks whose processes can be seen from here
  private Request end; // of the wait for all ranks' ends, or null

  /**
   * A job that has started.
   *
   * @param seen ranks whose processes were found by the numbers that they gave
   */
  OpenMpi(Intracomm world, boolean owner, int[] nodes, RankPlace[] places, boolean[] seen)
      throws MPIException {
    this.world = world;
    this.owner = owner;
    this.nodes = nodes;
    this.places = places;
    rank = world.getRank();
    size = world.getSize();
    visible = new boolean[size];
    for (int peer = 0; peer < size; peer++) {
      // Containers on one node may share memory, but not the numbers of processes.
      visible[peer] = nodes[peer] == nodes[rank] && seen[peer];
    }
  }

  /**
   * Where a rank runs.
   *
   * @param peer a rank
   * @return its host and process
   */
  public String placeOf(int peer) {
    return places[peer].toString();
  }

  /**
   * Whether a rank's process is there. Does not communicate.
   *
   * @param peer a rank
   * @return false if it runs on this node and has ended
   */
  public boolean isAlive(int peer) {
    return !visible[peer] || places[peer].isAlive();
  }

  /**
   * Starts MPI, or joins the one that the program has started, and takes a communicator of its own.
   * Collective. After a time-out MPI cannot be used any more in this process: a thread of it is
   * left behind there.
   *
   * @param timeouts how long to wait for the other ranks, and when to say so
   * @return the job
   * @throws RankLostException if not all ranks come, and in all later calls
   * @throws UnavailableException if MPI is over, or the program gave it too low a thread level
   */
  public static OpenMpi connect(Timeouts timeouts) {
    synchronized (LOCK) {
      try {
        if (MPI.isFinalized()) {
          throw new UnavailableException(
              "MPI has been finalized already; create the sync before MPI.Finalize()");
        }
        boolean owner = !MPI.isInitialized();
        boolean anyThread = owner || MPI.queryThread() >= MPI.THREAD_SERIALIZED;
        if (!anyThread && !MPI.isThreadMain()) {
          throw new UnavailableException(
              "MPI was started for one thread only and this is another: threadLevel="
                  + MPI.queryThread()
                  + ", needed="
                  + MPI.THREAD_SERIALIZED
                  + "; start it with MPI.InitThread(args, MPI.THREAD_SERIALIZED)");
        }
        if (starting == null) { // otherwise an earlier attempt, which was interrupted, goes on
          starting = new MpiStart(owner, anyThread, timeouts);
        }
        return starting.await(timeouts);
      } catch (MPIException e) {
        throw failed("connect", e);
      }
    }
  }

  /**
   * Of an Open MPI 4.1 that was moved after it was installed, MPI_Init deadlocks where mpirun knows
   * the new place and the rank does not: it wants to warn, before it can.
   *
   * @return what to say of it, or nothing
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

  /**
   * The version of the MPI library.
   *
   * @return for example {@code Open MPI v4.1.4}
   */
  public static String version() {
    return MPI.getLibVersion().lines().findFirst().orElse("").split(",")[0].trim();
  }

  /**
   * This rank's number.
   *
   * @return from 0 to size - 1
   */
  public int rank() {
    return rank;
  }

  /**
   * The number of ranks.
   *
   * @return 1 or more
   */
  public int size() {
    return size;
  }

  /**
   * Each rank's node.
   *
   * @return the lowest rank of the node, for each rank
   */
  public int[] nodes() {
    return nodes.clone();
  }

  /**
   * Whether MPI was started here, and so has to be ended here.
   *
   * @return false if the program had started it
   */
  public boolean isOwner() {
    return owner;
  }

  /**
   * Prepares sending all of a direct buffer.
   *
   * @param memory the buffer
   * @param peer the rank to send to
   * @param tag from 0 to 2^23 - 1
   * @return a message that the caller closes
   */
  public MpiMessage sender(ByteBuffer memory, int peer, int tag) {
    synchronized (LOCK) {
      try {
        Prequest request = world.sendInit(memory, memory.capacity(), MPI.BYTE, peer, tag);
        return new MpiMessage(LOCK, request, memory, peer, true);
      } catch (MPIException e) {
        throw failed("sendInit", e);
      }
    }
  }

  /**
   * Prepares receiving all of a direct buffer.
   *
   * @param memory the buffer
   * @param peer the rank to receive from
   * @param tag from 0 to 2^23 - 1
   * @return a message that the caller closes
   */
  public MpiMessage receiver(ByteBuffer memory, int peer, int tag) {
    synchronized (LOCK) {
      try {
        Prequest request = world.recvInit(memory, memory.capacity(), MPI.BYTE, peer, tag);
        return new MpiMessage(LOCK, request, memory, peer, false);
      } catch (MPIException e) {
        throw failed("recvInit", e);
      }
    }
  }

  /**
   * Whether MPI is over in this process.
   *
   * @return true after MPI's end, whoever brought it about
   */
  public boolean isFinished() {
    synchronized (LOCK) {
      try {
        return MPI.isFinalized();
      } catch (MPIException e) {
        throw failed("finalized", e);
      }
    }
  }

  /**
   * Comes to the end of MPI, at the first call, and looks whether the others have. Waits for
   * nobody.
   *
   * @return true once every rank has come, or MPI is over
   */
  public boolean haveAllCome() {
    synchronized (LOCK) {
      try {
        if (MPI.isFinalized()) {
          return true;
        }
        if (end == null) {
          end = world.iBarrier();
        }
        return end.test();
      } catch (MPIException e) {
        throw failed("barrier", e);
      }
    }
  }

  /** Ends MPI, unless it is over. Blocks until every rank does; {@link #haveAllCome} first. */
  public void finish() {
    synchronized (LOCK) {
      try {
        if (!MPI.isFinalized()) {
          MpiStart.beforeCall.accept("MPI_Finalize");
          MPI.Finalize();
        }
      } catch (MPIException e) {
        throw failed("finalize", e);
      }
    }
  }

  /**
   * Which ranks of this host have died or are stopped. Makes no call of MPI.
   *
   * @return for example {@code rank 1 (host=node7, process=4711) is stopped}, or an empty text
   */
  public String troubles() {
    return IntStream.range(0, size)
        .filter(peer -> visible[peer] && !places[peer].trouble().isEmpty())
        .mapToObj(peer -> "rank " + peer + " (" + places[peer] + ") " + places[peer].trouble())
        .collect(Collectors.joining(", "));
  }

  /**
   * Ends the whole job, all ranks of it.
   *
   * @param code the exit code
   */
  public void abort(int code) {
    synchronized (LOCK) {
      try {
        if (!MPI.isFinalized()) {
          MPI.COMM_WORLD.abort(code);
        }
      } catch (MPIException e) {
        throw failed("abort", e);
      }
    }
  }

  static GradientSyncException failed(String operation, MPIException e) {
    return new GradientSyncException(
        "MPI "
            + operation
            + " failed: "
            + e.getMessage()
            + " ("
            + e.getErrorCode()
            + "), class="
            + e.getErrorClass(),
        e);
  }

  @Override
  public String toString() {
    return "rank " + rank + " of " + size + ", nodes=" + Arrays.toString(nodes);
  }
}
