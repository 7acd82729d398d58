package org.gradientsync.tcp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.gradientsync.GradientSync;
import org.gradientsync.GradientSyncException;
import org.gradientsync.RankLostException;
import org.gradientsync.UnavailableException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** Tests jobs whose ranks are threads of this JVM: how they start, end, and keep others out. */
class TcpJobTest {
  private static float average(GradientSync.Builder builder, float value) {
    try (GradientSync sync = builder.create()) {
      float[] values = new float[100_000];
      Arrays.fill(values, value);
      sync.average(values);
      return values[values.length - 1];
    }
  }

  @Test
  void ranksOfOneProcessAverageAndJoinAnotherJobAfterwards() throws Exception {
    int port = Ranks.freePort();
    for (int job = 0; job < 3; job++) {
      List<Float> all =
          ThreadRanks.run(
              port, 3, (rank, builder) -> average(builder.reducer("tcp"), (float) rank));
      assertEquals(List.of(1f, 1f, 1f), all);
    }
  }

  @Test
  void aJobThatHasFailedDoesNotKeepItsProcessFromTheNext() throws Exception {
    int port = Ranks.freePort();
    List<String> lost =
        ThreadRanks.run(
            port,
            3,
            (rank, builder) -> {
              try (GradientSync sync = builder.reducer("tcp").create()) {
                sync.barrier();
                if (rank == 1) {
                  return "left";
                }
                sync.barrier();
                return "no exception";
              } catch (GradientSyncException e) {
                return e.getMessage();
              }
            });
    assertTrue(lost.get(0).contains("has left"), lost::toString);
    assertTrue(lost.get(2).contains("has left"), lost::toString);
    assertEquals(
        List.of(0.5f, 0.5f),
        ThreadRanks.run(port, 2, (rank, builder) -> average(builder, (float) rank)));
  }

  private static List<String> failures(int port, int size, ThreadRanks.Task<Void> task)
      throws Exception {
    return ThreadRanks.run(
        port,
        size,
        (rank, builder) -> {
          try {
            task.run(rank, builder.timeout(Duration.ofSeconds(4)));
            return "";
          } catch (GradientSyncException e) {
            return e.getClass().getSimpleName() + ": " + e.getMessage();
          }
        });
  }

  private static void requireAll(List<String> texts, String part) {
    texts.forEach(text -> assertTrue(text.contains(part) && !text.contains("\n"), texts::toString));
  }

  @Test
  void twoRanksWithOneNumberAreNamed() throws Exception {
    int port = Ranks.freePort();
    List<String> texts =
        failures(
            port,
            3,
            (rank, builder) -> {
              if (rank == 2) { // the same coordinates would be the same rank of this process
                builder.set("tcp.rank", "1").set("tcp.master", "localhost:" + port);
              }
              builder.create().close();
              return null;
            });
    assertTrue(
        texts.get(0).contains("two ranks have the same number: rank 1 is "), texts::toString);
    assertTrue(texts.stream().filter(t -> t.contains("same number")).count() >= 2, texts::toString);
  }

  @Test
  void syncsOfARankHaveTheSameSettings() throws Exception {
    ThreadRanks.run(
        Ranks.freePort(),
        2,
        (rank, builder) -> {
          try (GradientSync sync = builder.create();
              GradientSync same = builder.timeout(Duration.ofSeconds(50)).create()) {
            String elastic =
                assertThrows(UnavailableException.class, builder.elastic(true)::create)
                    .getMessage();
            assertTrue(elastic.startsWith("a sync of this rank has joined the job"), elastic);
            assertTrue(elastic.contains("differs=elastic, or elastic.silence;"), elastic);
            assertEquals(0.5, sync.mean(rank));
            assertEquals(0.5, same.mean(rank));
          }
          return null;
        });
  }

