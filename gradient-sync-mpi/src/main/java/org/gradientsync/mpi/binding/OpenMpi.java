package org.gradientsync.mpi.binding;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import mpi.Comm;
import mpi.Intracomm;
import mpi.MPI;
import mpi.MPIException;
import mpi.Prequest;
import mpi.Request;
import org.gradientsync.GradientSyncException;
import org.gradientsync.RankLostException;
import org.gradientsync.UnavailableException;

/**
 * The one door to Open MPI's Java bindings: nothing else imports {@code mpi.*}, so that another
 * binding can take its place.
 *
 * <p>Every call into MPI holds one lock. That makes thread level SERIALIZED enough, and all calls
 * made here return at once, so the lock is never held for long.
 */
public final class OpenMpi {
  private static final Object LOCK = new Object();
  private static FutureTask<Integer> starting;

  private final Intracomm world;
  private final int rank;
  private final int size;
  private final int[] nodes;
  private final boolean owner;
  private final RankPlace[] places;
  private final boolean[] visible; // ranks whose processes can be seen from here

  private OpenMpi(Intracomm world, boolean owner) throws MPIException {
    this.world = world;
    this.owner = owner;
    rank = world.getRank();
    size = world.getSize();
    // Ranks that can share memory are one node; its number is that of its first rank.
    Intracomm node = world.splitType(Comm.TYPE_SHARED, rank, new mpi.Info());
    int[] first = {rank};
    node.bcast(first, 1, MPI.INT, 0);
    node.free();
    nodes = new int[size];
    world.allGather(first, 1, MPI.INT, nodes, 1, MPI.INT);
    byte[] all = new byte[RankPlace.BYTES * size];
    byte[] own = RankPlace.own(MPI.getProcessorName()).encode();
    world.allGather(own, own.length, MPI.BYTE, all, own.length, MPI.BYTE);
    places = new RankPlace[size];
    visible = new boolean[size];
    for (int peer = 0; peer < size; peer++) {
      places[peer] = RankPlace.decode(all, peer * RankPlace.BYTES);
      // Containers on one node may share memory, but not the numbers of processes.
      visible[peer] = nodes[peer] == nodes[rank] && places[peer].isAlive();
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
   * Collective.
   *
   * @param timeout how long to wait for the other ranks
   * @return the job
   * @throws RankLostException if not all ranks come
   * @throws UnavailableException if MPI is over, or the program gave it too low a thread level
   */
  public static OpenMpi connect(Duration timeout) {
    synchronized (LOCK) {
      try {
        if (MPI.isFinalized()) {
          throw new UnavailableException(
              "MPI has been finalized already; create the sync before MPI.Finalize()");
        }
        boolean owner = !MPI.isInitialized();
        int provided = owner ? start(timeout) : MPI.queryThread();
        if (owner && provided < MPI.THREAD_SERIALIZED) {
          throw new UnavailableException(
              "this Open MPI takes calls of one thread only: threadLevel="
                  + provided
                  + ", needed="
                  + MPI.THREAD_SERIALIZED
                  + "; build it with support for threads");
        }
        if (provided < MPI.THREAD_SERIALIZED && !MPI.isThreadMain()) {
          throw new UnavailableException(
              "MPI was started for one thread only and this is another: threadLevel="
                  + provided
                  + ", needed="
                  + MPI.THREAD_SERIALIZED
                  + "; start it with MPI.InitThread(args, MPI.THREAD_SERIALIZED)");
        }
        awaitAll(timeout);
        Intracomm world = MPI.COMM_WORLD.dup();
        world.setErrhandler(MPI.ERRORS_RETURN);
        return new OpenMpi(world, owner);
      } catch (MPIException e) {
        throw failed("connect", e);
      }
    }
  }

  /**
   * Starts MPI, which waits until all ranks have come so far, and takes no time-out: so another
   * thread waits, which is left behind where they do not.
   */
  private static int start(Duration timeout) throws MPIException {
    if (starting == null) { // otherwise an earlier attempt still waits
      starting = new FutureTask<>(() -> MPI.InitThread(new String[0], MPI.THREAD_SERIALIZED));
      Thread thread = new Thread(starting, "gradient-sync-mpi-start");
      thread.setDaemon(true);
      thread.start();
    }
    try {
      return starting.get(timeout.toMillis(), TimeUnit.MILLISECONDS);
    } catch (TimeoutException e) {
      throw new RankLostException(
          "timed out: MPI has not started, because not all ranks have come to create their first"
              + " sync, rank="
              + System.getenv("OMPI_COMM_WORLD_RANK")
              + ", size="
              + System.getenv("OMPI_COMM_WORLD_SIZE")
              + ", waited="
              + timeout
              + prefixMissing(System.getenv()),
          e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new RankLostException("interrupted while MPI starts", e);
    } catch (ExecutionException e) {
      if (e.getCause() instanceof MPIException cause) {
        throw cause;
      } else if (e.getCause() instanceof Error error) {
        throw error; // among them what the loading of natives throws
      }
      throw new IllegalStateException(e.getCause());
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
   * Duplicating a communicator blocks for ever where a rank does not come, so all of them come here
   * first.
   */
  private static void awaitAll(Duration timeout) throws MPIException {
    long start = System.nanoTime();
    Request all = MPI.COMM_WORLD.iBarrier();
    while (!all.test()) {
      if (System.nanoTime() - start > timeout.toNanos()) {
        throw new RankLostException(
            "timed out: not all ranks created a sync, rank="
                + MPI.COMM_WORLD.getRank()
                + ", size="
                + MPI.COMM_WORLD.getSize()
                + ", waited="
                + timeout);
      }
      Thread.yield();
    }
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
   * Ends MPI, if it was started here and is not over, when every rank has come to its end.
   *
   * @param limit how long to wait for them, or null for as long as it takes
   * @return false if they did not come in time, and MPI goes on
   */
  public boolean finish(Duration limit) {
    try {
      long start = System.nanoTime();
      Request all;
      synchronized (LOCK) {
        if (!owner || MPI.isFinalized()) {
          return true;
        }
        all = world.iBarrier();
      }
      while (true) {
        synchronized (LOCK) {
          if (all.test()) {
            MPI.Finalize();
            return true;
          }
        }
        if (limit != null && System.nanoTime() - start > limit.toNanos()) {
          return false;
        }
        Thread.sleep(1);
      }
    } catch (MPIException e) {
      throw failed("finalize", e);
    } catch (InterruptedException e) {
      return false;
    }
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
