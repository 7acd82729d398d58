package org.gradientsync.core.host;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.BooleanSupplier;

/**
 * Small pieces of shared memory, many of which lie in one file: a process can have some 65,000
 * mappings, and a model has more tensors. A file, here called a block, has pieces of one size, a
 * power of two. It is deleted with the last of its pieces.
 */
final class SharedBlocks {
  /** The maximum size of a piece. */
  static final int MAX_BYTES = 64 << 10;

  /** The maximum size of a block. */
  static final int MAX_BLOCK_BYTES = 512 << 10;

  private static final int MIN_BLOCK_BYTES = 64 << 10;
  private static final int MIN_BYTES = 64; // a cache line
  private static final int PIECES = 256; // in a block, approximately

  /** Creates the file of a block. */
  interface Maker {
    HostMemory make(int bytes) throws IOException;
  }

  private final Maker maker;
  private final BooleanSupplier keep;
  private final List<Set<Block>> withRoom =
      new ArrayList<>(); // blocks with free pieces, by the pieces' size

  private static final class Block {
    private final HostMemory memory;
    private final int pieceBytes;
    private final int pieces;
    private final BitSet taken = new BitSet();

    Block(HostMemory memory, int pieceBytes, int bytes) {
      this.memory = memory;
      this.pieceBytes = pieceBytes;
      this.pieces = bytes / pieceBytes;
    }

    boolean isFull() {
      return taken.cardinality() == pieces;
    }
  }

  /**
   * @param maker creates files of zeros
   * @param keep whether other processes may still read released pieces
   */
  SharedBlocks(Maker maker, BooleanSupplier keep) {
    this.maker = maker;
    this.keep = keep;
    for (int size = MIN_BYTES; size <= MAX_BYTES; size *= 2) {
      withRoom.add(new LinkedHashSet<>());
    }
  }

  /**
   * Takes a piece.
   *
   * @param bytes from 1 to {@link #MAX_BYTES}
   * @return zeros
   * @throws IOException if there is no room for another block
   */
  synchronized HostMemory take(int bytes) throws IOException {
    int pieceBytes = Math.max(MIN_BYTES, Integer.highestOneBit(2 * bytes - 1));
    Set<Block> blocks = withRoomFor(pieceBytes);
    if (blocks.isEmpty()) {
      int size = Math.min(MAX_BLOCK_BYTES, Math.max(MIN_BLOCK_BYTES, PIECES * pieceBytes));
      blocks.add(new Block(maker.make(size), pieceBytes, size));
    }
    Block block = blocks.iterator().next();
    int piece = block.taken.nextClearBit(0);
    block.taken.set(piece);
    if (block.isFull()) {
      blocks.remove(block);
    }
    int first = piece * pieceBytes;
    ByteBuffer whole = block.memory.segment(0);
    HostBuffers.fillZero(whole, first, pieceBytes); // it may have been used before
    ByteBuffer memory = whole.slice(first, bytes).order(ByteOrder.nativeOrder());
    return new HostMemory(
        new ByteBuffer[] {memory}, block.memory.id(), first, () -> giveBack(block, piece));
  }

  private synchronized void giveBack(Block block, int piece) {
    Set<Block> blocks = withRoomFor(block.pieceBytes);
    block.taken.clear(piece);
    if (block.taken.isEmpty()) {
      blocks.remove(block);
      block.memory.release();
    } else if (keep.getAsBoolean()) {
      blocks.remove(block); // its pieces are not reused
    } else {
      blocks.add(block);
    }
  }

  private Set<Block> withRoomFor(int pieceBytes) {
    return withRoom.get(Integer.numberOfTrailingZeros(pieceBytes / MIN_BYTES));
  }
}
