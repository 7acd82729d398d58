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
 * Injects faults, each on one rank at one call, into training code under test, which stays as it
 * is.
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
 * <p>The calls of each rank's program are counted from 1: {@code allReduce}, {@code average},
 * {@code broadcast}, {@code register} and {@code barrier} of the sync, {@code broadcast} of
 * buckets, the average of each bucket, and the collectives of the sync's communicator and of its
 * parts. The calls that the library makes itself do not count. Copies from and to buffers and their
 * views have a count of their own.
 *
 * <p>After each test the plan is forgotten. The test fails if a planned fault was never reached; in
 * a process that mpirun started, if it was one of this process's rank.
 *
 * <p>Another way to get one is {@code @ExtendWith(Faults.class)} and a parameter of this type.
 */
public final class Faults implements AfterEachCallback, ParameterResolver {
  private static final ExtensionContext.Namespace NAMESPACE =
      ExtensionContext.Namespace.create(Faults.class);

  private final List<Fault> planned = new CopyOnWriteArrayList<>();
  private final ConcurrentMap<Integer, RankCalls> ranks = new ConcurrentHashMap<>();

  /** Nothing planned. */
  public Faults() {}

  /**
   * Chooses the rank on which something goes wrong.
   *
   * @param rank its number in the job
   * @return for choosing the call
   */
  public OnRank onRank(int rank) {
    return new OnRank(rank);
  }

  /**
   * Injects the faults into a sync. Several syncs of one rank are counted together.
   *
   * @param builder of the sync
   * @return the builder
   */
  public GradientSync.Builder install(GradientSync.Builder builder) {
    return ((CallInterceptor.Installer) builder).interceptor(this::calls);
  }

  private RankCalls calls(GradientSync sync) {
    boolean process = !sync.launcher().equals("local");
    return ranks.computeIfAbsent(sync.rank(), rank -> new RankCalls(rank, planned, process));
  }

  /**
   * Fails if a fault that was planned has not been reached, and forgets the plan. Called after each
   * test.
   *
   * @throws AssertionError naming the faults
   */
  public void requireReached() {
    boolean threads = ranks.values().stream().anyMatch(calls -> !calls.isProcess());
    List<String> missed = new ArrayList<>();
    for (Fault fault : planned) {
      if (!fault.isReached() && (threads || RankProcess.mayBe(fault.rank()))) {
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
      store.put(Faults.class, new Faults()); // one for each test, which may run beside others
    }
    return store.get(Faults.class);
  }

  /** A rank, of which a call is to be chosen. */
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
     * @param call its number on this rank, from 1
     * @return for choosing what goes wrong
     */
    public AtCall atCall(int call) {
      return new AtCall(rank, call);
    }

    /**
     * Chooses a copy from or to a buffer.
     *
     * @param copy its number on this rank, from 1; the calls between are not counted
     * @return for choosing what goes wrong
     */
    public AtCopy atCopy(int copy) {
      return new AtCopy(rank, copy, Fault.Kind.COPY);
    }
  }

  /** A copy of one rank, at which something is to go wrong. */
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
     * The rank comes late.
     *
     * @param delay by how much
     */
    public void delay(Duration delay) {
      Objects.requireNonNull(delay, "delay");
      plan("delay(" + delay + ")", calls -> calls.sleep(delay));
    }

    /**
     * The rank dies: a thread of LocalRanks ends with a {@link RankDiedError}; a process is killed
     * as by {@code kill -9}.
     */
    public void die() {
      plan("die()", RankCalls::die);
    }

    /**
     * The call throws on this rank, and is not made.
     *
     * @param failure what it throws
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
     * The call throws on this rank, and is not made, as if its device had failed. A CudaException
     * of a certain code goes into {@link #fail}.
     *
     * @param error what the device says, for example {@code CUDA_ERROR_LAUNCH_FAILED}
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

  /** A call of one rank, at which something is to go wrong. */
  public final class AtCall extends AtCopy {
    private AtCall(int rank, int number) {
      super(rank, number, Fault.Kind.CALL);
    }

    /** The rank leaves the call out; the others make it. What it calls next meets them there. */
    public void drop() {
      plan("drop()", calls -> Fault.Verdict.DROP);
    }

    /**
     * The rank asks for one element less than the others. A barrier, which has none, becomes an
     * all-reduce.
     */
    public void mismatch() {
      plan("mismatch()", calls -> Fault.Verdict.MISMATCH);
    }
  }
}
