package org.gradientsync.tcp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.gradientsync.RankLostException;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.backend.AgreedSettings;
import org.gradientsync.core.backend.RankPlace;
import org.gradientsync.core.backend.ShortText;
import org.gradientsync.spi.Resources;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.Transport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What ranks find out while they wait for those that join: that one of them will not come. */
class JoinTest {
  private static final int SIZE = 3;

  private final ExecutorService threads = Executors.newCachedThreadPool();
  private final List<Transport> ranks = new ArrayList<>();
  private int port;

  private Settings settings(int rank) {
    return new Settings(
        Map.of(
            "elastic",
            "true",
            "tcp.rank",
            Integer.toString(rank),
            "tcp.size",
            Integer.toString(SIZE),
            "tcp.master",
            "127.0.0.1:" + port));
  }

  /** A job whose last rank leaves, and in whose place a process waits. */
  @BeforeEach
  void start() throws Exception {
    port = Ranks.freePort();
    List<Future<Transport>> all = new ArrayList<>();
    for (int i = 0; i < SIZE; i++) {
      int rank = i;
      all.add(threads.submit(() -> new TcpLauncher().connect(settings(rank))));
    }
    for (Future<Transport> rank : all) {
      ranks.add(rank.get(1, TimeUnit.MINUTES));
    }
    ranks.get(2).close();
    ranks.get(0).goOnWithout(List.of(2));
    ranks.get(1).goOnWithout(List.of(2));
  }

  @AfterEach
  void end() {
    ranks.forEach(Transport::close);
    threads.shutdownNow();
  }

  private byte[] invite() throws InterruptedException {
    String own = AgreedSettings.of(settings(0));
    while (ranks.get(0).newcomers(2, own) == 0) {
      Thread.sleep(5);
    }
    return ranks.get(0).invite(2, own);
  }

  private String failure(int rank, byte[] invitation) {
    return assertThrows(RankLostException.class, () -> ranks.get(rank).join(invitation, rank))
        .getMessage();
  }

  /** A process that waits, and comes no further. */
  private SocketChannel newcomer() throws Exception {
    Handshake.Hello hello =
        new Handshake.Hello(
            true, true, 2, SIZE, 0, new byte[Handshake.JOB], Handshake.random(Handshake.NONCE));
    SocketChannel channel =
        new OutgoingHandshake(new Handshake(""), null, OutgoingHandshake.MILLIS)
            .connect(new InetSocketAddress("127.0.0.1", port), hello);
    InetSocketAddress address = new InetSocketAddress(InetAddress.getLoopbackAddress(), 1);
    ByteBuffer self = ByteBuffer.allocate(Member.BYTES + Handshake.SETTINGS);
    self.put(new Member(address, -1, JobStart.version, RankPlace.own("x")).encode());
    ShortText.put(self, Member.BYTES, Handshake.SETTINGS, AgreedSettings.of(settings(2)));
    OutgoingHandshake.write(channel, self.array());
    return channel;
  }

  @Test
  void aProcessThatEndsAfterItsInvitation() throws Exception {
    SocketChannel newcomer = newcomer();
    byte[] invitation = invite();
    Future<String> other = threads.submit(() -> failure(1, invitation));
    newcomer.close();
    assertEquals(
        "a rank was lost: not all ranks have come to 127.0.0.1:"
            + Invitation.decode(invitation).port()
            + ": missing=rank 2, rank=0",
        failure(0, invitation).replace("rank 1, ", ""));
    String text = other.get(1, TimeUnit.MINUTES);
    assertTrue(text.contains("rank 0 has given up"), text);
  }

  @Test
  void aRankThatIsLostMeanwhile() throws Exception {
    try (SocketChannel newcomer = newcomer()) {
      byte[] invitation = invite();
      Future<String> first = threads.submit(() -> failure(0, invitation));
      ranks.get(1).close();
      String text = first.get(1, TimeUnit.MINUTES);
      assertTrue(text.startsWith("a rank was lost: "), text);
      requireWithdrawn(newcomer);
    }
  }

