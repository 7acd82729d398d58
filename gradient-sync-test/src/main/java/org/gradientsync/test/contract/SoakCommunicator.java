package org.gradientsync.test.contract;

import static org.gradientsync.test.contract.SoakChecks.TYPES;
import static org.gradientsync.test.contract.SoakChecks.check;
import static org.gradientsync.test.contract.SoakChecks.data;
import static org.gradientsync.test.contract.SoakChecks.op;
import static org.gradientsync.test.contract.SoakChecks.require;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.gradientsync.Communicator;
import org.gradientsync.DataType;
import org.gradientsync.GradientSync;
import org.gradientsync.ReduceOp;

/** Calls of {@link Soak} that a communicator makes. */
final class SoakCommunicator {
  private final int rank;
  private final int ranks;
  private final SplittableRandom shared;

  SoakCommunicator(GradientSync base, SplittableRandom shared) {
    rank = base.rank();
    ranks = base.size();
    this.shared = shared;
  }

  /** Makes one of the communicator's calls. */
  static void onHost(Communicator group, int size, SplittableRandom random) {
    DataType type = TYPES[random.nextInt(TYPES.length)];
    ReduceOp op = op(random, type);
    int count = random.nextInt(1, 3_000);
    int root = random.nextInt(size);
    int data = data(random);
    int me = group.rank();
    int all = count * size;
    ByteBuffer mine = Numbers.of(type, me, data, count);
    ByteBuffer room = Numbers.memory(type, all);
    Buffer send = Numbers.typed(type, mine);
    switch (random.nextInt(9)) {
      case 0 -> {
        group.allReduce(send, type, op);
        check(Numbers.reduced(type, op, size, data, count), mine, type, op);
      }
      case 1 -> {
        group.broadcast(send, root);
        check(Numbers.of(type, root, data, count), mine, type, "communicator.broadcast");
      }
      case 2 -> {
        group.allGather(send, Numbers.typed(type, room));
        check(everybodys(type, size, data, count), room, type, "allGather");
      }
      case 3 -> {
        ByteBuffer whole = Numbers.of(type, me, data, all);
        group.reduceScatter(Numbers.typed(type, whole), send, type, op);
        check(Numbers.reduced(type, op, size, data + me * count, count), mine, type, op);
      }
      case 4 -> {
        group.gather(send, me == root ? Numbers.typed(type, room) : null, root);
        if (me == root) {
          check(everybodys(type, size, data, count), room, type, "gather");
        }
      }
      case 5 -> {
        ByteBuffer whole = everybodys(type, size, data, count);
        group.scatter(me == root ? Numbers.typed(type, whole) : null, send, root);
        check(Numbers.of(type, me, data, count), mine, type, "scatter");
      }
      case 6 -> {
        List<byte[]> bytes = group.allGather(bytes(me, count));
        for (int peer = 0; peer < size; peer++) {
          require(Arrays.equals(bytes(peer, count), bytes.get(peer)), "wrong bytes of " + peer);
        }
      }
      case 7 -> {
        byte[] bytes = group.broadcast(me == root ? bytes(root, count) : null, root);
        require(Arrays.equals(bytes(root, count), bytes), "wrong bytes from " + root);
      }
      default -> {
        if (size > 1) {
          ByteBuffer got = Numbers.memory(type, count);
          int to = (me + 1) % size;
          int from = (me + size - 1) % size;
          group.sendReceive(send, to, Numbers.typed(type, got), from, random.nextInt(100));
          check(Numbers.of(type, from, data, count), got, type, "sendReceive");
        }
      }
    }
  }

  /** Some bytes of a rank, of which each has another number; the first one has none. */
  private static byte[] bytes(int rank, int count) {
    byte[] bytes = new byte[rank * count];
    Arrays.fill(bytes, (byte) (rank + count));
    return bytes;
  }

  private static ByteBuffer everybodys(DataType type, int size, int data, int count) {
    ByteBuffer all = Numbers.memory(type, count * size);
    for (int peer = 0; peer < size; peer++) {
      all.put(Numbers.of(type, peer, data, count));
    }
    return all.clear();
  }

  /** Splits some of the ranks into groups, in random order. */
  void split(Communicator communicator) {
    int[] colors = new int[ranks];
    int[] keys = new int[ranks];
    for (int i = 0; i < ranks; i++) {
      colors[i] = shared.nextInt(4) - 1;
      keys[i] = shared.nextInt(5);
    }
    SplittableRandom[] byColor = {shared.split(), shared.split(), shared.split()};
    int size = 0;
    int place = 0;
    for (int i = 0; i < ranks; i++) {
      if (colors[i] == colors[rank]) {
        size++;
        place += keys[i] < keys[rank] || keys[i] == keys[rank] && i < rank ? 1 : 0;
      }
    }
    try (Communicator part = communicator.split(colors[rank], keys[rank])) {
      if (colors[rank] < 0) {
        require(part == null, "a rank without a color is in a group");
        return;
      }
      require(part.size() == size && part.rank() == place, "wrong place in a group: " + place);
      for (int i = 0; i < 3; i++) {
        onHost(part, size, byColor[colors[rank]]);
      }
    }
  }
}
