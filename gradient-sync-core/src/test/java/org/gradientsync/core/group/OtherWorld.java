package org.gradientsync.core.group;

import java.nio.ByteBuffer;
import java.util.function.IntUnaryOperator;
import org.gradientsync.core.local.LocalWorld;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.Message;
import org.gradientsync.spi.Transport;

/** A second transport for the ranks of a {@link LocalRanks#run}, whose methods tests override. */
public class OtherWorld implements Transport {
  /** A message whose methods tests override. */
  public static class OtherMessage implements Message {
    private final Message inner;

    public OtherMessage(Message inner) {
      this.inner = inner;
    }

    @Override
    public void start() {
      inner.start();
    }

    @Override
    public boolean test() {
      return inner.test();
    }

    @Override
    public void close() {
      inner.close();
    }
  }

  private static final int APART = 1 << 22; // separates its tags from those of the ranks' own world

  private final Transport inner;
  private final IntUnaryOperator nodes;

  public OtherWorld() {
    this(LocalWorld.current().orElseThrow().transport());
  }

  /**
   * @param nodes the node of each rank
   */
  public OtherWorld(IntUnaryOperator nodes) {
    this(LocalWorld.current().orElseThrow().transport(), nodes);
  }

  /**
   * @param inner carries its messages, with other tags
   */
  public OtherWorld(Transport inner) {
    this(inner, inner::nodeOf);
  }

  /**
   * @param inner carries its messages, with other tags
   * @param nodes the node of each rank
   */
  public OtherWorld(Transport inner, IntUnaryOperator nodes) {
    this.inner = inner;
    this.nodes = nodes;
  }

  /** A message with an action that runs before each start of it. */
  public static Message beforeStarts(Message message, Runnable action) {
    return new OtherMessage(message) {
      @Override
      public void start() {
        action.run();
        super.start();
      }
    };
  }

  @Override
  public String name() {
    return inner.name();
  }

  @Override
  public int rank() {
    return inner.rank();
  }

  @Override
  public int size() {
    return inner.size();
  }

  @Override
  public int nodeOf(int rank) {
    return nodes.applyAsInt(rank);
  }

  @Override
  public Message sender(ByteBuffer memory, int peer, int tag) {
    return inner.sender(memory, peer, tag | APART);
  }

  @Override
  public Message receiver(ByteBuffer memory, int peer, int tag) {
    return inner.receiver(memory, peer, tag | APART);
  }

  @Override
  public void close() {
    // the ranks close their own world
  }
}
