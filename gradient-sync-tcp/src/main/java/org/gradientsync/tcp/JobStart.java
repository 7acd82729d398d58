package org.gradientsync.tcp;

import java.io.EOFException;
import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketTimeoutException;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.gradientsync.GradientSyncException;
import org.gradientsync.RankLostException;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.backend.AgreedSettings;
import org.gradientsync.core.backend.Amounts;
import org.gradientsync.core.backend.RankPlace;
import org.gradientsync.core.backend.ShortText;
import org.gradientsync.core.backend.WaitClock;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.Timeouts;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Joins a job: rank 0 hears all others, and then tells all of them where the others are. */
final class JobStart {
  /** For tests: another version of the library. */
  static volatile String version =
      Optional.ofNullable(JobStart.class.getPackage().getImplementationVersion()).orElse("");

  private static final Logger log = LoggerFactory.getLogger(JobStart.class);
  private static final Duration FOLLOWING = Duration.ofSeconds(10);
  private static final long POLL_MILLIS = 50;
  private static final long FIRST_PAUSE_MILLIS = 20;
  private static final long MAX_PAUSE_MILLIS = 500;
  private static final long LISTEN_NANOS = 5_000_000_000L; // how long to try
  private static final long REASON_NANOS = 2_000_000_000L;
  private static final long MAX_ATTEMPT_NANOS = 15_000_000_000L;
  private static final int MOST_TIMEOUTS = 4; // of a call, and until the others go on

  private Coordinates own; // at one host after the other, if it joins
  private final Timeouts timeouts;
  private final String settings; // what one that joins sends
  private final Handshake handshake;
  private final Lobby lobby;
  private ServerSocketChannel prepared; // where rank 0 listens until its job does; or null
  private final WaitClock time = new WaitClock();
  private long attempts; // nanoseconds that failed attempts took, in which nobody read the clock
  private long limit; // of the wait in nanoseconds
  private long limitInLobby; // while ranks may have to find a loss
  private boolean warned;
  private String advice = "";
  private List<String> hosts = List.of(); // at which it may join
  private Supplier<JobStart> late; // joins the job if it has started without this rank, or null
  private BooleanSupplier hasLost = () -> false; // a rank that was to come

  /**
   * The first job of a rank. One that has started lets it in after a step, or never.
   *
   * @param hosts at which the ranks may listen for it then, beside the master
   */
  static JobStart first(Coordinates own, Settings settings, List<String> hosts) {
    Timeouts usual = settings.timeouts();
    if (!own.joins()) {
      JobStart first = new JobStart(own, usual, "", new Lobby(own, usual), null);
      first.late = settings.elastic() ? () -> first(own.joining(), settings, hosts) : null;
      return first;
    }
    Timeouts limits = new Timeouts(settings.elasticWait(), usual.late(), usual.reports());
    JobStart joining =
        new JobStart(own, limits, AgreedSettings.of(settings), new Lobby(own, usual), null);
    joining.hosts =
        hosts.isEmpty()
            ? hosts
            : Stream.concat(Stream.of(own.host()), hosts.stream()).distinct().toList();
    joining.limitInLobby = joining.limit + MOST_TIMEOUTS * usual.timeoutNanos();
    return joining;
  }

  /**
   * @param prepared where rank 0 listens, null on the others
   */
  private JobStart(
      Coordinates own,
      Timeouts timeouts,
      String settings,
      Lobby lobby,
      ServerSocketChannel prepared) {
    this.own = own;
    this.timeouts = timeouts;
    this.settings = settings;
    this.prepared = prepared;
    this.lobby = lobby;
    limit = timeouts.timeoutNanos();
    handshake = lobby.handshake();
  }

  /**
   * A job that follows another one, in a limited time.
   *
   * @param prepared where rank 0 listens, null on the others
   * @param hasLost whether one that was to come is known to be lost
   */
  static JobStart next(
      Coordinates own, Lobby lobby, ServerSocketChannel prepared, BooleanSupplier hasLost) {
    Timeouts limits = new Timeouts(FOLLOWING, FOLLOWING, Optional.empty());
    JobStart next = new JobStart(own, limits, "", lobby, prepared);
    next.hasLost = hasLost;
    return next;
  }

