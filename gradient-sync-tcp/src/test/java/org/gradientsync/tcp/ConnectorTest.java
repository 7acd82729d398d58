package org.gradientsync.tcp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.gradientsync.RankLostException;
import org.gradientsync.core.backend.RankPlace;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Settings;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** What a rank learns of another one that it cannot connect to. */
class ConnectorTest {
  private static final long LIMIT_NANOS = 1_500_000_000L;

  private static final byte[] JOB = new byte[Handshake.JOB];
  private static final Handshake HANDSHAKE = new Handshake("");

  /** Rank 0, and others that listen at the ports. */
  private static Member[] members(int... ports) {
    return IntStream.concat(IntStream.of(1), IntStream.of(ports))
        .mapToObj(at -> new InetSocketAddress(InetAddress.getLoopbackAddress(), at))
        .map(address -> new Member(address, -1, "", RankPlace.own("x")))
        .toArray(Member[]::new);
  }

  /** Of rank 0. */
  private static Connector connector(Endpoint endpoint, long limitNanos, int... ports) {
    return new Connector(0, members(ports), JOB, HANDSHAKE, null, endpoint, limitNanos);
  }

  private static String whyLost(int port) {
    Endpoint endpoint = new Endpoint(0, 2);
    try (Connector connector = connector(endpoint, LIMIT_NANOS, port)) {
      endpoint.setConnector(connector::connect);
      Message message = endpoint.receiver(ByteBuffer.allocateDirect(4), 1, 7);
      message.start();
      return assertThrows(
              RankLostException.class,
              () -> {
                while (!message.test()) {
                  Thread.sleep(1);
                }
              })
          .getMessage();
    }
  }

  /** Listens as behind a firewall that drops what comes. */
  private static final class Silent implements AutoCloseable {
    private final ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
    private final List<SocketChannel> waiting = new ArrayList<>();

    Silent() throws IOException {
      for (int i = 0; i < 8; i++) { // until the system takes no more
        SocketChannel channel = SocketChannel.open();
        channel.configureBlocking(false);
        channel.connect(server.getLocalSocketAddress());
        waiting.add(channel);
      }
    }

    int port() {
      return server.getLocalPort();
    }

    @Override
    public void close() throws IOException {
      server.close();
      for (SocketChannel channel : waiting) {
        channel.close();
      }
    }
  }

  @Test
  @Execution(ExecutionMode.CONCURRENT)
  void aRankThatDoesNotAnswer() throws Exception {
    try (Silent silent = new Silent()) {
      String text = whyLost(silent.port());
      String expected = "it cannot be reached at localhost/127.0.0.1:" + silent.port() + ": ";
      assertTrue(text.contains(expected), text);
      assertTrue(text.endsWith("timed out"), text);
    }
  }

  /** Whatever the number of threads. */
  @Test
  @Execution(ExecutionMode.CONCURRENT)
  void manyRanksThatDoNotAnswerHoldUpNoOther() throws Exception {
    try (Silent silent = new Silent();
        ServerSocket living = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      int[] ports = new int[21];
      Arrays.fill(ports, silent.port());
      ports[20] = living.getLocalPort();
      Endpoint endpoint = new Endpoint(0, ports.length + 1);
      try (Connector connector = connector(endpoint, 60_000_000_000L, ports)) {
        for (int rank = 1; rank <= ports.length; rank++) {
          connector.connect(rank);
        }
        living.setSoTimeout(30_000);
        living.accept().close();
      }
    }
  }

  @Test
  @Execution(ExecutionMode.CONCURRENT)
  void aRankThatListensNoMore() throws Exception {
    int port = Ranks.freePort();
    String text = whyLost(port);
    assertEquals(
        "it cannot be reached at localhost/127.0.0.1:" + port + ": Connection refused", text);
  }

  private static Handshake.Hello helloOfRankOne() {
    return new Handshake.Hello(false, false, 1, 2, 0, JOB, Handshake.random(Handshake.NONCE));
  }

  /** Waits until a thread waits for an object's lock. */
  private static void awaitBlocked(Object lock) throws InterruptedException {
    int hash = System.identityHashCode(lock);
    while (Stream.of(ManagementFactory.getThreadMXBean().dumpAllThreads(false, false))
        .filter(thread -> thread.getThreadState() == Thread.State.BLOCKED)
        .noneMatch(thread -> thread.getLockInfo().getIdentityHashCode() == hash)) {
      Thread.sleep(1);
    }
  }

  /** Two connections would end each other. */
  @Test
  void aRankThatConnectsJustBeforeTheAttemptBegins() throws Exception {
    Endpoint endpoint = new Endpoint(0, 2);
    try (ServerSocket one = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        Connector connector = connector(endpoint, LIMIT_NANOS, one.getLocalPort())) {
      synchronized (connector) {
        connector.connect(1);
        awaitBlocked(connector); // it has found no connection
        assertEquals(Handshake.OK, connector.admit(helloOfRankOne()));
        connector.accepted(1, new ScriptedChannel(new Random(1)));
      }
      one.setSoTimeout(300);
      assertThrows(SocketTimeoutException.class, () -> one.accept().close());
    }
  }

