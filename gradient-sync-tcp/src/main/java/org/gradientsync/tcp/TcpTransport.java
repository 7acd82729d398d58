package org.gradientsync.tcp;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Optional;
import org.gradientsync.spi.JobProcess;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Transport;

/** Messages between ranks that reach each other by TCP. */
final class TcpTransport implements Transport {
  private final TcpJob job;
  private final TcpProcess process; // null if the rank is a thread

  TcpTransport(TcpJob job) {
    this.job = job;
    process = job.own().ofProcess() ? new TcpProcess(job) : null;
    if (process != null) {
      job.endpoint().setJobFrames(process);
    }
  }

  @Override
  public String name() {
    return TcpLauncher.NAME;
  }

  @Override
  public int rank() {
    return job.own().rank();
  }

  @Override
  public int size() {
    return job.own().size();
  }

  @Override
  public int nodeOf(int rank) {
    return job.nodeOf(rank);
  }

  @Override
  public String placeOf(int rank) {
    return job.placeOf(rank).toString();
  }

  @Override
  public boolean isAlive(int rank) {
    return job.isAlive(rank);
  }

  @Override
  public Optional<JobProcess> process() {
    return Optional.ofNullable(process);
  }

  @Override
  public Message sender(ByteBuffer memory, int peer, int tag) {
    return job.endpoint().sender(memory, peer, tag);
  }

  @Override
  public Message receiver(ByteBuffer memory, int peer, int tag) {
    return job.endpoint().receiver(memory, peer, tag);
  }

  @Override
  public void goOnWithout(List<Integer> lost) {
    if (process != null) {
      lost.forEach(process::leaveBehind);
    }
  }

  /** Whether this rank has left the job. */
  boolean isClosed() {
    return job.hasLeft();
  }

  @Override
  public void close() {
    job.leave();
  }
}
