package org.gradientsync.tcp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.gradientsync.GradientSyncException;
import org.gradientsync.RankLostException;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Transport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests messages between two ends of a connection, on one thread. */
class EndpointTest {
  /** Too long to be sent before its receiver is known. */
  private static final int LONG = Outbox.EAGER_BYTES + 10_001;

  private static final long LIMIT_NANOS = 60_000_000_000L;

  private final Endpoint zero = new Endpoint(0, 2);
  private final Endpoint one = new Endpoint(1, 2);
  private SocketChannel channel; // of rank 1

  @BeforeEach
  void connect() throws IOException {
    try (ServerSocketChannel server = ServerSocketChannel.open()) {
      server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
      channel = SocketChannel.open(server.getLocalAddress());
      SocketChannel other = server.accept();
      IncomingHandshake.prepare(channel);
      IncomingHandshake.prepare(other);
      channel.configureBlocking(false);
      other.configureBlocking(false);
      assertTrue(zero.attach(1, other));
      assertTrue(one.attach(0, channel));
    }
  }

  @AfterEach
  void close() {
    zero.closeLinks();
    one.closeLinks();
  }

  private static ByteBuffer filled(int bytes, int value) {
    ByteBuffer memory = ByteBuffer.allocateDirect(bytes);
    for (int i = 0; i < bytes; i++) {
      memory.put(i, (byte) (value + i));
    }
    return memory;
  }

  private static Message started(Message message) {
    message.start();
    return message;
  }

  /** Lets both ends work until all messages are complete. */
  private void await(Message... messages) {
    for (long start = System.nanoTime(); System.nanoTime() - start < LIMIT_NANOS; ) {
      boolean all = true;
      zero.help(zero.progressed());
      one.help(one.progressed());
      for (Message message : messages) {
        all &= message.test();
      }
      if (all) {
        return;
      }
    }
    throw new AssertionError("messages do not arrive");
  }

  private void progress() {
    for (int i = 0; i < 200; i++) {
      zero.help(zero.progressed());
      one.help(one.progressed());
    }
  }

  @Test
  void messagesOfAllSizesArriveWhoeverStartsFirst() {
    for (int bytes :
        new int[] {0, 1, 4096, Outbox.EAGER_BYTES, Outbox.EAGER_BYTES + 1, 70_000, 5_000_000}) {
      for (boolean early : new boolean[] {false, true}) {
        ByteBuffer target = ByteBuffer.allocateDirect(bytes);
        Message receive = one.receiver(target, 0, 7);
        if (!early) {
          receive.start();
        }
        Message send = started(zero.sender(filled(bytes, 3), 1, 7));
        progress();
        if (early) {
          receive.start();
        }
        await(send, receive);
        assertEquals(filled(bytes, 3), target, "bytes=" + bytes + ", early=" + early);
        send.close();
        receive.close();
      }
    }
  }

  @Test
  void messagesMatchByTagInTheOrderOfTheirStarts() {
    Random random = new Random(1);
    List<Message> sends = new ArrayList<>();
    List<Message> receives = new ArrayList<>();
    List<ByteBuffer> targets = new ArrayList<>();
    List<Integer> expected = new ArrayList<>();
    int[] next = new int[3];
    int[] sent = new int[3];
    for (int i = 0; i < 300; i++) {
      int tag = random.nextInt(3);
      int bytes = random.nextBoolean() ? 100 : LONG;
      sends.add(started(zero.sender(filled(bytes, tag + 10 * sent[tag]++), 1, tag)));
      if (random.nextInt(3) == 0) {
        progress();
      }
    }
    for (int tag = 2; tag >= 0; tag--) { // a long message of one tag holds up no other
      while (next[tag] < sent[tag]) {
        ByteBuffer target = ByteBuffer.allocateDirect(LONG);
        targets.add(target);
        expected.add(tag + 10 * next[tag]++);
        receives.add(started(one.receiver(target, 0, tag)));
        await(receives.get(receives.size() - 1));
      }
    }
    await(sends.toArray(Message[]::new));
    for (int i = 0; i < targets.size(); i++) {
      assertEquals((byte) (int) expected.get(i), targets.get(i).get(0));
      assertEquals((byte) (expected.get(i) + 99), targets.get(i).get(99));
    }
  }