  /**
   * Joins.
   *
   * @throws UnavailableException if there can be no such job
   * @throws RankLostException if not all ranks come in time
   */
  TcpJob join() {
    try {
      return own.rank() == 0 && !own.joins() ? gather() : register();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new RankLostException("interrupted while the job starts: " + own, e);
    } catch (IOException | IllegalArgumentException e) {
      if (e instanceof IOException failure) {
        requireDescriptors(failure);
      }
      throw new RankLostException("cannot join the job: " + own + ": " + e.getMessage(), e);
    } finally {
      if (prepared != null) {
        Listener.close(prepared);
      }
    }
  }

  private void requireDescriptors(IOException e) {
    if (Descriptors.areExhausted(e)) {
      throw new UnavailableException(Descriptors.text(own.rank()), e);
    }
  }

  private Member self(ServerSocketChannel server) throws IOException {
    InetSocketAddress address =
        server == null
            ? new InetSocketAddress(InetAddress.getLoopbackAddress(), own.port())
            : (InetSocketAddress) server.getLocalAddress();
    return new Member(address, own.localRank(), version, RankPlace.own(Interfaces.hostName()));
  }

  // Rank 0.

  private TcpJob gather() throws IOException, InterruptedException {
    if (own.size() == 1) {
      TcpJob alone = new TcpJob(own, handshake, null, lobby);
      alone.begin(new Member[] {self(null)}, new byte[0], new SocketChannel[1], null);
      return alone;
    }
    InetAddress master = resolve();
    InetAddress chosen = Interfaces.chosen(own, master);
    boolean here = Interfaces.isHere(master);
    InetAddress address = chosen != null ? chosen : here ? master : null; // null: all
    prepared = prepared != null ? prepared : listen(address);
    String where = Interfaces.where(own, prepared, here);
    Registration registration = new Registration(own.size(), self(prepared));
    TcpJob job = new TcpJob(own, handshake, registration, lobby);
    try {
      Listener listener = job.listen(prepared);
      prepared = null; // the listener closes it
      while (true) {
        if (registration.await(POLL_MILLIS)) {
          if (registration.failure() != null) {
            throw new UnavailableException(registration.failure());
          }
          byte[] id = Handshake.random(Handshake.JOB);
          Registration.Started all = registration.start(id);
          if (all != null) {
            job.begin(all.members(), id, all.channels(), chosen);
            return job;
          }
        }
        look(
            "not all ranks have come to %s: missing=%s%s%s"
                .formatted(
                    own.master(), registration.missing(), listener.refusals(own.rank()), where));
      }
    } catch (RuntimeException | Error | IOException | InterruptedException e) {
      registration.fail(
          Registration.GIVEN_UP,
          "rank 0 has given up the start of the job: " + ShortText.oneLine("" + e.getMessage()));
      MasterPort.refuseForAWhile(own.port(), job);
      throw e;
    }
  }

  private InetAddress resolve() throws InterruptedException {
    while (true) {
      try {
        return Interfaces.master(own);
      } catch (UnknownHostException e) {
        requireDescriptors(e);
        pause(MAX_PAUSE_MILLIS, "the master's name has no address: " + own.host());
        tryNextHost();
      }
    }
  }

  /** The host of the first rank of those that are left, which the process cannot know. */
  private void tryNextHost() {
    if (!hosts.isEmpty()) {
      own = own.at(hosts.get((hosts.indexOf(own.host()) + 1) % hosts.size()));
    }
  }

