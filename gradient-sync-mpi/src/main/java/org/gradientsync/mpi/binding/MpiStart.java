package org.gradientsync.mpi.binding;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.gradientsync.RankLostException;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.backend.Amounts;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.core.backend.RankPlace;
import org.gradientsync.core.backend.WaitClock;
import org.gradientsync.spi.Timeouts;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Starts MPI. Most of the calls for that block until every rank makes them, without a time-out. So
 * one thread makes the calls, and another one checks the time and names missing ranks. If a rank is
 * missing, the first thread remains blocked in MPI.
 */
final class MpiStart {
  /** The name of the thread that makes the calls. Other ranks of this node look for it. */
  static final String THREAD = "gradient-sync-mpi-start";

  private static final Logger log = LoggerFactory.getLogger(MpiStart.class);
  private static final long POLL_NANOS = 20_000_000;
  private static final int QUICK_TESTS = 1000;
  private static final int MAX_NAMED = 4;

  /** For tests: called before a call of MPI, with its name. */
  static volatile Consumer<String> beforeCall = call -> {};

  /** The places of all ranks. A rank whose place has not arrived yet has zeros. */
  private record Places(ByteBuffer bytes, int size) {
    boolean has(int peer) {
      return bytes.getLong(peer * RankPlace.BYTES) != 0;
    }

    RankPlace of(int peer) {
      byte[] one = new byte[RankPlace.BYTES];
      bytes.get(peer * RankPlace.BYTES, one);
      return RankPlace.decode(one, 0);
    }
  }

  private final MpiCalls mpi;
  private final boolean owner;
  private final FutureTask<MpiJob> task = new FutureTask<>(this::start);
  private volatile String call = "MPI_Init";
  private volatile String rank = variable("OMPI_COMM_WORLD_RANK", "PMI_RANK");
  private volatile Places places; // null until MPI has started
  private volatile boolean[] seen; // ranks whose processes are visible; null until all have come
  private ByteBuffer ownPlace; // MPI reads it until the request is complete
  private RankLostException lost; // or null

  /**
   * Begins to start MPI.
   *
   * @param mpi the functions of MPI
   * @param owner whether to initialize MPI here; otherwise the program has done so
   * @param anyThread whether a thread other than the caller's may make the calls
   * @param timeouts how long the calls may take on the caller's thread
   */
  MpiStart(MpiCalls mpi, boolean owner, boolean anyThread, Timeouts timeouts) {
    this.mpi = mpi;
    this.owner = owner;
    if (anyThread) {
      daemon(task, THREAD);
    } else {
      daemon(() -> endIfLate(timeouts), THREAD + "-watch");
      task.run();
    }
  }

