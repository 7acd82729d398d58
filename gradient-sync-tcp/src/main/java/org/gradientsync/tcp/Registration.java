package org.gradientsync.tcp;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Rank 0's list of those that have come, until all have. Then each gets the same reply: a status, a
 * length, and the job's id with all {@link Member}s, or why there is no job. Any thread may call
 * it.
 */
final class Registration {
  /** The size of the reply before its text or table. */
  static final int REPLY = 2 * Integer.BYTES;

  static final int STARTED = 0;
  static final int REFUSED = 1;
  static final int INVITED = 2; // to another job
  static final int GIVEN_UP = 3; // refused, too; not all ranks have come

  /** The maximum size of a reason in bytes. */
  static final int MAX_REASON = 1000;

  private static final int MOST_NAMES = 8;
  private static final long WRITE_NANOS = 5_000_000_000L;

  private final Member[] members;
  private final SocketChannel[] channels;
  private final Set<Integer> informed = new HashSet<>(); // that there is no job
  private int missing;
  private int status = STARTED; // or why there is no job
  private String failure; // the reason, or null
  private boolean over;

  Registration(int size, Member own) {
    members = new Member[size];
    channels = new SocketChannel[size];
    members[0] = own;
    missing = size - 1;
  }

  /** Whether ranks may register, those included that only hear why there is no job. */
  synchronized boolean takes() {
    return !over || failure != null;
  }

  synchronized void add(Handshake.Hello hello, Member member, SocketChannel channel) {
    if (over) {
      if (failure != null && informed.add(hello.rank())) { // or it waits for the next job
        reply(channel, status, failure.getBytes(StandardCharsets.UTF_8));
      }
      Listener.close(channel);
      return;
    }
    String reason = objection(hello, member);
    if (reason != null) {
      informed.add(hello.rank());
      reply(channel, REFUSED, reason.getBytes(StandardCharsets.UTF_8));
      Listener.close(channel);
      fail(REFUSED, reason);
      return;
    }
    members[hello.rank()] = member;
    channels[hello.rank()] = channel;
    missing--;
    notifyAll();
  }

  private String objection(Handshake.Hello hello, Member member) {
    int rank = hello.rank();
    int size = members.length;
    String name = "rank " + rank + " (" + member.place() + ")";
    if (hello.size() != size) {
      return ("the ranks expect different numbers of ranks: rank 0 expects %s, %s expects %s;"
              + " give WORLD_SIZE, tcp.size or -np alike on all ranks")
          .formatted(size, name, hello.size());
    }
    if (!member.version().equals(members[0].version())) {
      return ("the ranks have different versions of gradient-sync-tcp: rank 0 has %s, %s has %s;"
              + " use one version on all ranks")
          .formatted(members[0].version(), name, member.version());
    }
    if (rank >= size || members[rank] != null) {
      return ("two ranks have the same number: rank %s is %s and %s;"
              + " give each rank its own RANK, or tcp.rank")
          .formatted(rank, rank < size ? members[rank].place() : "none", member.place());
    }
    return null;
  }

  /** A registered rank has ended, or was started again. */
  synchronized void remove(SocketChannel channel) {
    int rank = Arrays.asList(channels).indexOf(channel);
    if (rank >= 0 && !over) {
      members[rank] = null;
      channels[rank] = null;
      missing++;
    }
    if (!over) {
      Listener.close(channel);
    }
  }

  /** Gives up, and says why to all that have come. */
  synchronized void fail(int why, String reason) {
    if (!over) {
      over = true;
      status = why;
      failure = reason;
      byte[] text = reason.getBytes(StandardCharsets.UTF_8);
      for (int rank = 0; rank < channels.length; rank++) {
        if (channels[rank] != null) {
          informed.add(rank);
          reply(channels[rank], why, text);
          Listener.close(channels[rank]);
        }
      }
      notifyAll();
    }
  }

  /** Waits for a moment. Returns whether the wait is over. */
  synchronized boolean await(long millis) throws InterruptedException {
    if (missing > 0 && failure == null) {
      wait(millis);
    }
    return missing == 0 || failure != null;
  }

  /** Why there is no job, or null. */
  synchronized String failure() {
    return failure;
  }

  /** The ranks that have not come, for texts. */
  synchronized String missing() {
    String names =
        IntStream.range(0, members.length)
            .filter(rank -> members[rank] == null)
            .limit(MOST_NAMES)
            .mapToObj(rank -> "rank " + rank)
            .collect(Collectors.joining(", "));
    return missing > MOST_NAMES ? names + " and " + (missing - MOST_NAMES) + " more" : names;
  }

  /**
   * Starts the job: sends all ranks what they need to know. Returns all members and channels, or
   * null if a rank has just gone.
   */
  synchronized Started start(byte[] job) {
    if (missing > 0 || failure != null) {
      return null;
    }
    over = true;
    ByteBuffer table = ByteBuffer.allocate(Handshake.JOB + members.length * Member.BYTES);
    table.put(job);
    for (Member member : members) {
      table.put(member.encode());
    }
    for (int rank = 1; rank < channels.length; rank++) {
      reply(channels[rank], STARTED, table.array());
    }
    return new Started(members, channels);
  }

  /** A job that has started. */
  record Started(Member[] members, SocketChannel[] channels) {}

  /** Writes with a limit. If that fails, the connection's reader finds out. */
  static void reply(SocketChannel channel, int status, byte[] bytes) {
    int length =
        status == REFUSED || status == GIVEN_UP ? Math.min(bytes.length, MAX_REASON) : bytes.length;
    ByteBuffer reply = ByteBuffer.allocate(REPLY + length);
    reply.putInt(status).putInt(length).put(bytes, 0, length).flip();
    long start = System.nanoTime();
    try {
      while (reply.hasRemaining() && System.nanoTime() - start < WRITE_NANOS) {
        if (channel.write(reply) == 0) {
          Thread.sleep(1);
        }
      }
    } catch (IOException e) {
      return;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
