package org.gradientsync.tcp;

import java.io.IOException;
import java.net.InetAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.stream.IntStream;
import org.gradientsync.core.backend.RankPlace;
import org.gradientsync.core.backend.WaitClock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A job that has started, or that this rank's listener waits for: who takes part, and how the
 * others reach this rank. Any thread may call it.
 */
final class TcpJob implements Listener.Doorkeeper {
  private static final Logger log = LoggerFactory.getLogger(TcpJob.class);
  private static final long LINGER_NANOS = 3_000_000_000L;
  private static final int HEARTBEATS = 6; // in the longest silence

  private final Coordinates own;
  private final Endpoint endpoint;
  private final Handshake handshake;
  private final Registration registration; // of rank 0, otherwise null
  private final Lobby lobby;
  private Listener listener;
  private Member[] members;
  private int[] nodes;
  private boolean[] visible; // whose processes can be seen from here
  private volatile Connector connector; // null until the job has started
  private volatile boolean leaving;
  private volatile long leavingSince;
  private volatile boolean ended;
  private final Set<Integer> leftBehind = new HashSet<>(); // guarded by itself

  // Of the listener's thread.
  private int seen;
  private final WaitClock time = new WaitClock();
  private long beatNanos; // when it sent the last heartbeats

  TcpJob(Coordinates own, Handshake handshake, Registration registration, Lobby lobby) {
    this.own = own;
    this.handshake = handshake;
    this.registration = registration;
    this.lobby = lobby;
    endpoint = new Endpoint(own.rank(), own.size());
  }

  /** Begins to hear connections. */
  Listener listen(ServerSocketChannel server) throws IOException {
    listener = new Listener(server, handshake, this, "gradient-sync-tcp-" + own.rank());
    listener.start();
    return listener;
  }

  /**
   * The ranks have come.
   *
   * @param channels the connections that there are already
   * @param from the address to connect from, or null
   */
  void begin(Member[] all, byte[] job, SocketChannel[] channels, InetAddress from)
      throws IOException {
    members = all;
    nodes = nodes(all);
    checkLocalRank();
    visible = new boolean[all.length];
    for (int peer = 0; peer < all.length; peer++) {
      visible[peer] = nodes[peer] == nodes[own.rank()] && all[peer].place().isAlive();
    }
    Connector made =
        new Connector(own.rank(), all, job, handshake, from, endpoint, lobby.connectNanos());
    endpoint.setConnector(made::connect);
    for (int peer = 0; peer < all.length; peer++) {
      if (channels[peer] != null) {
        channels[peer].configureBlocking(false);
        endpoint.attach(peer, channels[peer]);
      }
    }
    connector = made;
  }

  /** By memory or host: the numbers that a launcher has given on each node say less. */
  private static int[] nodes(Member[] all) {
    int[] nodes = new int[all.length];
    Arrays.setAll(nodes, rank -> firstLike(all, rank));
    return nodes;
  }

  private void checkLocalRank() {
    int rank = own.rank();
    long localRank = IntStream.range(0, rank).filter(i -> nodes[i] == nodes[rank]).count();
    if (own.localRank() >= 0 && own.localRank() != localRank) {
      log.warn(
          "local rank differs: rank={}, localRank={}, LOCAL_RANK={}; taking localRank, which counts"
              + " the ranks of this node",
          rank,
          localRank,
          own.localRank());
    }
    long localSize = Arrays.stream(nodes).filter(node -> node == nodes[rank]).count();
    if (own.localSize() >= 0 && own.localSize() != localSize) {
      log.warn(
          "number of local ranks differs: rank={}, localSize={}, LOCAL_WORLD_SIZE={}; taking"
              + " localSize, which counts the ranks of this node",
          rank,
          localSize,
          own.localSize());
    }
  }

  private static int firstLike(Member[] all, int rank) {
    RankPlace place = all[rank].place();
    return IntStream.range(0, rank)
        .filter(other -> all[other].place().memory() == place.memory())
        .filter(other -> place.memory() != 0 || all[other].place().host().equals(place.host()))
        .findFirst()
        .orElse(rank);
  }

  Coordinates own() {
    return own;
  }

  Endpoint endpoint() {
    return endpoint;
  }

  Lobby lobby() {
    return lobby;
  }

  /**
   * Lets processes wait that want to join, if this rank is the first of those that are left.
   *
   * @param lost more that the job goes on without
   */
  void goOnWithout(List<Integer> lost) {
    int first = 0;
    synchronized (leftBehind) {
      leftBehind.addAll(lost);
      while (leftBehind.contains(first)) {
        first++;
      }
    }
    if (first != own.rank()) {
      lobby.leaveToAnother();
    } else if (listener != null && first == 0 && lobby.isAt(own)) {
      lobby.open(); // by this job's listener
    } else {
      lobby.listen(members[own.rank()].address().getAddress());
    }
  }

