package org.gradientsync.core.collectives.nodes;

import org.gradientsync.SumOrder;
import org.gradientsync.core.collectives.messages.Shards;
import org.gradientsync.core.rendezvous.GatheredCalls;
import org.gradientsync.core.rendezvous.LeaderRounds;

/**
 * Which buffers take which way in {@link TwoLevelReducer}, and in which parts. All ranks compute
 * the same.
 *
 * @param carries whether small buffers travel with the calls
 * @param chunkBytes the maximum size of a chunk of a running sum
 * @param halvingBytes the maximum size of what a carrier adds by halving, for each node
 * @param exchangeBytes how much more than a running sum an exchange may send, for each node
 * @param directBytes how much more than halving a node may send, for each round that it saves, if
 *     it sends its sums straight to the others; 0 if none does
 */
record TwoLevelSizes(
    boolean carries, int chunkBytes, int halvingBytes, int exchangeBytes, int directBytes) {
  /** Up to this size, MPI sends a message without first waiting for the receiver to be ready. */
  static final int MAX_CHUNK_BYTES = 32 << 10;

  /** Those that take the least time by the model. */
  static final TwoLevelSizes USUAL =
      new TwoLevelSizes(true, MAX_CHUNK_BYTES, 14 << 10, 74 << 10, 60 << 10);

  private static final int MIN_CHUNK_BYTES = 4 << 10;
  private static final int MIN_CHUNK_OF_CHAIN = 1 << 10;
  private static final int MAX_SCRATCH_BYTES = 4 << 20;
  private static final int CHUNKS_A_NODE = 3; // enough to keep all nodes busy at the same time
  private static final int MIN_COLUMN_BYTES = 8 << 10;
  private static final int MAX_COLUMN_BYTES = 512 << 10;
  private static final long MOST_BY_HALVING = 5 << 20; // of a carrier; more is for the links alone

  private static final int CHUNKS_OF_DIRECT = 4;
  private static final long MOST_DIRECT = 224 << 10; // above, halving takes no longer

  // If nodes may send their sums straight to the others. Above both, that is faster than the calls.
  private static final int MOST_CARRIED_OF_DIRECT = 8 << 10;
  private static final long MOST_CARRIED_A_NODE = 1 << 10;

  // Contributions of all ranks, in rank order: so many on any nodes, or so many and more for each
  // round. Above both, a separate exchange is faster.
  private static final long CARRIED_ON_ANY_NODES = 80_000;
  private static final long CARRIED_BEFORE_ROUNDS = 40_000;
  private static final long CARRIED_A_ROUND = 30_000;
  private static final long CARRIED_A_ROUND_OF_OTHERS = 22_000; // no power of 2; leaders send more
  private static final long MOST_BY_EXCHANGE = 2 << 20;
  private static final long EXCHANGED_A_PAIR = 2 << 10; // above, a chain is better on slow links
  private static final int MAX_EXCHANGED_COLUMN = 256 << 10; // of all contributions of a node
  private static final int MAX_PIECES = 16; // of a gathered block
  private static final int CHUNKS_A_PIECE = 8; // at least
  private static final int CHUNKS_A_HOP = 16; // of a broadcast
  private static final int MAX_PIECE_BYTES = 16 << 20;
  private static final int MOST_COLLECTED = 16 << 10; // then copying takes as long as messages
  private static final double COPIES = 1.25; // of what is passed on, as a share of its time
  private static final double ADDED = 20_000; // bytes a microsecond, by a core of the model
  private static final double NEVER = Double.POSITIVE_INFINITY;
  private static final double LINK = 12_500; // bytes a microsecond, of the model

  /** The ways. */
  enum Way {
    /** With the calls of the rendezvous. */
    CALLS,
    /** See {@link DirectSumsPlan}. */
    DIRECT_SUMS,
    /** See {@link HalvingPlan}. */
    HALVING,
    /** See {@link ExchangePlan}. */
    EXCHANGE,
    /** See {@link RunningSumPlan} and {@link ScatteredSumPlan}. */
    RUNNING_SUM,
    /** By messages between all ranks; only if the nodes have equally many. */
    STRAIGHT
  }

  /**
   * The way of a buffer.
   *
   * @param element the size of an element
   * @param sum the size of an element's sum
   * @param ranks the number of ranks
   * @param shards the number of carriers of a node
   */
  Way way(SumOrder order, int nodes, long count, int element, int sum, int ranks, int shards) {
    if (order == SumOrder.RANKS) {
      return inRankOrder(nodes, count * element, ranks, shards);
    }
    boolean direct = ranks == nodes * shards && directTakesLess(nodes, count * sum);
    long carried = Math.max(MOST_CARRIED_OF_DIRECT, nodes * MOST_CARRIED_A_NODE);
    carried = direct ? Math.min(carried, GatheredCalls.MAX_SUM) : GatheredCalls.MAX_SUM;
    if (carries && count * sum <= carried) {
      return Way.CALLS;
    }
    if (direct) {
      return Way.DIRECT_SUMS;
    }
    return halves(nodes, count, sum, shards) ? Way.HALVING : Way.RUNNING_SUM;
  }

  /** Whether one round of more bytes takes less time than the rounds of halving. */
  private boolean directTakesLess(int nodes, long bytes) {
    long more = (nodes - 1) * bytes - 2 * (nodes - 1) * bytes / nodes;
    long saved = 2 * HalvingRounds.count(nodes) - 1; // rounds
    return directBytes > 0 && bytes <= MOST_DIRECT && more <= saved * directBytes;
  }

  private Way inRankOrder(int nodes, long bytes, int ranks, int shards) {
    long aRound = Integer.bitCount(nodes) == 1 ? CARRIED_A_ROUND : CARRIED_A_ROUND_OF_OTHERS;
    long carried = CARRIED_BEFORE_ROUNDS + LeaderRounds.count(nodes) * aRound;
    if (carries
        && bytes <= GatheredCalls.payloadBytes(ranks)
        && ranks * bytes <= Math.max(CARRIED_ON_ANY_NODES, carried)) {
      return Way.CALLS;
    }
    long exchanged = (shards + 1) * bytes * (nodes - 1) / nodes;
    long passed = Math.min(2, nodes - 1) * bytes;
    boolean fits = bytes <= MOST_BY_EXCHANGE && exchanged - passed <= (long) exchangeBytes * nodes;
    boolean hasFewHops = carries && (nodes == 2 || bytes > EXCHANGED_A_PAIR * nodes * nodes);
    return exchangeBytes > 0 && fits && !hasFewHops ? Way.EXCHANGE : Way.RUNNING_SUM;
  }

  /**
   * How contributions are exchanged: with the base that takes the least time if a round takes 6
   * microseconds, a message 1, and a link carries 12.5 GB a second.
   *
   * @param columns as {@link #exchanged} divides the buffer
   * @param element the size of an element
   */
  static ExchangeRounds exchange(int nodes, Shards columns, int element) {
    ExchangeRounds best = new ExchangeRounds(nodes, 2);
    int most = HalvingRounds.count(nodes);
    for (int rounds = 1; rounds <= most; rounds++) {
      int base = 2;
      while (power(base, rounds) < nodes) {
        base++;
      }
      ExchangeRounds next = new ExchangeRounds(nodes, base);
      best = time(next, columns, element) < time(best, columns, element) ? next : best;
    }
    return best;
  }

  private static double time(ExchangeRounds rounds, Shards columns, int element) {
    double others = rounds.base() - 1;
    double moved = others / rounds.base() * columns.count() * element * columns.ranks();
    return rounds.count() * (6 + others * columns.chunks() + moved / LINK);
  }

  /**
   * The way of a reduce-scatter of nodes with equally many ranks: what takes the least time by the
   * model, in which a hop takes 6 microseconds and a message 1.
   *
   * @param count the number of elements of a rank's input
   * @param element the size of an element
   * @param sum the size of an element's sum
   * @param shards the number of ranks of each node
   */
  Way scatter(SumOrder order, int nodes, long count, int element, int sum, int shards) {
    boolean inOrder = order == SumOrder.RANKS;
    if (inOrder && inRankOrder(nodes, count * element, nodes * shards, shards) == Way.CALLS) {
      return Way.CALLS;
    }
    long bytes = count * element;
    double passed = passed(order, nodes, count, element, sum, shards);
    double share = (nodes - 1.) / nodes;
    double moved = shards * share * bytes / LINK;
    double straight = 6 + Math.max((nodes - 1) * shards, moved) + bytes / ADDED;
    double busy = 6 + share * nodes * shards * shards + moved; // if the ranks share a core
    boolean passes = !carries || passed < (inOrder ? busy : straight);
    double inRounds =
        inOrder ? exchanged(nodes, count, element, shards) : halved(nodes, count, sum, shards);
    boolean fits = carries && !inOrder && count * sum <= GatheredCalls.MAX_SUM;
    double others = Math.min(inRounds, Math.min(straight, passed));
    if (fits && carried(nodes, count * sum, shards) < others) {
      return Way.CALLS;
    }
    if (inRounds < (!carries ? NEVER : passes ? passed : straight)) {
      return inOrder ? Way.EXCHANGE : Way.HALVING;
    }
    return passes ? Way.RUNNING_SUM : Way.STRAIGHT;
  }

  /** The time of a reduce-scatter by running sums. Those in any order fill all links early. */
  private double passed(SumOrder order, int nodes, long count, int element, int sum, int shards) {
    boolean inOrder = order == SumOrder.RANKS;
    long block = count / nodes / shards;
    long most =
        inOrder
            ? maxChunk(order, nodes) / sum
            : scattered(order, nodes, block, sum, shards).chunk();
    double hops = (nodes - 1) * (6 + (double) shards * Math.min(block, most) * sum / LINK);
    double summed = count * sum / LINK;
    if (inOrder) {
      return 6 + hops + summed + (nodes == 2 ? 0 : count * element / nodes / LINK);
    }
    double moved = summed * (nodes - 1) / nodes;
    return Math.max(moved, hops + moved / 4);
  }

  /** The time of a reduce-scatter in rank order by an exchange. */
  private double exchanged(int nodes, long count, int element, int shards) {
    if (exchangeBytes == 0 || count * element > MOST_BY_EXCHANGE) {
      return NEVER;
    }
    Shards columns = ofBlocks(exchanged(count, element, shards), nodes);
    ExchangeRounds rounds = exchange(nodes, columns, element);
    double others = (double) rounds.count() * (rounds.base() - 1);
    double moved = others / rounds.base() * shards * count * element / LINK;
    double added = count * element / ADDED;
    return rounds.count() * 6 + Math.max(others * columns.chunks(), moved) + added;
  }

  /**
   * The time of a reduce-scatter in any order with the calls, beside their own: a rank's input is
   * on a link in each round, and copied and added as often as that takes the rest.
   */
  private static double carried(int nodes, long bytes, int shards) {
    return (4.5 * LeaderRounds.count(nodes) + shards + 3) * bytes / LINK;
  }

  /** The time of a reduce-scatter in any order by halving. */
  private double halved(int nodes, long count, int sum, int shards) {
    if (halvingBytes == 0 || shard(count, shards) * sum > MOST_BY_HALVING) {
      return NEVER;
    }
    double moved = (double) count * sum * (nodes - 1) / nodes / LINK;
    int columns = columns(count, sum, shards).chunks();
    return HalvingRounds.count(nodes) * (6 + columns) + moved;
  }

  private boolean halves(int nodes, long count, int sum, int shards) {
    return shard(count, shards) * sum <= Math.min((long) halvingBytes * nodes, MOST_BY_HALVING);
  }

  /** Columns that have as many elements of the block of each node. */
  static Shards ofBlocks(Shards columns, int nodes) {
    long ofBlock = Math.max(1, columns.chunk() / nodes);
    return new Shards(columns.count(), columns.ranks(), ofBlock * nodes);
  }

  /** Whether blocks of an all-to-all are so small that those of a node travel together. */
  static boolean collects(long blockBytes) {
    return blockBytes <= MOST_COLLECTED;
  }

  /**
   * Whether blocks of an all-to-all pass other nodes on their way, which takes fewer messages than
   * straight to their nodes, and more bytes and copies.
   *
   * @param input of a node's ranks, in one column
   * @param element the size of an element
   */
  static boolean passesBlocksOn(int nodes, Shards input, int element) {
    double straight = time(new ExchangeRounds(nodes, nodes), input, element);
    return COPIES * time(exchange(nodes, input, element), input, element) < straight;
  }

  /**
   * Whether blocks are gathered in log M rounds, and not in M-1 messages: what takes less time by
   * the model, in which a round takes 6 microseconds and a message 1.
   *
   * @param blockBytes the size of a rank's block
   * @param shards the number of ranks of each node
   */
  static boolean gathersInRounds(int nodes, long blockBytes, int shards) {
    double moved = shards * (nodes - 1.) * blockBytes;
    return HalvingRounds.count(nodes) * 6 + moved / LINK < nodes - 1;
  }

  /**
   * The blocks of a node's ranks, in pieces that are gathered.
   *
   * @param element the size of an element
   */
  Shards pieces(long block, int element, int shards) {
    long bytes = Long.highestOneBit(Math.max(1, block * element / MAX_PIECES)) * 2;
    long piece = Math.min(MAX_PIECE_BYTES, Math.max((long) chunkBytes * CHUNKS_A_PIECE, bytes));
    return new Shards(block * shards, shards, piece / element);
  }

  /**
   * The shards of carriers, in the chunks of a broadcast: so many that filling the trees takes
   * little time.
   *
   * @param element the size of an element
   */
  Shards broadcast(int nodes, long count, int element, int shards) {
    long most = shard(count, shards) * element / CHUNKS_A_HOP / HalvingRounds.count(nodes);
    long chunk = Math.max(Math.min(MIN_CHUNK_BYTES, chunkBytes), Long.highestOneBit(most));
    return new Shards(count, shards, Math.min(chunkBytes, chunk) / element);
  }

  /**
   * The blocks of a node's ranks, in the chunks of a running sum that is scattered.
   *
   * @param sum the size of an element's sum
   */
  Shards scattered(SumOrder order, int nodes, long block, int sum, int shards) {
    long chunk = chunks(order, nodes, block * nodes * shards, sum, shards).chunk();
    return new Shards(block * shards, shards, chunk);
  }

  private static long power(int base, int exponent) {
    long power = 1;
    for (int i = 0; i < exponent; i++) {
      power *= base;
    }
    return power;
  }

  private static long shard(long count, int shards) {
    return parts(count, shards);
  }

  /** How many parts of at most this size there are. */
  private static long parts(long size, long most) {
    return (size - 1) / most + 1;
  }

  /** Shards in equal parts, so that all nodes and slots have as much to do. */
  private static Shards equal(long count, int shards, long parts) {
    return new Shards(count, shards, parts(shard(count, shards), parts));
  }

  /**
   * The shards of carriers, in the chunks of a running sum.
   *
   * @param sum the size of an element's sum
   */
  Shards chunks(SumOrder order, int nodes, long count, int sum, int shards) {
    long shard = shard(count, shards) * sum;
    long most = maxChunk(order, nodes);
    if (order == SumOrder.RANKS) {
      long bytes = Long.highestOneBit(Math.max(1, chunkOfChain(nodes, shard, shards)));
      return new Shards(count, shards, Math.min(most, Math.max(MIN_CHUNK_OF_CHAIN, bytes)) / sum);
    }
    long least = Math.min(MIN_CHUNK_BYTES, most);
    long perNode = Math.min(CHUNKS_A_NODE, Math.round((double) shard / (nodes * least)));
    perNode = Math.max(perNode, parts(shard, nodes * most));
    return equal(count, shards, shard < nodes * least ? parts(shard, least) : perNode * nodes);
  }

  /**
   * The chunk that takes the least time on a chain: each chunk costs its four messages, 2
   * microseconds, and each of M-1 hops the time for which a chunk of all carriers is on a link,
   * beside results, and added: 0.26 nanoseconds a byte.
   */
  private static long chunkOfChain(int nodes, long shard, int shards) {
    double hops = Math.max(1, nodes - 1);
    return Math.round(Math.sqrt(2 * shard * 2_000 / (hops * 0.26 * shards)));
  }

  /** The maximum size of a chunk's running sum: less on many nodes, whose carriers hold more. */
  long maxChunk(SumOrder order, int nodes) {
    long share = Long.highestOneBit(MAX_SCRATCH_BYTES / SumPlan.slots(order, nodes));
    return Math.min(chunkBytes, Math.max(MIN_CHUNK_BYTES, share));
  }

  /**
   * The shards of carriers, in columns that are halved one beside the other.
   *
   * @param sum the size of an element's sum
   */
  Shards columns(long count, int sum, int shards) {
    long bytes = shard(count, shards) * sum;
    long most = parts(bytes, Math.min(MIN_COLUMN_BYTES, chunkBytes));
    long turns = parts(bytes, ColumnSteps.SLOTS * maxColumn()); // of all slots
    return equal(count, shards, Math.min(most, turns * ColumnSteps.SLOTS));
  }

  /**
   * The shards of carriers, in chunks whose node sums all nodes get.
   *
   * @param sum the size of an element's sum
   */
  Shards directSums(long count, int sum, int shards) {
    long most = parts(shard(count, shards) * sum, MIN_CHUNK_BYTES);
    return equal(count, shards, Math.min(most, CHUNKS_OF_DIRECT));
  }

  /**
   * The shards of carriers, in columns whose contributions are exchanged.
   *
   * @param element the size of an element
   */
  Shards exchanged(long count, int element, int shards) {
    long bytes = Long.highestOneBit(Math.max(1, shard(count, shards) * element / 2));
    long column = Math.max(Math.min(MIN_COLUMN_BYTES, chunkBytes), bytes);
    long most = Math.max(Long.BYTES, Integer.highestOneBit(MAX_EXCHANGED_COLUMN / shards));
    return new Shards(count, shards, Math.min(most, column) / element);
  }

  /** The maximum size of a column's sums. */
  long maxColumn() {
    return (long) chunkBytes * (MAX_COLUMN_BYTES / MAX_CHUNK_BYTES);
  }
}