  private ServerSocketChannel listen(InetAddress address) throws IOException {
    try {
      return MasterPort.listen(
          address, own.port(), Math.min(LISTEN_NANOS, timeouts.timeoutNanos()));
    } catch (BindException e) {
      throw new UnavailableException(
          ("rank 0 cannot listen at the job's port: address=%s, port=%s: %s;"
                  + " another process listens there, perhaps a second rank 0:"
                  + " choose another MASTER_PORT, or tcp.master")
              .formatted(
                  address == null ? "any" : address.getHostAddress(), own.port(), e.getMessage()),
          e);
    }
  }

  // The others.

  /** Waits until the ranks of a job that has started invite this one. */
  private TcpJob awaitInvitation(SocketChannel channel) throws IOException, InterruptedException {
    try (channel) { // open until this process has come, or rank 0 does not wait for it
      limit = limitInLobby;
      ByteBuffer self = ByteBuffer.allocate(Member.BYTES + Handshake.SETTINGS);
      self.put(self(null).encode());
      ShortText.put(self, Member.BYTES, Handshake.SETTINGS, settings);
      OutgoingHandshake.write(channel, self.array());
      ByteBuffer reply = ByteBuffer.wrap(read(channel, Registration.REPLY));
      int status = reply.getInt();
      int length = reply.getInt();
      requireTaken(channel, status, length);
      if (status != Registration.INVITED || length != Invitation.BYTES) {
        throw new IOException("the job has sent what no rank sends");
      }
      ByteBuffer invitation = ByteBuffer.wrap(read(channel, Invitation.BYTES));
      int rank = invitation.getInt();
      int size = invitation.getInt();
      Coordinates invited = own.in(new Invitation(size, own.host(), invitation.getInt()), rank);
      channel.configureBlocking(false);
      try {
        return next(invited, lobby, null, () -> Lobby.hasEnded(channel)).join();
      } catch (GradientSyncException e) { // a rank was lost meanwhile; others may invite this one
        throw new IOException(e.getMessage(), e);
      }
    } finally {
      limit = timeouts.timeoutNanos() + time.look() + attempts; // from now on
    }
  }

  /** Throws if rank 0 has refused this rank for good, or has given up. */
  private void requireTaken(SocketChannel channel, int status, int length)
      throws IOException, InterruptedException {
    boolean givenUp = status == Registration.GIVEN_UP;
    if ((givenUp || status == Registration.REFUSED)
        && length >= 0
        && length <= Registration.MAX_REASON) {
      String reason = new String(read(channel, length), StandardCharsets.UTF_8);
      String text = ShortText.oneLine(reason) + ", rank=" + own.rank();
      throw givenUp ? new RankLostException(text) : new UnavailableException(text);
    }
  }

  private TcpJob register() throws IOException, InterruptedException {
    long pause = FIRST_PAUSE_MILLIS;
    String why;
    while (true) {
      InetAddress master = resolve();
      InetAddress chosen = Interfaces.chosen(own, master);
      Handshake.Hello hello =
          new Handshake.Hello(
              true,
              own.joins(),
              own.rank(),
              own.size(),
              0,
              new byte[Handshake.JOB],
              Handshake.random(Handshake.NONCE));
      long start = System.nanoTime();
      SocketChannel channel = null;
      try {
        channel = connect(new InetSocketAddress(master, own.port()), chosen, hello);
        advice = ""; // from now on it waits for others, and counts that itself
        return own.joins() ? awaitInvitation(channel) : register(channel, chosen);
      } catch (IOException e) {
        requireDescriptors(e);
        if (late != null
            && e instanceof OutgoingHandshake.RefusedException refused
            && refused.status() == Handshake.STARTED) {
          log.warn("rank {} comes when the job has begun; it joins it", own.rank());
          return late.get().join();
        }
        why = String.valueOf(e.getMessage());
        attempts += channel != null ? 0 : Math.min(System.nanoTime() - start, MAX_ATTEMPT_NANOS);
      }
      String from = chosen == null ? "" : " from " + chosen.getHostAddress();
      advice = "; see whether rank 0 runs there, and whether a firewall lets its port through";
      pause(pause, "rank 0 does not take this rank at " + own.master() + from + ": " + why);
      pause = Math.min(2 * pause, MAX_PAUSE_MILLIS);
      tryNextHost();
    }
  }