  private static void daemon(Runnable work, String name) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    thread.start();
  }

  /** Ends the process after a time-out, because its thread cannot return from MPI. */
  private void endIfLate(Timeouts timeouts) {
    try {
      await(timeouts);
    } catch (RankLostException e) {
      System.err.println("gradient-sync: the process ends: " + e.getMessage());
      System.err.flush();
      Runtime.getRuntime().halt(e.exitCode());
    } catch (MpiFailure | RuntimeException | Error e) {
      log.debug("the calling thread throws it", e);
    }
  }

  /**
   * Waits until MPI has started.
   *
   * @throws RankLostException if not all ranks join; later calls throw it, too
   */
  MpiJob await(Timeouts timeouts) throws MpiFailure {
    if (lost != null) {
      throw new RankLostException(
          "MPI could not be started by an earlier create(), and this process cannot try again: "
              + lost.getMessage(),
          lost);
    }
    boolean warned = false;
    WaitClock time = new WaitClock();
    while (true) {
      try {
        return task.get(POLL_NANOS, TimeUnit.NANOSECONDS);
      } catch (TimeoutException e) {
        // look again
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new RankLostException("interrupted while MPI starts", e);
      } catch (ExecutionException e) {
        if (e.getCause() instanceof MpiFailure cause) {
          throw cause;
        } else if (e.getCause() instanceof RuntimeException cause) {
          throw cause;
        } else if (e.getCause() instanceof Error error) {
          throw error; // for example a LinkageError from loading natives
        }
        throw new IllegalStateException(e.getCause());
      }
      long waited = time.look();
      if (waited > timeouts.timeoutNanos()) {
        lost =
            new RankLostException(
                "timed out: %s, rank=%s, size=%s, waited=%s%s"
                    .formatted(
                        missing(),
                        rank,
                        size(),
                        Amounts.time(timeouts.timeout()),
                        places == null ? MpiJob.prefixMissing(System.getenv()) : ""));
        throw lost;
      }
      if (!warned && waited > timeouts.lateNanos()) {
        warned = true;
        log.warn("rank {} has waited {}: {}", rank, Amounts.time(timeouts.late()), missing());
      }
    }
  }

  /** Open MPI's variable, or that of MPICH. */
  private static String variable(String openMpi, String mpich) {
    String value = System.getenv(openMpi);
    return value == null ? System.getenv(mpich) : value;
  }

  private String size() {
    Places known = places;
    return known == null
        ? variable("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
        : Integer.toString(known.size());
  }

  private MpiJob start() throws MpiFailure {
    if (owner) {
      begin("MPI_Init");
      int provided = mpi.initialize();
      if (provided < mpi.serialized()) {
        throw new UnavailableException(
            ("this MPI takes calls of one thread only: threadLevel=%s, needed=%s;"
                    + " build it with support for threads")
                .formatted(provided, mpi.serialized()));
      }
    }
    gatherPlaces();
    begin("MPI_Comm_dup");
    MpiComm world = mpi.world().duplicate();
    // MPI's nodes, each with the number of its first rank.
    begin("MPI_Comm_split_type");
    MpiComm node = world.node();
    begin("MPI_Bcast");
    int first = node.broadcast(world.rank());
    node.free();
    begin("MPI_Allgather");
    int[] nodes = world.allGather(first);
    RankPlace[] all =
        IntStream.range(0, nodes.length).mapToObj(places::of).toArray(RankPlace[]::new);
    return new MpiJob(mpi, world, owner, nodes, all, seen);
  }

  private void begin(String nextCall) {
    call = nextCall;
    beforeCall.accept(nextCall);
  }

  /**
   * Exchanges the places of all ranks with a non-blocking call, before the blocking ones. So a
   * time-out can name the ranks that have not come, and later ones by their place.
   */
  private void gatherPlaces() throws MpiFailure {
    begin("MPI_Iallgather");
    MpiComm world = mpi.world();
    rank = Integer.toString(world.rank());
    int size = world.size();
    byte[] own = RankPlace.own(mpi.host()).encode();
    ownPlace = HostBuffers.allocate(own.length).put(0, own);
    ByteBuffer all = HostBuffers.allocate(own.length * size);
    places = new Places(all, size);
    MpiRequest request = world.allGather(ownPlace, all);
    for (int i = 0; !request.test(); i++) {
      if (i < QUICK_TESTS) {
        Thread.yield();
      } else {
        pause();
      }
    }
    boolean[] alive = new boolean[size];
    for (int peer = 0; peer < size; peer++) {
      alive[peer] = places.of(peer).isAlive();
    }
    seen = alive;
  }

  static void pause() {
    try {
      Thread.sleep(1);
    } catch (InterruptedException e) {
      Thread.yield(); // the thread that checks the time ends this wait
    }
  }

  /**
   * {@return the ranks for which the start waits, for example {@code not all ranks created a sync:
   * rank 1 (host=node7, process=4711) has not come}} Does not call MPI.
   */
  private String missing() {
    Places known = places;
    if (known == null) {
      return "MPI has not started, because not all ranks have come to create their first sync"
          + list(notStarted());
    }
    boolean[] visible = seen;
    if (visible == null) {
      Map<Integer, JobProcesses.Found> processes = JobProcesses.find(System.getenv());
      List<String> late = new ArrayList<>();
      for (int peer = 0; peer < known.size(); peer++) {
        if (!known.has(peer)) {
          JobProcesses.Found process = processes.get(peer);
          late.add(process == null ? "rank " + peer + " has not come" : process.late(peer));
        }
      }
      return "not all ranks created a sync" + list(late);
    }
    return call + " does not return at the start of the job" + list(notRunning(known, visible));
  }

  private static List<String> notStarted() {
    Map<String, String> environment = System.getenv();
    int size = number(environment.get("OMPI_COMM_WORLD_SIZE"));
    boolean oneNode = size == number(environment.get("OMPI_COMM_WORLD_LOCAL_SIZE"));
    Map<Integer, JobProcesses.Found> processes = JobProcesses.find(environment);
    List<String> late = new ArrayList<>();
    for (int peer = 0; peer < size && !processes.isEmpty(); peer++) {
      JobProcesses.Found process = processes.get(peer);
      if (process != null && (!process.hasCome() || !process.place().trouble().isEmpty())) {
        late.add(process.late(peer));
      } else if (process == null && oneNode) {
        late.add("rank " + peer + " has ended, or runs in another PID namespace");
      }
    }
    return late;
  }

  private static int number(String text) {
    return text != null && text.matches("\\d{1,9}") ? Integer.parseInt(text) : 0;
  }

  /**
   * All ranks have come and run only the library's code, so a missing rank was stopped or has
   * ended. If no rank of this host is missing, one of another host is.
   */
  private List<String> notRunning(Places known, boolean[] visible) {
    List<String> troubled = new ArrayList<>();
    List<String> others = new ArrayList<>();
    String host = known.of(Integer.parseInt(rank)).host();
    for (int peer = 0; peer < known.size(); peer++) {
      RankPlace place = known.of(peer);
      String name = "rank " + peer + " (" + place + ")";
      if (!visible[peer] || !place.host().equals(host)) {
        others.add(name + " may be stopped, or cannot be reached");
      } else if (!place.trouble().isEmpty()) {
        troubled.add(name + " " + place.trouble());
      }
    }
    if (troubled.isEmpty() && others.isEmpty()) {
      troubled.add("every rank is running");
    }
    return troubled.isEmpty() ? others : troubled;
  }

  private static String list(List<String> ranks) {
    if (ranks.isEmpty()) {
      return "";
    }
    String more = ranks.size() > MAX_NAMED ? ", and " + (ranks.size() - MAX_NAMED) + " more" : "";
    return ranks.stream().limit(MAX_NAMED).collect(Collectors.joining(", ", ": ", more));
  }
}
