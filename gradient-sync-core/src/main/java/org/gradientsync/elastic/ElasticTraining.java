package org.gradientsync.elastic;

import java.nio.LongBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.gradientsync.Communicator;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.RankLostException;
import org.gradientsync.core.backend.Amounts;
import org.gradientsync.core.backend.WaitClock;
import org.gradientsync.core.backend.WaitingFile;
import org.gradientsync.core.sync.Admission;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.Timeouts;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs a training whose ranks may be lost, may leave and may join.
 *
 * <pre>{@code
 * try (ElasticTraining training = ElasticTraining.builder(sync, loop).build()) {
 *   training.run(0, 10_000);
 * }
 * }</pre>
 *
 * <p>When a rank is lost, the others compare which steps they have finished. Those that are behind
 * get the state of one that is not, and all go on with the step after. The weights then have the
 * same bits on all ranks, and those of an undisturbed run that had the smaller number of ranks from
 * that step on.
 *
 * <p>Where a part of the state lies on one rank only, a lost rank takes it along. Then {@link
 * Builder#commitEvery commit}: each rank keeps a copy of the whole state in host memory, and all go
 * back to the newest copy.
 *
 * <p>For one thread.
 */
public final class ElasticTraining implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(ElasticTraining.class);
  static final long NOTHING = -1; // no step: this rank's state is not whole
  private static final int MOST_ROUNDS = 3;
  private static final long LEAVES = 1;
  private static final long ADMITS = 2;
  private static final long GIVES_UP = 3;
  private static final long POLL_NANOS = 20_000_000;

  private final ElasticLoop loop;
  private final int minRanks;
  private final Duration waitForRanks;
  private final long commitEvery;
  private final CommittedState committed;
  private GradientSync sync;
  private boolean begun;
  private boolean aligned; // all ranks have the same state
  private boolean ready; // begin has returned
  private boolean whole; // the state: not half overwritten, nor that of one that is to get it
  private boolean trained; // this rank has had the state of all
  private long step;
  private volatile boolean leaves;
  private boolean allLeft;
  private boolean givesUp; // too few ranks are left, or no state
  private int changes;
  private int rounds; // that failed in the same step, and lost no rank
  private long roundsStep = NOTHING;

  private ElasticTraining(Builder builder) {
    sync = builder.sync;
    whole = !(sync instanceof Admission own && own.hasJoined());
    loop = builder.loop;
    committed = new CommittedState(loop);
    minRanks = builder.minRanks;
    waitForRanks = builder.waitForRanks;
    commitEvery = builder.commitEvery;
  }

  /**
   * Creates a builder.
   *
   * @param sync of all ranks; this training closes it, and those that come after it
   * @param loop the training
   * @return a builder
   */
  public static Builder builder(GradientSync sync, ElasticLoop loop) {
    return new Builder(sync, loop);
  }

  /** Options of a training, the same on all ranks. */
  public static final class Builder {
    private final GradientSync sync;
    private final ElasticLoop loop;
    private int minRanks;
    private Duration waitForRanks;
    private long commitEvery;

    private Builder(GradientSync sync, ElasticLoop loop) {
      this.sync = Objects.requireNonNull(sync, "sync");
      this.loop = Objects.requireNonNull(loop, "loop");
      Settings settings = new Settings(Map.of());
      minRanks = settings.elasticMin();
      waitForRanks = settings.elasticWait();
    }

    /**
     * Sets with how many ranks the training goes on. With fewer it waits for others to join, and
     * then {@link #run} throws.
     *
     * @param ranks if not set, the system property {@code gradientsync.elastic.min}, otherwise 1
     * @return this builder
     */
    public Builder minRanks(int ranks) {
      if (ranks < 1) {
        throw new IllegalArgumentException("at least one rank goes on: minRanks=" + ranks);
      }
      minRanks = ranks;
      return this;
    }

    /**
     * Sets how long too few ranks wait for others to join.
     *
     * @param limit if not set, the system property {@code gradientsync.elastic.wait}, otherwise a
     *     minute
     * @return this builder
     */
    public Builder waitForRanks(Duration limit) {
      waitForRanks = Objects.requireNonNull(limit, "limit");
      return this;
    }

    /**
     * Sets after how many steps each rank copies the whole state to host memory. After a loss all
     * ranks go back to the newest copy. For state that lies on one rank only.
     *
     * @param steps 0 if not set: the state is whole on each rank, and nothing is copied
     * @return this builder
     */
    public Builder commitEvery(long steps) {
      if (steps < 0) {
        throw new IllegalArgumentException("not a number of steps: commitEvery=" + steps);
      }
      commitEvery = steps;
      return this;
    }

    /** {@return a new training, which the caller closes} */
    public ElasticTraining build() {
      return new ElasticTraining(this);
    }
  }

  /**
   * Trains. Called by all ranks. All begin with the state of the rank whose first step is the
   * highest.
   *
   * @param first this rank's next step, 0 in a new training
   * @param end the step before which to stop
   * @return true if all steps are done; false if this rank has left: its sync is closed, and its
   *     buffers with it, unless {@linkplain #haveAllLeft all have left}
   * @throws RankLostException if too few ranks are left, or none that has a whole state, or the
   *     others have gone on without this one
   * @throws GradientSyncException if the state of this rank has other buffers than that of the
   *     ranks that it joins, or any rank's at the start
   */
  public boolean run(long first, long end) {
    end(); // of an earlier run
    step = first;
    allLeft = false;
    givesUp = false;
    aligned = false;
    while (true) {
      try {
        if (!aligned) {
          align(awaitEnough(end));
          aligned = true;
        }
        if (step >= end) {
          sync.barrier(); // until here, others may need this rank's state
          return true;
        }
        if (!meet()) {
          return false;
        }
        if (!aligned) {
          continue;
        }
        loop.compute(step);
        ((BackendDevice) sync.device()).stream().await(); // a GPU finds losses late
        loop.update(step);
        step++;
        if (commitEvery > 0 && (step % commitEvery == 0 || step == end)) {
          commit();
        }
      } catch (RankLostException e) {
        if (givesUp || sync instanceof Admission own && own.isClosed()) {
          throw e; // the others go on without this rank, or nobody does
        }
        log.info("rank {}: {}", sync.rank(), e.getMessage());
        goOn(e);
        aligned = false;
      }
    }
  }

  /**
   * Lets this rank leave before its next step: {@link #run} returns false, and the others go on.
   * Any thread may call it. {@link GradientSync#requestStop} does the same here, and so does a
   * signal to a process whose sync was built with {@link GradientSync.Builder#stopOnSignal}.
   */
  public void leave() {
    leaves = true;
  }

  /**
   * {@return whether all ranks have left before the same step, as when a signal ends the whole job}
   * The same on all of them, unless one is lost meanwhile. Then the sync and its buffers stay open
   * until {@link #close}, so that rank 0 of {@link #sync} can save the state.
   */
  public boolean haveAllLeft() {
    return allLeft;
  }

  /** {@return the sync of the ranks that take part now; do not close it} */
  public GradientSync sync() {
    return sync;
  }

  /** {@return how often the ranks have changed since the start} */
  public int changes() {
    return changes;
  }

  /** The ranks tell each other who leaves and who waits. Returns false if this one leaves. */
  private boolean meet() {
    long own = wantsToLeave() ? LEAVES : newcomers() > 0 ? ADMITS : 0;
    long[] all = gather(own);
    boolean nobodyLeaves = Arrays.stream(all).noneMatch(word -> word == LEAVES);
    if (nobodyLeaves && Arrays.stream(all).anyMatch(word -> word == ADMITS)) {
      keep();
      admit();
      aligned = false; // as those that have joined
    }
    if (nobodyLeaves) {
      return true;
    }
    keep();
    int[] leaving = IntStream.range(0, all.length).filter(i -> all[i] == LEAVES).toArray();
    allLeft = leaving.length == all.length;
    if (own == LEAVES) {
      log.info("rank {} leaves before step {}{}", sync.rank(), step, allLeft ? ", as all do" : "");
      if (!allLeft) {
        WaitingFile.leave();
        close();
      }
      return false;
    }
    throw new RankLostException(
        "ranks leave before step " + step + ": " + Arrays.toString(leaving), null, true);
  }

  private boolean wantsToLeave() {
    return leaves || sync instanceof Admission own && own.isStopRequested();
  }

  private long[] gather(long... own) {
    long[] all = new long[own.length * sync.size()];
    sync.communicator().allGather(LongBuffer.wrap(own), LongBuffer.wrap(all));
    return all;
  }

  /** Commits before the ranks change without a loss, so that no step is repeated. */
  private void keep() {
    if (begun && commitEvery > 0 && committed.step() != step) {
      commit();
    }
  }

  private int newcomers() {
    return sync instanceof Admission own ? own.newcomers() : 0;
  }

  private void admit() {
    end();
    GradientSync all = ((Admission) sync).admit();
    changes += all == sync ? 0 : 1;
    sync = all;
  }

  /**
   * Waits for others to join, if there are too few ranks for the steps that are left. Returns false
   * if there still are, because a rank wants to leave, which it does before the next step.
   */
  private boolean awaitEnough(long end) {
    WaitClock time = new WaitClock();
    while (sync.size() < minRanks && states().newest() < end) {
      boolean over = time.look() > Timeouts.nanos(waitForRanks);
      long[] all = gather(wantsToLeave() ? LEAVES : newcomers() > 0 ? ADMITS : over ? GIVES_UP : 0);
      if (Arrays.stream(all).anyMatch(word -> word == LEAVES)) {
        return false;
      } else if (Arrays.stream(all).anyMatch(word -> word == ADMITS)) {
        admit();
      } else if (all[0] == GIVES_UP) {
        throw giveUp(
            "too few ranks are left: ranks=%s, minRanks=%s, waited=%s"
                .formatted(sync.size(), minRanks, Amounts.time(waitForRanks)));
      } else {
        LockSupport.parkNanos(POLL_NANOS);
      }
    }
    return true;
  }

  private RankLostException giveUp(String why) {
    givesUp = true;
    WaitingFile.giveUp();
    return new RankLostException(why);
  }

  /** Makes a sync of the ranks that are left. */
  private void goOn(RankLostException cause) {
    if (rounds == MOST_ROUNDS && step == roundsStep) {
      throw cause; // nobody is lost, and the step fails each time
    }
    end();
    int before = sync.size();
    sync = sync.survivors();
    changes++;
    rounds = step == roundsStep && sync.size() == before ? rounds + 1 : 1;
    roundsStep = step;
  }

  private void end() {
    if (!begun) {
      return;
    }
    boolean half = !ready;
    begun = false;
    ready = false;
    try {
      loop.end();
    } catch (RuntimeException e) {
      if (!half) {
        throw e;
      }
      log.info("rank {}: end() failed after a begin() that had failed", sync.rank(), e);
    }
  }

  /** Ends this training if its state cannot be that of the others. */
  private void requireSameState() {
    long[] shapes = gather(committed.shape(trained));
    try {
      CommittedState.requireSame(shapes, sync.rank());
    } catch (RankLostException e) {
      throw e;
    } catch (GradientSyncException e) {
      Resources.closeAllAfter(e, this);
      throw e;
    }
  }

  /** The state that each rank can give to others. */
  private RankStates states() {
    boolean copied = committed.step() != NOTHING;
    RankStates all =
        new RankStates(
            copied
                ? gather(committed.step(), RankStates.COPY)
                : gather(whole ? step : NOTHING, RankStates.kind(whole && trained)));
    if (all.newest() == NOTHING) {
      throw giveUp(
          "no rank has a whole state: rank=%s; start again from a checkpoint"
              .formatted(sync.rank()));
    }
    return all;
  }

  /**
   * Gives all ranks the newest state.
   *
   * @param begins whether the loop begins with it
   */
  private void align(boolean begins) {
    requireSameState();
    RankStates all = states();
    long newest = all.newest();
    boolean goesBack = all.areCopies();
    if (all.differ() || goesBack) {
      receive(all.root(), newest, goesBack, goesBack || all.isBehind(sync.rank()));
    }
    step = newest;
    trained = true;
    if (!begins) {
      return;
    }
    begun = true;
    loop.begin(sync);
    ready = true;
    if (goesBack) {
      loop.scatter();
    } else if (commitEvery > 0) {
      commit();
    }
  }

  /**
   * Gives all ranks the state of one.
   *
   * @param newest its step
   * @param commits whether it is a copy, which all ranks take
   * @param isBehind false if this rank has that state; it keeps its own, as the other may be lost
   */
  private void receive(int root, long newest, boolean commits, boolean isBehind) {
    Communicator ranks = sync.communicator();
    boolean own = sync.rank() == root;
    if (own && commits) {
      committed.restore();
    }
    byte[] rest = ranks.broadcast(own ? (commits ? committed.rest() : loop.save()) : null, root);
    if (isBehind) {
      whole = own; // it is overwritten from here on
      loop.load(rest);
    }
    committed.broadcast(ranks, root, isBehind);
    whole = true;
    if (commits && !own) {
      committed.take(newest); // at once: the next loss may come in begin
    }
  }

  /** Copies the whole state of all ranks. The earlier copy stays until it is gathered. */
  private void commit() {
    loop.gather();
    ((BackendDevice) sync.device()).stream().await();
    committed.take(step);
  }

  /** Closes the sync of the ranks that take part now. */
  @Override
  public void close() {
    end();
    sync.close();
  }
}
