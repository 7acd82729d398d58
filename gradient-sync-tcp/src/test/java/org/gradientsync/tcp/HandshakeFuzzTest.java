package org.gradientsync.tcp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.code_intelligence.jazzer.api.FuzzedDataProvider;
import com.code_intelligence.jazzer.junit.FuzzTest;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.Arrays;
import java.util.Random;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.backend.RankPlace;
import org.junit.jupiter.api.Test;

/**
 * Real handshakes with random changes: who has not proved that it has the secret gets in nowhere,
 * and nothing else is thrown than what the callers expect. The seeds are fixed; the fuzzer chooses
 * what is random itself.
 */
class HandshakeFuzzTest {
  private static final int INPUTS = 20_000;
  private static final Handshake HANDSHAKE = new Handshake("of the tests");
  private static final Handshake OTHER = new Handshake("of others");

  /** Takes its numbers from the fuzzer, and zeros once there are no more. */
  private static final class Chosen extends Random {
    private static final long serialVersionUID = 1L;

    private final transient FuzzedDataProvider data;

    Chosen(FuzzedDataProvider data) {
      this.data = data;
    }

    @Override
    protected int next(int bits) {
      return data.consumeInt() >>> Integer.SIZE - bits;
    }
  }

  /** Most parts stay as they are, or all would end at the first one. */
  private static byte[] altered(byte[] part, Random random) {
    byte[] bytes = part.clone();
    switch (random.nextInt(8)) {
      case 0 -> bytes[random.nextInt(bytes.length)] ^= (byte) (1 << random.nextInt(8));
      case 1 -> {
        byte[] other = new byte[random.nextInt(16)];
        random.nextBytes(other);
        int at = random.nextInt(bytes.length - other.length);
        System.arraycopy(other, 0, bytes, at, other.length);
      }
      case 2 -> {
        int at = random.nextInt(bytes.length / Integer.BYTES) * Integer.BYTES;
        int[] values = {0, -1, 1, Integer.MAX_VALUE, Integer.MIN_VALUE, 1 << 16};
        ByteBuffer.wrap(bytes).putInt(at, values[random.nextInt(values.length)]);
      }
      case 3 -> {
        return Arrays.copyOf(bytes, random.nextInt(2 * bytes.length)); // cut off, or longer
      }
      default -> {}
    }
    return bytes;
  }

  private static Handshake.Hello hello(Random random) {
    boolean register = random.nextBoolean();
    byte[] job = new byte[Handshake.JOB];
    byte[] nonce = Handshake.random(Handshake.NONCE);
    return new Handshake.Hello(
        register, register && random.nextBoolean(), 1 + random.nextInt(2), 3, 0, job, nonce);
  }

  private static Member member() {
    InetSocketAddress address = new InetSocketAddress(InetAddress.getLoopbackAddress(), 29500);
    return new Member(address, 0, "0.1", RankPlace.own("here"));
  }

  /** Mostly the right one. */
  private static Handshake secret(Random random) {
    return random.nextInt(8) == 0 ? OTHER : HANDSHAKE;
  }

  /** Lets in whoever asks. */
  private static final class OpenDoor implements Listener.Doorkeeper {
    private boolean asked;

    @Override
    public int admit(Handshake.Hello hello) {
      asked = true;
      return Handshake.OK;
    }

    @Override
    public void connected(Handshake.Hello hello, SocketChannel channel) {}

    @Override
    public void registered(
        Handshake.Hello hello, Member member, String settings, SocketChannel channel) {}

    @Override
    public void ended(SocketChannel channel) {}

    @Override
    public boolean advance() {
      return false;
    }
  }

  @FuzzTest
  void anyoneMayConnect(FuzzedDataProvider data) {
    accept(new Chosen(data));
  }

  @Test
  void theAcceptorLetsInOnlyWhoHasProved() {
    Random random = new Random(41);
    int[] results = new int[IncomingHandshake.State.values().length];
    int thrown = 0;
    for (int i = 0; i < INPUTS; i++) {
      IncomingHandshake.State state = accept(random);
      if (state == null) {
        thrown++;
      } else {
        results[state.ordinal()]++;
      }
    }
    for (IncomingHandshake.State state : IncomingHandshake.State.values()) {
      int count = results[state.ordinal()];
      assertTrue(count > INPUTS / 100, "the inputs do not lead to " + state + ": " + count);
    }
    assertTrue(thrown > 0, "no member was refused");
  }

