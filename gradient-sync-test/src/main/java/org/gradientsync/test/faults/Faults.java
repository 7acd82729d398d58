package org.gradientsync.test.faults;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.spi.CallInterceptor;
import org.gradientsync.spi.Resources;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * Injects faults into training code under test, each on one rank at one call. The training code
 * stays as it is.
 *
 * <pre>{@code
 * @RegisterExtension final Faults faults = new Faults();
 *
 * @Test
 * void theOthersNotice() {
 *   faults.onRank(1).atCall(3).die();
 *   assertThrows(
 *       GradientSyncException.class, () -> LocalRanks.run(2, faults::install, sync -> train(sync)));
 * }
 * }</pre>
 *
 * <p>Each rank counts the calls of its program from 1: the sync's collectives and messages on
 * arrays and buffers, each in a group too, {@code register}, {@code barrier}, {@code mean} and
 * {@code counts}, {@code broadcast} of buckets, the average of each bucket, and the collectives of
 * the sync's communicator and of those split from it; one of bytes can be two. Neither splits,
 * messages of communicators, nor calls that the library makes itself count. Copies from and to
 * buffers and their views have their own count.
 *
 * <p>After each test the extension clears the plan. The test fails if it did not reach a planned
 * fault. In a process that mpirun started, this covers only the faults of the process's own rank.
 *
 * <p>Instead of a field, a test can have {@code @ExtendWith(Faults.class)} and a parameter of this
 * type.
 */
public final class Faults implements AfterEachCallback, ParameterResolver {
  private static final ExtensionContext.Namespace NAMESPACE =
      ExtensionContext.Namespace.create(Faults.class);

  private final List<Fault> planned = new CopyOnWriteArrayList<>();
  private final ConcurrentMap<Integer, RankCalls> ranks = new ConcurrentHashMap<>();

  /** Creates an extension without planned faults. */
  public Faults() {}

  /**
   * Chooses the rank on which a fault happens.
   *
   * @param rank the rank's number in the job
   * @return a selector for the call
   */
  public OnRank onRank(int rank) {
    return new OnRank(rank);
  }

  /**
   * Injects the faults into a sync. All syncs of one rank share their counts.
   *
   * @param builder the builder of the sync
   * @return the same builder
   */
  public GradientSync.Builder install(GradientSync.Builder builder) {
    return ((CallInterceptor.Installer) builder).interceptor(this::calls);
  }

  private RankCalls calls(GradientSync sync) {
    boolean process = !sync.launcher().equals("local");
    return ranks.computeIfAbsent(sync.rank(), rank -> new RankCalls(rank, planned, process));
  }

  /**
   * Fails if a planned fault was not reached, and clears the plan. The extension calls this after
   * each test.
   *
   * @throws AssertionError if faults were not reached; names them
   */
  public void requireReached() {
    boolean threads = ranks.values().stream().anyMatch(calls -> !calls.isProcess());
    boolean unknown = ranks.isEmpty(); // no sync says which ranks are here
    List<String> missed = new ArrayList<>();
    for (Fault fault : planned) {
      if (!fault.isReached()
          && (threads
              || (unknown ? RankProcess.mayBe(fault.rank()) : ranks.containsKey(fault.rank())))) {
        RankCalls calls = ranks.get(fault.rank());
        missed.add(
            fault + (calls == null ? " (no sync of that rank has these faults)" : calls.made()));
      }
    }
    planned.clear();
    ranks.clear();
    if (!missed.isEmpty()) {
      throw new AssertionError("planned faults were never reached: " + String.join(", ", missed));
    }
  }

  @Override
  public void afterEach(ExtensionContext context) {
    Faults injected = context.getStore(NAMESPACE).get(Faults.class, Faults.class);
    Resources.closeAll(injected == null ? null : injected::requireReached, this::requireReached);
  }

  @Override
  public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
    return parameter.getParameter().getType() == Faults.class;
  }

  @Override
  public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
    ExtensionContext.Store store = context.getStore(NAMESPACE);
    if (store.get(Faults.class) == null) {
      store.put(Faults.class, new Faults()); // one per test, as tests may run in parallel
    }
    return store.get(Faults.class);
  }

  /** Selects a call of one rank. */
  public final class OnRank {
    private final int rank;

    private OnRank(int rank) {
      if (rank < 0) {
        throw new IllegalArgumentException("no such rank: rank=" + rank);
      }
      this.rank = rank;
    }

    /**
     * Chooses a collective call.
     *
     * @param call the call's number on this rank, from 1
     * @return a selector for the fault
     */
    public AtCall atCall(int call) {
      return new AtCall(rank, call);
    }

    /**
     * Chooses a copy from or to a buffer.
     *
     * @param copy the copy's number on this rank, from 1; collective calls in between do not count
     * @return a selector for the fault
     */
    public AtCopy atCopy(int copy) {
      return new AtCopy(rank, copy, Fault.Kind.COPY);
    }
  }

  /** Selects the fault that happens at one copy of a rank. */
  public class AtCopy {
    private final int rank;
    private final int number;
    private final Fault.Kind kind;

    private AtCopy(int rank, int number, Fault.Kind kind) {
      if (number < 1) {
        throw new IllegalArgumentException("numbers begin with 1: number=" + number);
      }
      this.rank = rank;
      this.number = number;
      this.kind = kind;
    }

    void plan(String what, Fault.Strike strike) {
      planned.add(new Fault(rank, kind, number, what, strike));
    }

    /**
     * Makes the rank late.
     *
     * @param delay how late, zero or more
     */
    public void delay(Duration delay) {
      if (Objects.requireNonNull(delay, "delay").isNegative()) {
        throw new IllegalArgumentException("delay is negative: delay=" + delay);
      }
      plan("delay(" + delay + ")", calls -> calls.sleep(delay));
    }

    /**
     * Ends the rank. A thread of LocalRanks throws a {@link RankDiedError}; a process is killed as
     * by {@code kill -9}.
     */
    public void die() {
      plan("die()", RankCalls::die);
    }

    /**
     * Makes the call throw on this rank instead of running.
     *
     * @param failure the exception to throw
     */
    public void fail(RuntimeException failure) {
      Objects.requireNonNull(failure, "failure");
      plan(
          "fail(" + failure + ")",
          calls -> {
            throw failure;
          });
    }

    /**
     * Makes the call throw on this rank instead of running, as if the rank's device had failed. To
     * throw a DeviceException with a certain code, use {@link #fail}.
     *
     * @param error the device's error text, for example {@code CUDA_ERROR_LAUNCH_FAILED}
     */
    public void deviceError(String error) {
      plan(
          "deviceError(" + error + ")",
          calls -> {
            throw new GradientSyncException(
                "device failed: error=" + error + ", rank=" + rank + "; planned by a test");
          });
    }
  }

  /** Selects the fault that happens at one call of a rank. */
  public final class AtCall extends AtCopy {
    private AtCall(int rank, int number) {
      super(rank, number, Fault.Kind.CALL);
    }

    /**
     * Skips the call on this rank. The other ranks make it, and meet this rank's next call there.
     */
    public void drop() {
      plan("drop()", calls -> Fault.Verdict.DROP);
    }

    /**
     * Makes the rank ask for one element less than the others. A barrier, which has no elements,
     * becomes an all-reduce.
     */
    public void mismatch() {
      plan("mismatch()", calls -> Fault.Verdict.MISMATCH);
    }
  }
}
