package org.gradientsync.spi;

import java.util.List;

/**
 * A reducer that hands its calls to another one. A subclass overrides the methods for the calls
 * that it makes itself. This class does not forward {@link #fuse}, nor the methods that describe a
 * reducer, such as {@link #blocksHost}.
 *
 * @param <R> the type of the reducer that gets the calls
 */
public abstract class ForwardingReducer<R extends Reducer> implements Reducer {
  /** The reducer that gets the calls. */
  public final R other;

  /**
   * Creates a reducer.
   *
   * @param other the reducer that gets the calls; it is closed with this one, unless the subclass
   *     overrides {@link #close}
   */
  protected ForwardingReducer(R other) {
    this.other = other;
  }

  @Override
  public String name() {
    return other.name();
  }

  @Override
  public void run(CollectiveCall call) {
    other.run(call);
  }

  @Override
  public void prepare(CollectiveCall call) {
    other.prepare(call);
  }

  @Override
  public void exchange(List<CollectiveCall> messages) {
    other.exchange(messages);
  }

  @Override
  public void check(boolean together) {
    other.check(together);
  }

  @Override
  public List<String> state() {
    return other.state();
  }

  @Override
  public void close() {
    other.close();
  }
}