  /** Returns how it has ended, or null if the listener would drop the connection. */
  private static IncomingHandshake.State accept(Random random) {
    ScriptedChannel channel = new ScriptedChannel(random);
    IncomingHandshake one = new IncomingHandshake(channel, HANDSHAKE);
    OpenDoor door = new OpenDoor();
    boolean proved = false;
    IncomingHandshake.State state = null;
    try {
      byte[] first = altered(hello(random).encode(Handshake.PROTOCOL), random);
      channel.send(first);
      IncomingHandshake.State greeted = advance(one, door, first.length);
      if (greeted == IncomingHandshake.State.GOES_ON && channel.written().length > 0) {
        byte[] heard = Arrays.copyOf(first, Handshake.Hello.BYTES);
        byte[] nonce =
            Arrays.copyOfRange(
                channel.written(), Handshake.CHALLENGE - Handshake.NONCE, Handshake.CHALLENGE);
        byte[] proof = HANDSHAKE.connectorProof(heard, nonce);
        byte[] sent = altered(secret(random).connectorProof(heard, nonce), random);
        byte[] behind = altered(member().encode(), random);
        byte[] settings = new byte[Handshake.SETTINGS]; // read from one that joins only
        random.nextBytes(settings);
        // The bytes behind a proof that was cut off may complete it.
        byte[] all =
            ByteBuffer.allocate(sent.length + behind.length + settings.length)
                .put(sent)
                .put(behind)
                .put(settings)
                .array();
        proved =
            first.length == heard.length && Arrays.equals(Arrays.copyOf(all, proof.length), proof);
        channel.send(all);
        greeted = advance(one, door, sent.length + Member.BYTES + settings.length);
      }
      state = greeted;
      int said = channel.written().length;
      assertTrue(said <= Handshake.CHALLENGE + Handshake.ANSWER, "written=" + said);
      if (state == IncomingHandshake.State.REGISTERED) {
        register(one, channel);
      }
    } catch (IOException | IllegalArgumentException e) {
      // the listener drops the connection
    }
    assertEquals(proved, door.asked);
    boolean joins = one.hello() != null && one.hello().joins();
    int most = Handshake.Hello.BYTES + Handshake.PROOF + Member.BYTES;
    most += joins ? Handshake.SETTINGS : 0;
    assertTrue(channel.taken() <= most, "read=" + channel.taken());
    return state;
  }

  /** Until all is read, or it ends: a selector would call it again. */
  private static IncomingHandshake.State advance(IncomingHandshake one, OpenDoor door, int times)
      throws IOException {
    IncomingHandshake.State state = IncomingHandshake.State.GOES_ON;
    for (int i = 0; i <= times && state == IncomingHandshake.State.GOES_ON; i++) {
      state = one.advance(door);
    }
    return state;
  }

  private static void register(IncomingHandshake one, ScriptedChannel channel) {
    Registration registration = new Registration(3, member());
    registration.add(one.hello(), one.member(), channel);
    registration.add(one.hello(), one.member(), channel); // twice
    assertTrue(registration.failure() != null, "registered twice");
  }

  @FuzzTest
  void anyoneMayListen(FuzzedDataProvider data) {
    connect(new Chosen(data));
  }

  @Test
  void theConnectorTrustsOnlyWhoHasProved() {
    Random random = new Random(42);
    int trusted = 0;
    for (int i = 0; i < INPUTS; i++) {
      trusted += connect(random) ? 1 : 0;
    }
    int refused = INPUTS - trusted;
    assertTrue(trusted > INPUTS / 100 && refused > INPUTS / 2, trusted + " and " + refused);
  }

  /** Returns whether it trusts the other side. */
  private static boolean connect(Random random) {
    Handshake.Hello hello = hello(random);
    byte[] nonce = Handshake.random(Handshake.NONCE);
    int status = random.nextInt(5);
    byte[] challenge = Handshake.challenge(nonce);
    byte[] first = hello.encode(Handshake.PROTOCOL);
    byte[] answer = HANDSHAKE.answer(first, nonce, status);
    byte[] sentChallenge = altered(challenge, random);
    byte[] sentAnswer = altered(secret(random).answer(first, nonce, status), random);
    ScriptedChannel channel = new ScriptedChannel(random);
    channel.send(sentChallenge);
    channel.send(sentAnswer);
    byte[] all =
        ByteBuffer.allocate(sentChallenge.length + sentAnswer.length)
            .put(sentChallenge)
            .put(sentAnswer)
            .array();
    byte[] right =
        ByteBuffer.allocate(Handshake.CHALLENGE + Handshake.ANSWER)
            .put(challenge)
            .put(answer)
            .array();
    boolean proved =
        status == Handshake.OK
            && all.length >= right.length
            && Arrays.equals(Arrays.copyOf(all, right.length), right);
    boolean trusts;
    try {
      new OutgoingHandshake(HANDSHAKE, null, OutgoingHandshake.MILLIS)
          .greet(channel, new InetSocketAddress("127.0.0.1", 29500), hello);
      trusts = true;
    } catch (IOException | UnavailableException e) {
      trusts = false;
    }
    assertEquals(proved, trusts);
    assertTrue(channel.taken() <= right.length, "read=" + channel.taken());
    return trusts;
  }
}
