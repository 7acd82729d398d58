package org.gradientsync.tcp;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.util.List;
import java.util.Optional;
import java.util.function.BooleanSupplier;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.backend.WaitingFile;
import org.gradientsync.spi.JobProcess;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Transport;

/** Messages between ranks that reach each other by TCP. */
final class TcpTransport implements Transport {
  private final TcpJob job;
  private volatile TcpTransport previous; // of the job before, or null
  private volatile TcpTransport next; // of the job that follows, or null
  private ServerSocketChannel prepared; // for the next job, or null
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
  public boolean mayLive(int rank) {
    return job.mayLive(rank);
  }

  @Override
  public String fate(int rank) {
    return job.fate(rank);
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
    job.goOnWithout(lost);
    if (!lost.isEmpty() && next == null) { // perhaps before all knew of an invitation
      job.lobby().forgetInvited();
      closePrepared();
    }
    if (process != null) {
      lost.forEach(process::leaveBehind);
    }
  }

  @Override
  public void leaveSilent(List<Integer> silent) {
    WaitingFile.leaveBehind(silent.stream().map(job::processOf).filter(p -> p >= 0).toList());
  }

  @Override
  public int newcomers(int ranks, String settings) {
    return job.lobby().count(ranks, settings);
  }

  @Override
  public boolean hasJoined() {
    return job.lobby().isOfNewcomer();
  }

  @Override
  public byte[] invite(int ranks, String settings) {
    closePrepared();
    try {
      prepared = ServerSocketChannel.open();
      prepared.bind(new InetSocketAddress(job.address(), 0));
      int port = ((InetSocketAddress) prepared.getLocalAddress()).getPort();
      int size = ranks + job.lobby().invite(ranks, port, settings);
      if (size == ranks) {
        closePrepared();
        return new byte[0];
      }
      return new Invitation(size, job.address().getHostAddress(), port).encode();
    } catch (IOException e) {
      closePrepared();
      throw new UnavailableException(
          "no new job can begin: rank=" + rank() + ": " + e.getMessage(), e);
    }
  }

  @Override
  public TcpTransport join(byte[] invitation, int rank) {
    Coordinates place = job.own().in(Invitation.decode(invitation), rank);
    BooleanSupplier hasLost = () -> job.hasLost() || rank == 0 && job.lobby().hasInvitedEnded();
    ServerSocketChannel server = prepared;
    prepared = null; // it is the new job's, which also says why it does not begin
    TcpJob joined;
    try {
      joined = JobStart.next(place, job.lobby(), server, hasLost).join();
    } catch (RuntimeException e) {
      job.lobby().forgetInvited();
      throw e;
    }
    next = new TcpTransport(joined);
    next.previous = this;
    return next;
  }

  private void closePrepared() {
    try {
      if (prepared != null) {
        prepared.close();
      }
    } catch (IOException e) {
      // it is gone
    }
    prepared = null;
  }

  /** Where this rank is after this job, or null. */
  TcpTransport next() {
    return next;
  }

  /** Whether this rank has left the job. */
  boolean isClosed() {
    return job.hasLeft();
  }

  @Override
  public void close() {
    job.leave();
    closePrepared();
    if (next != null) {
      next.previous = null; // its close has nothing more to ask this one
    }
    if (previous != null && !previous.isClosed()) {
      previous.next = null; // its ranks stay where they are
    } else if (next == null) {
      job.lobby().close();
    }
  }
}
