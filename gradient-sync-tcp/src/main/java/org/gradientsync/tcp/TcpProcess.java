package org.gradientsync.tcp;

import java.util.function.IntPredicate;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.gradientsync.core.backend.Signals;
import org.gradientsync.spi.JobProcess;

/**
 * This process as one of the job's: rank 0 counts who has come to its end, and tells all when all
 * have; whoever aborts tells all, and rank 0 passes it on.
 */
final class TcpProcess implements JobProcess, Endpoint.JobFrames {
  private static final long FLUSH_NANOS = 500_000_000L;
  private static final long GOODBYE_NANOS = 2_000_000_000L;
  private static final long GRACE_MILLIS = 15_000; // from the signal to the end

  private final TcpJob job;
  private final boolean[] ended; // at rank 0
  private boolean said;
  private volatile boolean allCame;
  private volatile boolean finished;
  private boolean aborted; // guarded by the endpoint

  TcpProcess(TcpJob job) {
    this.job = job;
    ended = new boolean[job.own().size()];
    allCame = job.own().size() == 1;
  }

  private int rank() {
    return job.own().rank();
  }

  @Override
  public boolean arrived(int peer, int type, int value) {
    switch (type) {
      case Frame.END -> {
        ended[peer] = true;
        endIfAll();
        return rank() == 0;
      }
      case Frame.ALL_ENDED -> {
        allCame = true; // or they go on without this one
        return true;
      }
      case Frame.ABORT -> {
        if (!aborted) {
          aborted = true;
          if (rank() == 0) {
            tellAll(Frame.ABORT, value);
          }
          end(value);
        }
        return true;
      }
      default -> {
        return false;
      }
    }
  }

  private void tellAll(int type, int value) {
    for (int peer = 0; peer < job.own().size(); peer++) {
      if (peer != rank()) {
        job.endpoint().tell(peer, type, value);
      }
    }
  }

  /** Tells a rank, if it lives, that it need not wait for the others. */
  void leaveBehind(int peer) {
    job.endpoint().tell(peer, Frame.ALL_ENDED, 0);
    job.endpoint().progress(null);
  }

  private void endIfAll() {
    if (rank() == 0 && !allCame && IntStream.range(0, ended.length).allMatch(i -> ended[i])) {
      tellAll(Frame.ALL_ENDED, 0);
      allCame = true;
    }
  }

  /** As mpirun ends the others: by a signal, so that shutdown hooks run, and later for good. */
  private static void end(int code) {
    Thread thread =
        new Thread(
            () -> {
              try {
                Signals.terminate();
                Thread.sleep(GRACE_MILLIS);
              } catch (ReflectiveOperationException | InterruptedException e) {
                Runtime.getRuntime().halt(code);
              }
              Runtime.getRuntime().halt(code);
            },
            "gradient-sync-tcp-abort");
    thread.setDaemon(true);
    thread.start();
  }

  @Override
  public boolean isOwner() {
    return true;
  }

  @Override
  public boolean isFinished() {
    return finished;
  }

  @Override
  public boolean haveAllCome() {
    synchronized (job.endpoint()) {
      if (!said) {
        said = true;
        job.expectEnds();
        ended[rank()] = true;
        endIfAll();
        if (rank() != 0) {
          job.endpoint().tell(0, Frame.END, 0);
        }
      }
    }
    job.endpoint().progress(null);
    return allCame;
  }

  @Override
  public String finishName() {
    return "closing the connections";
  }

  @Override
  public void finish() {
    finished = true;
    job.awaitOutput(GOODBYE_NANOS);
    job.leave();
    job.awaitGoodbyes(GOODBYE_NANOS);
    job.close();
  }

  @Override
  public void abort(int code) {
    synchronized (job.endpoint()) {
      aborted = true;
      tellAll(Frame.ABORT, code);
    }
    job.awaitOutput(FLUSH_NANOS);
    Runtime.getRuntime().halt(code);
  }

  @Override
  public String troubles(IntPredicate asked) {
    return IntStream.range(0, job.own().size())
        .filter(peer -> peer != rank())
        .filter(asked)
        .filter(peer -> !trouble(peer).isEmpty())
        .mapToObj(peer -> "rank " + peer + " (" + job.placeOf(peer) + ") " + trouble(peer))
        .collect(Collectors.joining(", "));
  }

  private String trouble(int peer) {
    if (job.endpoint().peer(peer).isLost()) {
      return job.fate(peer);
    }
    return job.isVisible(peer) ? job.placeOf(peer).trouble() : "";
  }
}