  /** The process of a rank of this node, if it runs and this rank is another one; or -1. */
  long processOf(int rank) {
    RankPlace place = placeOf(rank);
    boolean isOther = place.process() != placeOf(own.rank()).process();
    return visible[rank] && isOther && place.isAlive() ? place.process() : -1;
  }

  /** Where others reach this rank. */
  InetAddress address() throws IOException {
    InetAddress address = members[own.rank()].address().getAddress();
    return address.isAnyLocalAddress() ? Interfaces.master(own) : address;
  }

  int nodeOf(int rank) {
    return nodes[rank];
  }

  RankPlace placeOf(int rank) {
    return members[rank].place();
  }

  boolean isVisible(int rank) {
    return visible[rank];
  }

  /** Whether this rank has left, so that its process may join another job. */
  boolean hasLeft() {
    return leaving;
  }

  boolean isAlive(int rank) {
    if (rank == own.rank()) {
      return true;
    }
    Peer peer = endpoint.peer(rank);
    if (peer.isLost()) {
      return false;
    }
    // A connection says more than the list of processes: how it has ended.
    boolean unknown = !peer.hasLeft() && !endpoint.isConnected(rank);
    return !unknown || ended || !visible[rank] || placeOf(rank).isAlive();
  }

  /** Whether a rank is alive, or cannot be reached, which says nothing about it. */
  boolean mayLive(int rank) {
    return isAlive(rank) || endpoint.peer(rank).mayLive();
  }

  /** What has become of a rank that is not alive. */
  String fate(int rank) {
    String why = endpoint.peer(rank).whyLost();
    if (why == null || !mayLive(rank)) {
      return "has died";
    }
    return why.startsWith(Connector.UNREACHED)
        ? why.substring("it ".length())
        : "cannot be reached: " + why;
  }

  /** Whether a rank has died or left, those left out that the job goes on without. */
  boolean hasLost() {
    synchronized (leftBehind) {
      return IntStream.range(0, own.size())
          .filter(peer -> peer != own.rank() && !leftBehind.contains(peer))
          .anyMatch(peer -> !isAlive(peer) || endpoint.peer(peer).hasLeft());
    }
  }

  /** From now on ranks without a connection may end at any time. */
  void expectEnds() {
    ended = true;
  }

  @Override
  public int admit(Handshake.Hello hello) {
    Connector now = connector;
    if (hello.joins()) {
      return registration != null && lobby.isOpen() ? Handshake.OK : Handshake.STARTED;
    }
    if (hello.register()) {
      return registration == null
          ? Handshake.OTHER_JOB
          : registration.takes() ? Handshake.OK : Handshake.STARTED;
    }
    return now == null ? Handshake.OTHER_JOB : now.admit(hello);
  }

  @Override
  public void connected(Handshake.Hello hello, SocketChannel channel) {
    Objects.requireNonNull(connector).accepted(hello.rank(), channel);
  }

  @Override
  public void unconfirmed(Handshake.Hello hello) {
    Objects.requireNonNull(connector).endAccepting(hello.rank());
  }

  @Override
  public void registered(
      Handshake.Hello hello, Member member, String settings, SocketChannel channel) {
    if (hello.joins()) {
      lobby.add(member, settings, channel);
    } else {
      registration.add(hello, member, channel);
    }
  }

  @Override
  public void ended(SocketChannel channel) {
    registration.remove(channel);
    lobby.remove(channel);
  }

  @Override
  public boolean advance() {
    endpoint.help(seen);
    seen = endpoint.progressed();
    long silence = own.silenceNanos();
    if (silence > 0 && connector != null && time.look() - beatNanos > silence / HEARTBEATS) {
      beatNanos = time.waited();
      endpoint.beat(beatNanos, silence, peer -> nodes[peer] != nodes[own.rank()]);
    }
    if (leaving && (endpoint.areAllGone() || System.nanoTime() - leavingSince > LINGER_NANOS)) {
      close();
    }
    return leaving || endpoint.isBusy();
  }

  /** Leaves. What was sent still arrives; does not wait for that. */
  synchronized void leave() {
    if (leaving) {
      return;
    }
    leavingSince = System.nanoTime();
    leaving = true;
    try {
      if (listener != null) {
        listener.refuseAll();
      }
    } catch (IOException e) {
      // it ends with the thread
    }
    endpoint.close();
    if (listener == null) {
      close();
    }
  }

  /** Closes all. */
  void close() {
    leaving = true;
    if (connector != null) {
      connector.close();
    }
    endpoint.closeLinks();
    if (listener != null) {
      listener.close();
    }
  }

  /** Waits until all that was sent has gone, for a limited time. */
  void awaitOutput(long nanos) {
    long start = System.nanoTime();
    while (endpoint.hasOutput() && System.nanoTime() - start < nanos) {
      endpoint.progress(null);
      Thread.onSpinWait();
    }
  }

  /** Waits until all others have left, too, for a limited time. */
  void awaitGoodbyes(long nanos) {
    long start = System.nanoTime();
    while (!endpoint.areAllGone() && System.nanoTime() - start < nanos) {
      endpoint.progress(null);
      Thread.yield();
    }
  }
}