  @Test
  void aRankThatConnectsWhenTheAttemptJustSucceeds() throws Exception {
    Endpoint endpoint = new Endpoint(0, 2);
    try (Connector connector = connector(endpoint, LIMIT_NANOS, 1)) {
      CompletableFuture<Integer> answer;
      synchronized (connector) {
        answer = CompletableFuture.supplyAsync(() -> connector.admit(helloOfRankOne()));
        awaitBlocked(connector);
        assertTrue(endpoint.attach(1, new ScriptedChannel(new Random(1))));
      }
      assertEquals(Handshake.CROSSED, answer.get(1, TimeUnit.MINUTES));
    }
  }

  /** Says what rank 1 says until it waits for the answer. */
  private static SocketChannel proveAsRankOne(InetSocketAddress address) throws IOException {
    SocketChannel channel = SocketChannel.open(address);
    byte[] first = helloOfRankOne().encode(Handshake.PROTOCOL);
    OutgoingHandshake.write(channel, first);
    byte[] challenge = read(channel, Handshake.CHALLENGE);
    byte[] nonce =
        Arrays.copyOfRange(challenge, Handshake.CHALLENGE - Handshake.NONCE, Handshake.CHALLENGE);
    OutgoingHandshake.write(channel, HANDSHAKE.connectorProof(first, nonce));
    return channel;
  }

  private static byte[] read(SocketChannel channel, int bytes) throws IOException {
    return OutgoingHandshake.read(channel, bytes, System.nanoTime() + 60_000_000_000L);
  }

  private static TcpJob rankZero(int port, ServerSocketChannel server) throws IOException {
    Coordinates own = new Coordinates(0, 2, "127.0.0.1", 1, -1, -1, "", "", false, false, 0);
    Lobby lobby = new Lobby(own, new Settings(Map.of()).timeouts());
    TcpJob job = new TcpJob(own, HANDSHAKE, null, lobby);
    job.begin(members(port), JOB, new SocketChannel[2], null);
    job.listen(server);
    return job;
  }

  /** Rank 0 may have been suspended for so long. */
  @Test
  void aRankThatNoLongerWaitsForTheAnswer() throws Exception {
    ServerSocketChannel server = MasterPort.listen(InetAddress.getLoopbackAddress(), 0, 0);
    InetSocketAddress zero = (InetSocketAddress) server.getLocalAddress();
    TcpJob job = rankZero(1, server);
    proveAsRankOne(zero).close();
    OutgoingHandshake next = new OutgoingHandshake(HANDSHAKE, null, OutgoingHandshake.MILLIS);
    try (SocketChannel channel = next.connect(zero, helloOfRankOne())) {
      while (!job.endpoint().isConnected(1)) {
        Thread.sleep(1);
      }
      assertTrue(channel.isConnected() && !job.endpoint().peer(1).isLost());
    } finally {
      job.close();
    }
  }

  @Test
  void aRankThatIsAdmittedAndDoesNotConfirm() throws Exception {
    ServerSocketChannel server = MasterPort.listen(InetAddress.getLoopbackAddress(), 0, 0);
    InetSocketAddress zero = (InetSocketAddress) server.getLocalAddress();
    try (ServerSocket one = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      TcpJob job = rankZero(one.getLocalPort(), server);
      try {
        try (SocketChannel admitted = proveAsRankOne(zero)) {
          assertEquals(0, ByteBuffer.wrap(read(admitted, Handshake.ANSWER)).getInt());
          job.endpoint().sender(ByteBuffer.allocateDirect(4), 1, 7).start();
          one.setSoTimeout(300);
          assertThrows(SocketTimeoutException.class, () -> one.accept().close());
        }
        one.setSoTimeout(30_000);
        one.accept().close(); // rank 0 connects itself now
      } finally {
        job.close();
      }
    }
  }

  @Test
  @Execution(ExecutionMode.CONCURRENT)
  void aRankThatIsAdmittedAndNeverConfirmsIsDropped() throws Exception {
    ServerSocketChannel server = MasterPort.listen(InetAddress.getLoopbackAddress(), 0, 0);
    InetSocketAddress zero = (InetSocketAddress) server.getLocalAddress();
    try (ServerSocket one = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      TcpJob job = rankZero(one.getLocalPort(), server);
      try (SocketChannel admitted = proveAsRankOne(zero)) {
        assertEquals(0, ByteBuffer.wrap(read(admitted, Handshake.ANSWER)).getInt());
        admitted.socket().setSoTimeout(30_000);
        assertEquals(-1, admitted.socket().getInputStream().read());
        job.endpoint().sender(ByteBuffer.allocateDirect(4), 1, 7).start();
        one.setSoTimeout(30_000);
        one.accept().close(); // rank 0 connects itself
      } finally {
        job.close();
      }
    }
  }
}