  @Test
  void ranksThatExpectOtherNumbersAreNamed() throws Exception {
    requireAll(
        failures(
            Ranks.freePort(),
            2,
            (rank, builder) -> {
              builder.set("tcp.size", rank == 0 ? "2" : "3").create().close();
              return null;
            }),
        "the ranks expect different numbers of ranks: rank 0 expects 2, rank 1 (");
  }

  @Test
  @Execution(ExecutionMode.CONCURRENT)
  void anotherSecretIsNamedOnAllRanks() throws Exception {
    List<String> texts =
        failures(
            Ranks.freePort(),
            2,
            (rank, builder) -> {
              builder.set("tcp.secret", "of rank " + rank).create().close();
              return null;
            });
    assertTrue(texts.get(1).contains("rank 0 has another secret"), texts::toString);
    assertTrue(texts.get(0).contains("missing=rank 1; 1 connections had another"), texts::toString);
  }

  @Test
  @Execution(ExecutionMode.CONCURRENT)
  void aMasterThatNeverComesIsNamed() throws Exception {
    int port = Ranks.freePort();
    List<String> texts =
        failures(
            port,
            1,
            (rank, builder) -> {
              builder.set("tcp.rank", "1").set("tcp.size", "2").create().close();
              return null;
            });
    requireAll(texts, "timed out: rank 0 does not take this rank at 127.0.0.1:" + port);
  }

  @Test
  void aMasterThatIsAnotherMachineIsNamed() throws Exception {
    String master = "192.0.2.1:" + Ranks.freePort(); // of no machine
    GradientSync.Builder builder = ThreadRanks.builder(1, 0, 2).set("tcp.master", master);
    String text = failure(builder, 1);
    assertTrue(
        text.contains(
            "come to "
                + master
                + ": missing=rank 1; 192.0.2.1 is no address of this machine, where rank 0 listens,"),
        text);
  }

  /** As long as rank 0's process lives; otherwise its port is closed, until the time-out. */
  @Test
  void aRankThatComesAfterRankZeroHasGivenUpHearsWhy() throws Exception {
    int port = Ranks.freePort();
    List<String> first =
        ThreadRanks.run(port, 1, (rank, builder) -> failure(builder.set("tcp.size", "3"), 1));
    assertTrue(first.get(0).contains("timed out: not all ranks have come"), first::toString);
    for (int late : new int[] {1, 2}) {
      GradientSync.Builder builder =
          ThreadRanks.builder(port, late, 3).timeout(Duration.ofMinutes(1));
      String text = assertThrows(RankLostException.class, builder::create).getMessage();
      assertTrue(
          text.contains("rank 0 has given up the start of the job: timed out: not all ranks")
              && text.contains("missing=rank 1, rank 2")
              && text.endsWith(", rank=" + late),
          text);
    }
    assertEquals(
        List.of(0.5f, 0.5f),
        ThreadRanks.run(
            port,
            2,
            (rank, builder) -> {
              Thread.sleep(rank == 0 ? 500 : 0); // others wait until it begins anew
              return average(builder, (float) rank);
            }));
  }

  private static String failure(GradientSync.Builder builder, int seconds) {
    try {
      builder.timeout(Duration.ofSeconds(seconds)).create().close();
      return "created";
    } catch (GradientSyncException e) {
      return e.getMessage();
    }
  }

  /** Connections of an earlier job may have had the port at their other end. */
  @Test
  void aPortFromWhichARankHasConnectedCanBeListenedAt() throws Exception {
    for (int tries = 3; tries > 0; tries--) {
      int port = portOfEndedConnection();
      try {
        assertEquals(
            List.of(0.5f, 0.5f),
            ThreadRanks.run(port, 2, (rank, builder) -> average(builder, (float) rank)));
        return;
      } catch (ExecutionException e) { // another process of this machine may have it, too
        assertTrue(tries > 1 && e.getMessage().contains("Address already in use"), e.toString());
      }
    }
  }

