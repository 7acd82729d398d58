package org.gradientsync.tcp;

import java.io.IOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.gradientsync.core.backend.AgreedSettings;
import org.gradientsync.spi.Timeouts;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Where processes wait that want to join a job that has started: at the address at which rank 0
 * listened at the start. The rank that comes first among those that are left keeps it, or on
 * another machine listens at the same port there. Shared by the jobs that follow each other in one
 * process. Any thread may call it.
 */
final class Lobby implements Listener.Doorkeeper {
  private static final Logger log = LoggerFactory.getLogger(Lobby.class);
  private static final int LIMIT = 64;
  private static final long LISTEN_NANOS = 2_000_000_000L; // how long to try
  private static final long MOST_CONNECT_NANOS = 60_000_000_000L;

  private final String host;
  private final int port;
  private final int most; // ranks
  private final boolean ofNewcomer;
  private final Handshake handshake;
  private final long connectNanos;
  private final List<Newcomer> waiting = new ArrayList<>();
  private final List<SocketChannel> invited = new ArrayList<>(); // each open until it has come
  private Listener own; // null while a job's listener hears the newcomers, or nobody does
  private boolean open;
  private boolean listens; // or has tried to

  /**
   * @param settings what it gives, as {@code AgreedSettings} writes it
   */
  private record Newcomer(Member member, String settings, SocketChannel channel) {
    void refuse(String why) {
      log.info("{} cannot join the job: {}", member.place(), why);
      byte[] text = ("cannot join the job: " + why).getBytes(StandardCharsets.UTF_8);
      Registration.reply(channel, Registration.REFUSED, text);
      Listener.close(channel);
    }
  }

  /**
   * @param first of the job at its start
   * @param ofCalls the user's
   */
  Lobby(Coordinates first, Timeouts ofCalls) {
    host = first.host();
    port = first.port();
    most = first.size();
    ofNewcomer = first.joins();
    handshake = new Handshake(first.secret());
    connectNanos = Math.min(ofCalls.timeoutNanos() / 5 * 4, MOST_CONNECT_NANOS);
  }

  /** Whether this rank has come when the job had started. */
  boolean isOfNewcomer() {
    return ofNewcomer;
  }

  Handshake handshake() {
    return handshake;
  }

  /**
   * How long a rank of any of the jobs tries to connect to another one: less than a call waits,
   * which so learns why that rank does not come.
   */
  long connectNanos() {
    return connectNanos;
  }

  /** Whether a job's rank 0 listens at the lobby's address. */
  boolean isAt(Coordinates job) {
    return port == job.port();
  }

  /** Lets processes wait, which come by the listener of the job at its start. */
  synchronized void open() {
    open = true;
  }

  /**
   * Lets processes wait, and listens for them.
   *
   * @param here this machine's address, for the case that the master is another machine
   */
  void listen(InetAddress here) {
    synchronized (this) {
      if (listens) {
        return;
      }
      listens = true;
      open = true;
    }
    try {
      listenAt(here);
    } catch (IOException e) { // a rank that hangs has the port until somebody ends it
      log.warn(
          "nobody can join the job yet: cannot listen at {}:{}: {}", host, port, e.getMessage());
      Thread thread = new Thread(() -> listenLater(here), "gradient-sync-tcp-lobby-later");
      thread.setDaemon(true);
      thread.start();
    }
  }

  private void listenLater(InetAddress here) {
    while (isOpen()) {
      try {
        listenAt(here);
        log.warn("processes can join the job from now on: port={}", port);
        return;
      } catch (IOException e) {
        log.debug("cannot listen yet: port={}", port, e);
      }
    }
  }

  private void listenAt(InetAddress here) throws IOException {
    InetAddress address = addressOfMaster();
    if (address == null) {
      log.warn("processes join the job at {}, port {}, from now on", here.getHostAddress(), port);
      address = here;
    }
    ServerSocketChannel server = MasterPort.listen(address, port, LISTEN_NANOS);
    try {
      Listener listener = new Listener(server, handshake, this, "gradient-sync-tcp-lobby");
      synchronized (this) {
        if (!listens || own != null) { // it was closed meanwhile
          server.close();
          return;
        }
        own = listener;
      }
      listener.start();
    } catch (IOException e) {
      server.close();
      throw e;
    }
  }

