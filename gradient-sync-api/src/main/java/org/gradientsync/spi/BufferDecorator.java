package org.gradientsync.spi;

import java.util.function.Consumer;
import org.gradientsync.DeviceBuffer;

/**
 * A buffer around a buffer, which has its say at each call of a sync that it is given to: for tests
 * in which something goes wrong on purpose.
 */
public interface BufferDecorator extends DeviceBuffer {
  /**
   * Makes one call of a sync. Asked for by {@code allReduce}, {@code average}, {@code broadcast}
   * and {@code register}, once for each call, on the thread that makes it and before any lock is
   * taken.
   *
   * @param call makes the call with the buffer that it is given; not called if the call is not to
   *     be made
   */
  void call(Consumer<DeviceBuffer> call);
}
