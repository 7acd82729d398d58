package org.gradientsync.core.collectives.messages;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.ranks.GroupTransport;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.Message;

/**
 * Messages for runs of a device buffer's elements. If a run is not contiguous (at the border of two
 * segments of a host buffer beyond 1 GiB), its message goes through a bounce buffer.
 */
public final class BufferMessages {
  private BufferMessages() {}

  /** The memory of a run, which its messages may share; null if it is not contiguous. */
  public static ByteBuffer view(DeviceBuffer run) {
    return ((AbstractDeviceBuffer) run).nativeView(0, run.count());
  }

  /**
   * Prepares to send a run's elements to a rank, or to receive them.
   *
   * @param view the run's {@link #view}
   */
  public static Message message(
      GroupTransport group,
      DeviceBuffer run,
      ByteBuffer view,
      int peer,
      int channel,
      boolean sends) {
    ByteBuffer memory = view != null ? view : HostBuffers.allocate((int) run.sizeInBytes());
    Message message =
        sends ? group.sender(memory, peer, channel) : group.receiver(memory, peer, channel);
    return view != null
        ? message
        : new BouncedMessage(message, (AbstractDeviceBuffer) run, memory, sends);
  }

  /** Starts the messages to or from all ranks; null where there is none. */
  static void start(Message[] messages) {
    for (Message message : messages) {
      if (message != null) {
        message.start();
      }
    }
  }

  /** Waits for the messages to or from all ranks; null where there is none. */
  static void await(ProcessGroup group, Message[] messages) {
    for (int peer = 0; peer < messages.length; peer++) {
      if (messages[peer] != null) {
        group.await(messages[peer], peer);
      }
    }
  }

  private static final class BouncedMessage implements Message {
    private final Message inner;
    private final AbstractDeviceBuffer run;
    private final ByteBuffer bounce;
    private final boolean sends;
    private boolean pending;

    BouncedMessage(Message inner, AbstractDeviceBuffer run, ByteBuffer bounce, boolean sends) {
      this.inner = inner;
      this.run = run;
      this.bounce = bounce.duplicate().order(ByteOrder.nativeOrder());
      this.sends = sends;
    }

    @Override
    public void start() {
      if (sends) {
        run.copyToUnintercepted(bounce);
      }
      pending = true;
      inner.start();
    }

    @Override
    public boolean test() {
      if (!inner.test()) {
        return false;
      }
      if (pending && !sends) {
        run.copyFromUnintercepted(bounce);
      }
      pending = false;
      return true;
    }

    @Override
    public void close() {
      inner.close();
    }
  }
}
