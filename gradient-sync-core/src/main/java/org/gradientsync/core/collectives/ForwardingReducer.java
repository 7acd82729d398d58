package org.gradientsync.core.collectives;

import java.util.List;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.Reducer;

/**
 * A reducer that hands its calls to another one. A subclass overrides the methods for the calls
 * that it makes itself.
 *
 * @param <R> the type of the other one
 */
public abstract class ForwardingReducer<R extends Reducer> implements Reducer {
  public final R other;

  /**
   * @param other the subclass closes it
   */
  public ForwardingReducer(R other) {
    this.other = other;
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
}
