package org.gradientsync.internal.collectives;

import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.spi.Collective;
import org.gradientsync.spi.PeerMessage;
import org.gradientsync.spi.Reducer;

/**
 * A reducer of whose calls another one runs those that a subclass does not override.
 *
 * @param <R> the type of the other one
 */
abstract class ForwardingReducer<R extends Reducer> implements Reducer {
  final R other;

  /**
   * @param other the subclass closes it
   */
  ForwardingReducer(R other) {
    this.other = other;
  }

  @Override
  public void allReduce(DeviceBuffer buffer, ReduceOp op) {
    other.allReduce(buffer, op);
  }

  @Override
  public void broadcast(DeviceBuffer buffer, int root) {
    other.broadcast(buffer, root);
  }

  @Override
  public void run(Collective collective, DeviceBuffer in, DeviceBuffer out, ReduceOp op, int root) {
    other.run(collective, in, out, op, root);
  }

  @Override
  public void send(DeviceBuffer buffer, int peer) {
    other.send(buffer, peer);
  }

  @Override
  public void receive(DeviceBuffer buffer, int peer) {
    other.receive(buffer, peer);
  }

  @Override
  public void exchange(List<PeerMessage> messages) {
    other.exchange(messages);
  }

  @Override
  public void register(DeviceBuffer buffer) {
    other.register(buffer);
  }

  @Override
  public void check(boolean together) {
    other.check(together);
  }
}