  /** Before all ranks know of the invitation. */
  @Test
  void aRankThatIsLostBefore() throws Exception {
    try (SocketChannel newcomer = newcomer()) {
      invite();
      ranks.get(0).goOnWithout(List.of(1, 2));
      requireWithdrawn(newcomer);
    }
  }

  /** The process reads its invitation, and then the end of the connection. */
  private static void requireWithdrawn(SocketChannel newcomer) throws IOException {
    newcomer.socket().setSoTimeout(60_000);
    byte[] all = newcomer.socket().getInputStream().readAllBytes();
    assertEquals(Registration.REPLY + Invitation.BYTES, all.length);
  }

  @Test
  void rankZeroThatIsLostMeanwhile() throws Exception {
    CompletableFuture<Transport> joining =
        CompletableFuture.supplyAsync(() -> join(settings(2)), threads);
    byte[] invitation = invite();
    ranks.get(0).close();
    String text = failure(1, invitation);
    assertTrue(text.startsWith("a rank was lost: "), text);
    ranks.get(1).goOnWithout(List.of(0, 2));
    String own = AgreedSettings.of(settings(1));
    while (ranks.get(1).newcomers(1, own) == 0) { // it waits at the next one
      Thread.sleep(5);
    }
    byte[] again = ranks.get(1).invite(1, own);
    ranks.add(ranks.get(1).join(again, 0));
    ranks.add(joining.get(1, TimeUnit.MINUTES));
    assertEquals(2, ranks.get(4).size());
  }

  /** The first machine is lost, so the first rank of those that are left listens on its own. */
  /** A rank that hangs may have the port, until somebody ends it. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aProcessFindsTheRanksOnAnotherHost(boolean isTaken) throws Exception {
    InetAddress here = InetAddress.getLoopbackAddress();
    int free = Ranks.freePort();
    Map<String, String> given =
        Map.of(
            "RANK", "1",
            "WORLD_SIZE", "2",
            "MASTER_ADDR", "192.0.2.1", // of no machine
            "MASTER_PORT", Integer.toString(free),
            "GRADIENTSYNC_SECRET", Ranks.SECRET,
            "GRADIENTSYNC_JOIN", "true");
    Settings settings = new Settings(Map.of("elastic", "true"));
    Coordinates own = Coordinates.of(settings, given);
    Lobby lobby = new Lobby(own, settings.timeouts());
    ServerSocket taken = isTaken ? new ServerSocket(free, 1, here) : null;
    lobby.listen(here);
    Resources.closeAll(taken);
    try {
      JobStart joining = JobStart.first(own, settings, List.of("192.0.2.1", "127.0.0.1"));
      threads.submit(joining::join);
      long start = System.nanoTime();
      while (lobby.count(1, AgreedSettings.of(settings)) == 0) {
        assertTrue(System.nanoTime() - start < TimeUnit.MINUTES.toNanos(1));
        Thread.sleep(5);
      }
    } finally {
      lobby.close();
    }
  }

  private static Transport join(Settings settings) {
    return new TcpLauncher().connect(settings);
  }

  @Test
  void thePreparedPortIsClosedIfTheJobCannotStart() throws Exception {
    Coordinates open = new Coordinates(0, 2, "192.0.2.1", 1, -1, -1, "", "", false, false, 0);
    ServerSocketChannel prepared = MasterPort.listen(InetAddress.getLoopbackAddress(), 0, 0);
    Lobby lobby = new Lobby(open, settings(0).timeouts());
    JobStart next = JobStart.next(open, lobby, prepared, () -> false);
    String text = assertThrows(UnavailableException.class, next::join).getMessage();
    assertTrue(text.startsWith("no secret"), text);
    assertFalse(prepared.isOpen());
  }
}