  private SocketChannel connect(InetSocketAddress to, InetAddress from, Handshake.Hello hello)
      throws IOException {
    try {
      long left = (limit - time.look() - attempts) / 1_000_000;
      int millis = (int) Math.max(1, Math.min(left, OutgoingHandshake.MILLIS));
      return new OutgoingHandshake(handshake, from, millis).connect(to, hello);
    } catch (UnavailableException e) {
      if (hosts.size() < 2) {
        throw e;
      }
      throw new IOException(e.getMessage(), e); // something else listens on this host
    }
  }

  private TcpJob register(SocketChannel channel, InetAddress chosen)
      throws IOException, InterruptedException {
    ServerSocketChannel server = null;
    TcpJob job = null;
    limit += REASON_NANOS; // rank 0 may have begun to wait later, and says who is missing
    try {
      InetAddress here = ((InetSocketAddress) channel.getLocalAddress()).getAddress();
      server = MasterPort.listen(here, 0, 0);
      OutgoingHandshake.write(channel, self(server).encode());
      ByteBuffer reply = ByteBuffer.wrap(read(channel, Registration.REPLY));
      int status = reply.getInt();
      int length = reply.getInt();
      int table = Handshake.JOB + own.size() * Member.BYTES;
      requireTaken(channel, status, length);
      if (status != Registration.STARTED || length != table) {
        throw new IOException("rank 0 has sent what no rank sends");
      }
      byte[] id = read(channel, Handshake.JOB);
      byte[] members = read(channel, own.size() * Member.BYTES);
      Member[] all = new Member[own.size()];
      for (int rank = 0; rank < all.length; rank++) {
        all[rank] = Member.decode(members, rank * Member.BYTES);
      }
      job = new TcpJob(own, handshake, null, lobby);
      SocketChannel[] channels = new SocketChannel[own.size()];
      channels[0] = channel;
      job.begin(all, id, channels, chosen);
      job.listen(server);
      return job;
    } catch (IOException | RuntimeException | Error | InterruptedException e) {
      Listener.close(channel);
      if (server != null) {
        server.close();
      }
      throw e;
    } finally {
      limit -= REASON_NANOS;
    }
  }

  /** Reads a part of the reply, which comes when all ranks have. */
  private byte[] read(SocketChannel channel, int bytes) throws IOException, InterruptedException {
    byte[] part = new byte[bytes];
    int have = 0;
    while (have < bytes) {
      try {
        channel.socket().setSoTimeout((int) POLL_MILLIS);
        int read = channel.socket().getInputStream().read(part, have, bytes - have);
        if (read < 0) {
          throw new EOFException("it has closed the connection");
        }
        have += read;
      } catch (SocketTimeoutException e) {
        if (Thread.interrupted()) {
          throw new InterruptedException();
        }
        look(
            own.joins()
                ? "the job lets this process wait, but not join: master=" + own.master()
                : "not all ranks have come to " + own.master());
      }
    }
    return part;
  }

  private void pause(long millis, String what) throws InterruptedException {
    for (long left = millis; left > 0; left -= POLL_MILLIS) {
      Thread.sleep(Math.min(left, POLL_MILLIS));
      look(what);
    }
  }

  /** Throws after the time-out. */
  private void look(String what) {
    long waited = time.look() + attempts;
    if (hasLost.getAsBoolean()) {
      throw new RankLostException("a rank was lost: " + what + ", rank=" + own.rank());
    }
    if (waited > limit) {
      throw new RankLostException(
          "timed out: %s, rank=%s, waited=%s%s"
              .formatted(what, own.rank(), Amounts.time(waited), advice));
    }
    if (waited > timeouts.lateNanos() && !warned) {
      warned = true;
      log.warn("rank {} has waited {}: {}", own.rank(), Amounts.time(waited), what);
    }
  }
}