  private static int portOfEndedConnection() throws Exception {
    InetAddress here = InetAddress.getLoopbackAddress();
    try (ServerSocket other = new ServerSocket(0, 1, here)) {
      InetSocketAddress address = new InetSocketAddress(here, other.getLocalPort());
      AtomicReference<SocketChannel> connected = new AtomicReference<>();
      Thread connector = new Thread(() -> connected.set(connect(address)));
      connector.start();
      try (Socket accepted = other.accept()) {
        accepted.getOutputStream().write(new byte[Handshake.CHALLENGE]); // of nobody
        connector.join();
        assertNull(connected.get()); // it has closed the connection first, which keeps the port
        return accepted.getPort();
      }
    }
  }

  private static SocketChannel connect(InetSocketAddress address) {
    Handshake.Hello hello =
        new Handshake.Hello(true, false, 1, 2, 0, new byte[Handshake.JOB], new byte[32]);
    try {
      return new OutgoingHandshake(new Handshake(""), null, OutgoingHandshake.MILLIS)
          .connect(address, hello);
    } catch (IOException | UnavailableException e) {
      return null;
    }
  }

  @Test
  @Execution(ExecutionMode.CONCURRENT)
  void aPortInUseIsNamed() throws Exception {
    try (ServerSocket other = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      List<String> texts =
          failures(
              other.getLocalPort(),
              1,
              (rank, builder) -> {
                builder.set("tcp.size", "2").create().close();
                return null;
              });
      requireAll(texts, "rank 0 cannot listen at the job's port");
    }
  }

  @Test
  void aJobThatOthersCanReachNeedsASecret() throws Exception {
    requireAll(
        failures(
            Ranks.freePort(),
            2,
            (rank, builder) -> {
              builder.set("tcp.secret", "").set("tcp.master", "192.0.2.1:29500").create().close();
              return null;
            }),
        "set GRADIENTSYNC_SECRET");
  }

  /** Debian gives a machine's name such an address; the interface lists another one. */
  @Test
  void anInterfaceListensWhereTheMasterIs() throws Exception {
    int port = Ranks.freePort();
    List<String> averages =
        ThreadRanks.run(
            port,
            2,
            (rank, builder) -> {
              builder.set("tcp.master", "127.0.1.1:" + port).set("tcp.interface", "lo");
              try (GradientSync sync = builder.create()) {
                return "" + sync.mean(rank);
              }
            });
    assertEquals(List.of("0.5", "0.5"), averages);
  }

  @Test
  void aMasterOnALinkIsRefused() throws Exception {
    requireAll(
        failures(
            Ranks.freePort(),
            2,
            (rank, builder) -> {
              builder.set("tcp.master", "[fe80::1]:29500").create().close();
              return null;
            }),
        "the master's address is link-local");
  }

  @Test
  @Execution(ExecutionMode.CONCURRENT)
  void anotherProtocolIsNamed() throws Exception {
    int port = Ranks.freePort();
    List<String> texts =
        ThreadRanks.run(
            port,
            2,
            (rank, builder) -> {
              if (rank == 0) {
                try {
                  builder.timeout(Duration.ofSeconds(4)).create().close();
                  return "created";
                } catch (GradientSyncException e) {
                  return e.getMessage();
                }
              }
              return helloOf(port, Handshake.PROTOCOL + 1);
            });
    assertTrue(texts.get(1).contains("different versions"), texts::toString);
    assertTrue(
        texts
            .get(0)
            .contains(
                "missing=rank 1; 1 connections came from another version of gradient-sync-tcp,"
                    + " the last one from /127.0.0.1:"),
        texts::toString);
  }

  private static String helloOf(int port, int protocol) throws Exception {
    OutgoingHandshake other =
        new OutgoingHandshake(new Handshake("x"), null, OutgoingHandshake.MILLIS, protocol);
    Handshake.Hello hello =
        new Handshake.Hello(
            true, false, 1, 2, 0, new byte[Handshake.JOB], Handshake.random(Handshake.NONCE));
    for (int i = 0; i < 1500; i++) {
      try {
        other.connect(new InetSocketAddress("127.0.0.1", port), hello).close();
        return "connected";
      } catch (UnavailableException e) {
        return e.getMessage();
      } catch (IOException e) {
        Thread.sleep(20); // rank 0 is about to listen
      }
    }
    return "never";
  }