  /** Returns null if it is another machine, or its name is known no more. */
  private InetAddress addressOfMaster() throws IOException {
    try {
      InetAddress address = InetAddress.getByName(host);
      return Interfaces.isHere(address) ? address : null;
    } catch (UnknownHostException e) {
      return null;
    }
  }

  /** Another rank listens now, or is about to. */
  synchronized void leaveToAnother() {
    if (listens) {
      close();
    }
  }

  /** Lets nobody wait any more. */
  synchronized void close() {
    open = false;
    listens = false;
    waiting.forEach(one -> Listener.close(one.channel()));
    waiting.clear();
    forgetInvited();
    if (own != null) {
      own.close();
      own = null;
    }
  }

  synchronized boolean isOpen() {
    return open;
  }

  /** Adds a process. */
  synchronized void add(Member member, String settings, SocketChannel channel) {
    Newcomer newcomer = new Newcomer(member, settings, channel);
    if (!member.version().equals(JobStart.version)) {
      newcomer.refuse(
          ("the job has version %s of gradient-sync-tcp, this process %s;"
                  + " use one version on all ranks")
              .formatted(JobStart.version, member.version()));
    } else if (open && waiting.size() < LIMIT) {
      waiting.add(newcomer);
    } else {
      Listener.close(channel);
    }
  }

  synchronized void remove(SocketChannel channel) {
    if (waiting.removeIf(one -> one.channel() == channel)) {
      Listener.close(channel);
    }
  }

  /**
   * Refuses those that would make the job fail.
   *
   * @param ranks the job's
   * @param settings the job's
   * @return how many wait with the same ones and have a place; the others wait on
   */
  synchronized int count(int ranks, String settings) {
    for (int i = waiting.size() - 1; i >= 0; i--) {
      String difference = AgreedSettings.difference(settings, waiting.get(i).settings());
      if (!difference.isEmpty()) {
        waiting.remove(i).refuse(difference);
      }
    }
    return Math.max(0, Math.min(waiting.size(), most - ranks));
  }

  /**
   * Sends those that wait with the job's settings and have a place to a new job.
   *
   * @param first the number of the first of them
   * @param newPort where its rank 0 listens, on the machine of this lobby
   * @return how many
   */
  synchronized int invite(int first, int newPort, String settings) {
    forgetInvited();
    int count = count(first, settings);
    for (int i = 0; i < count; i++) {
      ByteBuffer invitation = ByteBuffer.allocate(Invitation.BYTES);
      invitation.putInt(first + i).putInt(first + count).putInt(newPort).flip();
      invited.add(waiting.get(i).channel());
      Registration.reply(invited.get(i), Registration.INVITED, invitation.array());
    }
    waiting.subList(0, count).clear();
    return count;
  }

  /** Lets those that were invited, and have not come, register again. */
  synchronized void forgetInvited() {
    invited.forEach(Listener::close);
    invited.clear();
  }

  /** Whether one that was invited has ended or given up. Not to be asked when all have come. */
  synchronized boolean hasInvitedEnded() {
    return invited.stream().anyMatch(Lobby::hasEnded);
  }

  /**
   * Whether the other side of a connection has ended.
   *
   * @param channel not blocking; nothing comes by it
   */
  static boolean hasEnded(SocketChannel channel) {
    try {
      return channel.read(ByteBuffer.allocate(1)) < 0;
    } catch (IOException e) {
      return true;
    }
  }

  @Override
  public int admit(Handshake.Hello hello) {
    return hello.joins() ? Handshake.OK : Handshake.STARTED;
  }

  @Override
  public void connected(Handshake.Hello hello, SocketChannel channel) {
    Listener.close(channel); // nobody is admitted so
  }

  @Override
  public void registered(
      Handshake.Hello hello, Member member, String settings, SocketChannel channel) {
    add(member, settings, channel);
  }

  @Override
  public void ended(SocketChannel channel) {
    Listener.close(channel);
    remove(channel);
  }

  @Override
  public boolean advance() {
    return false;
  }
}