  @Test
  void receiversThatWaitGetTheMessagesOfTheirTags() {
    int[] lengths = {50, LONG};
    for (int length : lengths) {
      Message[] receives = new Message[6];
      ByteBuffer[] targets = new ByteBuffer[receives.length];
      for (int i = 0; i < receives.length; i++) { // tags 0, 1, 2, 0, 1, 2
        targets[i] = ByteBuffer.allocateDirect(length);
        receives[i] = started(one.receiver(targets[i], 0, i % 3));
      }
      Message other = started(one.receiver(ByteBuffer.allocateDirect(length), 0, 8));
      started(zero.sender(filled(length, 0), 1, 9)); // nobody receives it
      progress();
      assertFalse(other.test());
      for (int i : new int[] {1, 2, 4, 0, 5, 3}) {
        started(zero.sender(filled(length, i), 1, i % 3));
        progress();
      }
      await(receives);
      for (int i = 0; i < receives.length; i++) {
        assertEquals(filled(length, i), targets[i]);
      }
      other.close();
    }
  }

  @Test
  void shorterMessagesLeaveTheRestAndLongerOnesAreRefused() {
    for (int bytes : new int[] {10, LONG}) {
      ByteBuffer target = filled(2 * bytes, 100);
      Message receive = started(one.receiver(target, 0, 1));
      await(started(zero.sender(filled(bytes, 5), 1, 1)), receive);
      assertEquals(filled(bytes, 5), target.duplicate().limit(bytes));
      assertEquals((byte) (100 + bytes), target.get(bytes));
      Message small = started(one.receiver(ByteBuffer.allocateDirect(bytes - 1), 0, 2));
      started(zero.sender(filled(bytes, 5), 1, 2));
      progress();
      GradientSyncException e = assertThrows(GradientSyncException.class, small::test);
      assertTrue(e.getMessage().contains("longer than expected: sent=" + bytes), e.getMessage());
    }
  }

  @Test
  void aReceiverOfAnyRankGetsMessagesInOrder() {
    ByteBuffer target = ByteBuffer.allocateDirect(30_000);
    Message receive = one.receiver(target, Transport.ANY_RANK, 5);
    for (int i = 0; i < 20; i++) {
      Message send = started(zero.sender(filled(i % 2 == 0 ? 10 : 30_000, i), 1, 5));
      receive.start();
      await(receive, send);
      assertEquals((byte) i, target.get(0));
    }
  }

  @Test
  void closedMessagesAreCancelledAndShortOnesArrive() {
    Message kept = started(zero.sender(filled(4096, 9), 1, 3));
    kept.close();
    Message dropped = started(zero.sender(filled(100_000, 1), 1, 3));
    progress();
    dropped.close();
    Message closed = started(one.receiver(ByteBuffer.allocateDirect(100_000), 0, 4));
    progress();
    closed.close();
    Message second = started(zero.sender(filled(100_000, 2), 1, 3));
    Message other = started(zero.sender(filled(100_000, 4), 1, 4));
    ByteBuffer target = ByteBuffer.allocateDirect(100_000);
    Message receive = started(one.receiver(target, 0, 3));
    await(receive);
    assertEquals((byte) 9, target.get(0));
    receive.start();
    await(receive, second);
    assertEquals((byte) 2, target.get(0));
    ByteBuffer last = ByteBuffer.allocateDirect(100_000);
    await(started(one.receiver(last, 0, 4)), other);
    assertEquals(filled(100_000, 4), last);
  }

  @Test
  void aReceiverThatClosesInTheMiddleDisturbsNoOther() {
    Message send = started(zero.sender(filled(30_000_000, 1), 1, 3));
    Message receive = started(one.receiver(ByteBuffer.allocateDirect(30_000_000), 0, 3));
    for (int i = 0; i < 4; i++) {
      zero.help(zero.progressed());
      one.help(one.progressed());
    }
    receive.close();
    ByteBuffer target = ByteBuffer.allocateDirect(LONG);
    await(send, started(zero.sender(filled(LONG, 6), 1, 3)), started(one.receiver(target, 0, 3)));
    assertEquals(filled(LONG, 6), target);
  }

  @Test
  void manyMessagesThatNobodyReceivesYetTakeBoundedMemory() {
    int many = Outbox.WINDOW_BYTES / 10_000 + 50;
    List<Message> sends = new ArrayList<>();
    for (int i = 0; i < many; i++) {
      sends.add(started(zero.sender(filled(10_000, i), 1, 1)));
    }
    progress();
    assertTrue(sends.get(50).test());
    assertFalse(sends.get(many - 1).test()); // beyond the window, so it waits here
    ByteBuffer target = ByteBuffer.allocateDirect(10_000);
    Message receive = one.receiver(target, 0, 1);
    for (int i = 0; i < many; i++) {
      receive.start();
      await(receive);
      assertEquals((byte) i, target.get(0));
    }
    await(sends.toArray(Message[]::new));
  }