  /** Whom strangers connect to while a job averages. */
  private interface Stranger {
    void call(int port, Random random) throws Exception;
  }

  /** A connection whose own port, which it keeps for a minute after its end, can be listened at. */
  private static SocketChannel strangerOf(int port) throws IOException {
    SocketChannel channel = SocketChannel.open();
    channel.setOption(StandardSocketOptions.SO_REUSEADDR, true);
    channel.connect(new InetSocketAddress("127.0.0.1", port));
    return channel;
  }

  private static void averagesBeside(Stranger stranger) throws Exception {
    int port = Ranks.freePort();
    AtomicBoolean over = new AtomicBoolean();
    AtomicReference<Throwable> failure = new AtomicReference<>();
    Thread outside =
        new Thread(
            () -> {
              Random random = new Random(7);
              while (!over.get()) {
                try {
                  stranger.call(port, random);
                } catch (IOException e) {
                  Thread.yield(); // refused, or dropped
                } catch (Exception | AssertionError e) {
                  failure.set(e);
                }
              }
            });
    outside.start();
    try {
      List<Float> sums =
          ThreadRanks.run(
              port,
              3,
              (rank, builder) -> {
                float sum = 0;
                try (GradientSync sync = builder.reducer("tcp").create()) {
                  for (int i = 0; i < 200; i++) {
                    float[] values = new float[20_000];
                    Arrays.fill(values, rank);
                    sync.average(values);
                    sum += values[i];
                  }
                }
                return sum;
              });
      assertEquals(List.of(200f, 200f, 200f), sums);
    } finally {
      over.set(true);
      outside.join();
    }
    assertNull(failure.get());
  }

  /** Averages until a task beside it has ended. */
  private static void averagesUntil(Stranger task) throws Exception {
    int port = Ranks.freePort();
    AtomicBoolean over = new AtomicBoolean();
    AtomicReference<Throwable> failure = new AtomicReference<>();
    List<Float> wrong =
        ThreadRanks.run(
            port,
            3,
            (rank, builder) -> {
              float errors = 0;
              try (GradientSync sync = builder.reducer("tcp").create()) {
                Thread outside = new Thread(() -> run(task, port, over, failure));
                if (rank == 0) {
                  outside.start();
                }
                float[] values = new float[20_000];
                while (values[0] < 1) { // which rank 0 tells all
                  Arrays.fill(values, rank);
                  values[0] = over.get() ? 3 : 0;
                  sync.average(values);
                  errors += values[1] == 1 && values[19_999] == 1 ? 0 : 1;
                }
                outside.join();
              }
              return errors;
            });
    assertEquals(List.of(0f, 0f, 0f), wrong);
    assertNull(failure.get());
  }

  private static void run(
      Stranger task, int port, AtomicBoolean over, AtomicReference<Throwable> failure) {
    try {
      task.call(port, new Random(7));
    } catch (Exception | AssertionError e) {
      failure.set(e);
    } finally {
      over.set(true);
    }
  }

  /** Takes those that the other side has closed out of the list. */
  private static void forgetDropped(List<SocketChannel> open) throws IOException {
    ByteBuffer one = ByteBuffer.allocate(1);
    for (SocketChannel channel : List.copyOf(open)) {
      boolean dropped;
      try {
        dropped = channel.read(one.clear()) < 0;
      } catch (IOException e) {
        dropped = true; // reset
      }
      if (dropped) {
        open.remove(channel);
        channel.close();
      }
    }
  }

