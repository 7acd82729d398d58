package org.gradientsync.tcp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.gradientsync.RankLostException;
import org.gradientsync.core.backend.RankPlace;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Ranks whose processes are stopped or killed in the start of a job. The others name them within
 * the time-out. A stopped process keeps its connections and sends nothing; the system closes those
 * of a killed one. So a connection of this test does what the process would do, and where ranks
 * look at the process itself, it is one of another program.
 */
@Timeout(120)
class LostStartIT {
  private final ExecutorService threads = Executors.newCachedThreadPool();
  private Process process; // of a rank that is lost, or null
  private int port;

  @BeforeEach
  void choosePort() throws IOException {
    port = Ranks.freePort();
  }

  @AfterEach
  void end() {
    threads.shutdownNow();
    if (process != null) {
      process.destroyForcibly();
    }
  }

  private Future<String> rank(int rank, int size) {
    return rank(rank, size, 6);
  }

  /** Starts a rank with a time-out, and returns why it fails. */
  private Future<String> rank(int rank, int size, int seconds) {
    return threads.submit(
        () ->
            assertThrows(
                    RankLostException.class,
                    () ->
                        ThreadRanks.builder(port, rank, size)
                            .timeout(Duration.ofSeconds(seconds))
                            .set("reports", "off")
                            .create()
                            .close())
                .getMessage());
  }

  private static String text(Future<String> failure) throws Exception {
    return failure.get(1, TimeUnit.MINUTES);
  }

  private String name() {
    return "process=" + process.pid();
  }

  private static void requireMatch(String text, String expression) {
    assertTrue(text.matches(expression), text);
  }

  private String notTaken(String why) {
    String text = "timed out: rank 0 does not take this rank at 127.0.0.1:";
    return text + port + ": " + why + ", rank=1, .*";
  }

  private RankPlace place() throws IOException {
    process = new ProcessBuilder("sleep", "600").start();
    return RankPlace.of(Interfaces.hostName(), process.pid());
  }

  private void signal(String name) throws Exception {
    String pid = Long.toString(process.pid());
    assertEquals(0, new ProcessBuilder("kill", "-" + name, pid).start().waitFor());
  }

  /** What a rank sends that registers. */
  private SocketChannel register(Future<String> first, int rank, int size) throws Exception {
    Handshake.Hello hello =
        new Handshake.Hello(
            true, false, rank, size, 0, new byte[Handshake.JOB], Handshake.random(Handshake.NONCE));
    while (true) {
      try {
        SocketChannel channel =
            new OutgoingHandshake(new Handshake(Ranks.SECRET), null, OutgoingHandshake.MILLIS)
                .connect(new InetSocketAddress("127.0.0.1", port), hello);
        InetSocketAddress address = new InetSocketAddress(InetAddress.getLoopbackAddress(), 1);
        OutgoingHandshake.write(
            channel, new Member(address, -1, JobStart.version, place()).encode());
        return channel;
      } catch (IOException e) {
        assertFalse(first.isDone(), "rank 0 has ended"); // it does not listen yet
        Thread.sleep(10);
      }
    }
  }

  @Test
  void aRankThatStopsAfterItHasRegistered() throws Exception {
    Future<String> first = rank(0, 2);
    try (SocketChannel channel = register(first, 1, 2)) {
      assertTrue(channel.isOpen());
      signal("STOP");
      requireMatch(
          text(first), "timed out: rank 1 \\(.*" + name() + "\\) did not join in time, .*");
    }
  }

  @Test
  void aRankThatIsKilledAfterAllHaveRegistered() throws Exception {
    Future<String> first = rank(0, 2);
    try (SocketChannel channel = register(first, 1, 2)) {
      channel.socket().getInputStream().read(); // of the reply
      signal("KILL");
    }
    requireMatch(text(first), "rank 1 \\(.*" + name() + "\\) has died, lastFinished=none, .*");
  }

  /** If the others come before rank 0 has seen that, the job begins with a dead rank. */
  @Test
  void aRankThatIsKilledBeforeTheOthersHaveCome() throws Exception {
    Future<String> first = rank(0, 3);
    register(first, 1, 3).close();
    signal("KILL");
    Future<String> other = rank(2, 3, 30); // rank 0 gives up first
    String named =
        ".*(not all ranks have come to 127.0.0.1:"
            + port
            + ": missing=rank 1, rank=0, |rank 1 \\(.*"
            + name()
            + "\\) has died).*";
    requireMatch(text(first), named);
    requireMatch(text(other), named);
  }

  /** The system accepts connections for a process that is stopped. */
  @Test
  void rankZeroThatStopsBeforeTheOthersCome() throws Exception {
    try (ServerSocket silent = new ServerSocket(port, 50, InetAddress.getLoopbackAddress())) {
      assertEquals(port, silent.getLocalPort());
      requireMatch(text(rank(1, 2)), notTaken("Read timed out"));
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void rankZeroThatIsLostWhenAnotherOneHasRegistered(boolean isKilled) throws Exception {
    BlockingQueue<SocketChannel> registered = new LinkedBlockingQueue<>();
    Listener listener = listener(registered);
    try {
      listener.start();
      Future<String> other = rank(1, 2);
      SocketChannel channel = registered.take();
      if (isKilled) {
        listener.close();
        channel.close();
      }
      requireMatch(
          text(other),
          isKilled
              ? notTaken("Connection refused")
              : "timed out: not all ranks have come to 127.0.0.1:" + port + ", rank=1, .*");
    } finally {
      listener.close();
    }
  }

  /** Rank 0, which hears others, and answers nothing. */
  private Listener listener(BlockingQueue<SocketChannel> registered) throws IOException {
    Listener.Doorkeeper keeper =
        new Listener.Doorkeeper() {
          @Override
          public int admit(Handshake.Hello hello) {
            return Handshake.OK;
          }

          @Override
          public void connected(Handshake.Hello hello, SocketChannel channel) {
            throw new IllegalStateException("ranks only register: " + hello);
          }

          @Override
          public void registered(
              Handshake.Hello hello, Member member, String settings, SocketChannel channel) {
            registered.add(channel);
          }

          @Override
          public void ended(SocketChannel channel) {
            Listener.close(channel);
          }

          @Override
          public boolean advance() {
            return false;
          }
        };
    ServerSocketChannel server = MasterPort.listen(InetAddress.getLoopbackAddress(), port, 0);
    return new Listener(server, new Handshake(Ranks.SECRET), keeper, "rank 0 of a test");
  }
}