  @Test
  void aBrokenConnectionLosesTheRankAndAGoodbyeDoesNot() throws Exception {
    Message receive = started(zero.receiver(ByteBuffer.allocateDirect(10), 1, 1));
    await(started(one.sender(filled(10, 8), 0, 1)), receive);
    receive.start();
    channel.close();
    for (int i = 0; i < 1000 && !zero.peer(1).isLost(); i++) {
      assertFalse(receive.test());
      Thread.sleep(5);
    }
    assertTrue(zero.peer(1).isLost());
    Thread.sleep(2_100);
    RankLostException e = assertThrows(RankLostException.class, receive::test);
    assertTrue(e.getMessage().startsWith("the connection broke"), e.getMessage());
  }

  /** A machine that does not answer says nothing of its rank; one that ends a connection does. */
  @ParameterizedTest
  @CsvSource({"Connection timed out,true", "No route to host,true", "Connection reset,false"})
  void aRankWhoseMachineDoesNotAnswerMayLive(String error, boolean mayLive) {
    Endpoint endpoint = new Endpoint(0, 2);
    ScriptedChannel broken = new ScriptedChannel(new Random(1));
    broken.fail(new IOException(error));
    assertTrue(endpoint.attach(1, broken));
    assertTrue(endpoint.peer(1).isLost());
    assertEquals(mayLive, endpoint.peer(1).mayLive());
  }

  /** It may say why it ends: whoever has something to send to it then reads that all the same. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void whatARankHasSentBeforeItsConnectionBrokeIsRead(boolean sends) {
    int many = 300; // bytes in one call of the channel's are few
    ByteBuffer frames = ByteBuffer.allocate(many * (Frame.HEADER + 1));
    for (int i = 0; i < many; i++) {
      frames.putInt(Frame.EAGER).putInt(i).putInt(1).putInt(0).put((byte) i);
    }
    ScriptedChannel broken = new ScriptedChannel(new Random(1));
    Endpoint endpoint = new Endpoint(0, 2);
    assertTrue(endpoint.attach(1, broken));
    broken.send(frames.array());
    broken.failWrites(new IOException("Broken pipe"));
    if (sends) {
      started(endpoint.sender(filled(10, 1), 1, 5));
    } else {
      endpoint.close();
    }
    assertTrue(endpoint.peer(1).isLost());
    ByteBuffer last = ByteBuffer.allocateDirect(1);
    assertTrue(started(endpoint.receiver(last, 1, many - 1)).test());
    assertEquals((byte) (many - 1), last.get(0));
  }

  @Test
  void aPeerThatSendsNothingIsLostAndHeartbeatsAreEnough() {
    for (int second = 0; second < 10; second++) {
      zero.beat(second, 3, peer -> true);
      one.beat(second, 3, peer -> true);
      progress();
    }
    assertFalse(zero.peer(1).isLost());
    for (int second = 10; second < 14; second++) {
      zero.beat(second, 3, peer -> true);
    }
    assertFalse(zero.peer(1).isLost());
    zero.beat(14, 3, peer -> true);
    assertTrue(zero.peer(1).isLost());
    assertTrue(zero.peer(1).mayLive());
  }

  @Test
  void afterAGoodbyeARankIsGoneAndNotLost() {
    Message last = started(one.sender(filled(100, 2), 0, 6));
    one.close();
    ByteBuffer target = ByteBuffer.allocateDirect(100);
    await(last, started(zero.receiver(target, 1, 6)));
    progress();
    assertEquals(filled(100, 2), target);
    assertTrue(zero.peer(1).hasLeft());
    assertFalse(zero.peer(1).isLost());
  }

  @Test
  void whatNoRankSendsBreaksTheConnection() throws Exception {
    ByteBuffer frames = ByteBuffer.allocate(160);
    new Random(3).nextBytes(frames.array());
    channel.write(frames);
    progress();
    assertTrue(zero.peer(1).isLost());
  }

  @Test
  void startingAndTestingAllocateNothingWhenWarm() {
    Message[] all = {
      zero.sender(filled(100, 1), 1, 1),
      zero.sender(filled(100_000, 1), 1, 2),
      one.receiver(ByteBuffer.allocateDirect(100), 0, 1),
      one.receiver(ByteBuffer.allocateDirect(100_000), 0, 2)
    };
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long self = Thread.currentThread().getId();
    long least = Long.MAX_VALUE; // other rounds may include the compiler's work
    for (int round = 0; round < 30; round++) {
      long before = threads.getThreadAllocatedBytes(self);
      for (int i = 0; i < 200; i++) {
        boolean early = i % 2 == 0;
        for (int m = 0; m < 4; m++) {
          all[early ? m : 3 - m].start();
        }
        boolean done = false;
        while (!done) {
          done = true;
          for (Message message : all) {
            done &= message.test();
          }
        }
      }
      least = Math.min(least, threads.getThreadAllocatedBytes(self) - before);
    }
    assertTrue(least < 200, "bytes=" + least);
  }
}