  /** Whoever opens many keeps no more than the listener's limit. */
  @Test
  void tenThousandConnectionsDoNotDisturbAJob() throws Exception {
    averagesUntil(
        (port, random) -> {
          List<SocketChannel> open = new ArrayList<>();
          try {
            for (int i = 0; i < 10_000; i++) {
              SocketChannel channel = strangerOf(port);
              channel.configureBlocking(false);
              open.add(channel);
              for (int tries = 0; open.size() > 500 && tries < 10_000; tries++) {
                forgetDropped(open);
                Thread.sleep(open.size() > Listener.MAX_PENDING ? 1 : 0);
                if (open.size() <= Listener.MAX_PENDING) {
                  break;
                }
              }
              assertTrue(open.size() <= 500, "connections stay: " + open.size());
            }
          } finally {
            for (SocketChannel channel : open) {
              channel.close();
            }
          }
        });
  }

  /** Bytes that come one by one do not prolong it. */
  @Test
  void aSlowClientIsDropped() throws Exception {
    averagesUntil(
        (port, random) -> {
          byte[] hello =
              new Handshake.Hello(
                      false, false, 1, 3, 0, new byte[Handshake.JOB], new byte[Handshake.NONCE])
                  .encode(Handshake.PROTOCOL);
          List<SocketChannel> open = new ArrayList<>();
          open.add(strangerOf(port));
          open.get(0).configureBlocking(false);
          for (int i = 0; i < hello.length && !open.isEmpty(); i++) {
            open.get(0).write(ByteBuffer.wrap(hello, i, 1));
            Thread.sleep(1000);
            forgetDropped(open);
          }
          assertTrue(open.isEmpty(), "a slow client has said all");
        });
  }

  @Test
  void aPortScanDoesNotDisturbAJob() throws Exception {
    averagesBeside(
        (port, random) -> {
          strangerOf(port).close();
          Thread.sleep(1);
        });
  }

  @Test
  void garbageDoesNotDisturbAJob() throws Exception {
    averagesBeside(
        (port, random) -> {
          byte[] garbage = new byte[random.nextInt(3000)];
          random.nextBytes(garbage);
          try (Socket socket = strangerOf(port).socket()) {
            socket.getOutputStream().write(garbage);
          }
        });
  }

  @Test
  void alteredHandshakesDoNotDisturbAJob() throws Exception {
    averagesBeside(
        (port, random) -> {
          Handshake.Hello hello =
              new Handshake.Hello(
                  random.nextBoolean(),
                  random.nextBoolean(),
                  random.nextInt(4),
                  3,
                  random.nextInt(3),
                  new byte[Handshake.JOB],
                  Handshake.random(Handshake.NONCE));
          byte[] first = hello.encode(Handshake.PROTOCOL);
          for (int i = random.nextInt(3); i > 0; i--) {
            first[random.nextInt(first.length)] ^= (byte) (1 << random.nextInt(8));
          }
          byte[] proof = Handshake.random(Handshake.PROOF);
          try (Socket socket = strangerOf(port).socket()) {
            OutputStream out = socket.getOutputStream();
            out.write(
                first, 0, random.nextInt(4) == 0 ? random.nextInt(first.length) : first.length);
            out.write(proof);
            out.write(new byte[Member.BYTES]);
            socket.setSoTimeout(200);
            byte[] answer = new byte[Handshake.CHALLENGE + Handshake.ANSWER];
            int read = socket.getInputStream().readNBytes(answer, 0, answer.length);
            if (read == answer.length) {
              int status = ByteBuffer.wrap(answer).getInt(Handshake.CHALLENGE);
              assertEquals(Handshake.OTHER_SECRET, status);
            }
          }
        });
  }

  @Test
  void manyConnectionsThatStayDoNotDisturbAJob() throws Exception {
    List<SocketChannel> open = new ArrayList<>();
    try {
      averagesBeside(
          (port, random) -> {
            SocketChannel channel = strangerOf(port);
            open.add(channel);
            channel.write(ByteBuffer.wrap(new byte[] {0x47})); // the first byte of a hello
            if (open.size() > 500) {
              open.remove(0).close();
            }
          });
    } finally {
      for (SocketChannel channel : open) {
        channel.close();
      }
    }
  }
}
