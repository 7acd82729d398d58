package org.gradientsync.collective;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import org.gradientsync.DataType;
import org.gradientsync.ReduceOp;
import org.gradientsync.host.HostElement;
import org.gradientsync.spi.AbstractDeviceBuffer;

/**
 * What a rank asks for in one call, as the other ranks are told: fixed fields of eight bytes, in
 * the machine's byte order, so that comparing two calls is comparing two pieces of memory.
 */
final class Call {
  /** The calls there are. */
  enum Kind {
    ALL_REDUCE("allReduce"),
    BROADCAST("broadcast"),
    REGISTER("register"),
    BARRIER("barrier"),
    HOST_BROADCAST("communicator.broadcast"),
    ALL_GATHER("communicator.allGather"),
    REDUCE_SCATTER("communicator.reduceScatter"),
    HOST_ALL_REDUCE("communicator.allReduce"),
    GATHER("communicator.gather"),
    SCATTER("communicator.scatter"),
    CREATE("GradientSync.create"),
    SPLIT("communicator.split"),
    SEND("communicator.send"),
    RECEIVE("communicator.receive");

    private final String text;

    Kind(String text) {
      this.text = text;
    }
  }

  /** The size of a call on the wire. */
  static final int BYTES = 128;

  /**
   * The part that must be the same on all ranks; behind it stands what is a rank's own: where its
   * buffer lies, what it has enqueued on its device, what it has found in the buffer; and the
   * buffer's name, which must be the same on all ranks that have given it one.
   */
  private static final int COMPARED = 48;

  private static final int MEMORY_ID = 48;
  private static final int MEMORY_OFFSET = 56;
  private static final int ENQUEUED = 64;
  private static final int NOT_FINITE = 72;
  private static final int NAME = 80;

  private static final int NAME_BYTES = AbstractDeviceBuffer.NAME_BYTES;

  /** For {@link #root} in calls that have none. */
  static final int NO_ROOT = -1;

  private static final Kind[] KINDS = Kind.values();
  private static final ReduceOp[] OPS = ReduceOp.values();
  private static final DataType[] TYPES = DataType.values();
  private static final HostElement[] ELEMENTS = HostElement.values();
  private static final int NONE = -1;
  private static final int FIRST_ELEMENT = 100;

  private Call() {}

  /** The element code of a data type. */
  static int element(DataType type) {
    return type == null ? NONE : type.ordinal();
  }

  /** The element code of a Java buffer. */
  static int element(Buffer data) {
    return FIRST_ELEMENT + HostElement.of(data).ordinal();
  }

  static void write(
      ByteBuffer target, long sequence, Kind kind, int element, long count, ReduceOp op, int root) {
    target.putLong(0, kind.ordinal());
    target.putLong(8, element);
    target.putLong(16, count);
    target.putLong(24, op == null ? NONE : op.ordinal());
    target.putLong(32, root);
    target.putLong(40, sequence);
  }

  /** Adds where the buffer lies, for ranks that share memory. */
  static void writePlace(ByteBuffer target, long memoryId, long memoryOffset) {
    target.putLong(MEMORY_ID, memoryId);
    target.putLong(MEMORY_OFFSET, memoryOffset);
  }

  static long memoryId(ByteBuffer call) {
    return call.getLong(MEMORY_ID);
  }

  static long memoryOffset(ByteBuffer call) {
    return call.getLong(MEMORY_OFFSET);
  }

  /**
   * Adds what is this rank's own.
   *
   * @param enqueued how many calls this rank has enqueued on its device that did not meet on the
   *     host, or a negative number if it cannot tell
   * @param notFinite the index of an element that is not a number, or a negative number
   * @param buffer whose name is added, or null
   */
  static void writeOwn(
      ByteBuffer target, long enqueued, long notFinite, AbstractDeviceBuffer buffer) {
    target.putLong(ENQUEUED, enqueued);
    target.putLong(NOT_FINITE, notFinite);
    if (buffer != null) {
      target.put(NAME, buffer.nameBytes(), 0, NAME_BYTES);
      return;
    }
    for (int i = NAME; i < NAME + NAME_BYTES; i += 8) {
      target.putLong(i, 0);
    }
  }

  static String name(ByteBuffer call) {
    return ShortText.get(call, NAME, NAME_BYTES);
  }

  static long notFinite(ByteBuffer call) {
    return call.getLong(NOT_FINITE);
  }

  /** Whether two ranks have enqueued the same number of calls, as far as they can tell. */
  static boolean sameEnqueued(ByteBuffer a, ByteBuffer b) {
    return a.getLong(ENQUEUED) == b.getLong(ENQUEUED)
        || a.getLong(ENQUEUED) < 0
        || b.getLong(ENQUEUED) < 0;
  }

  static long enqueued(ByteBuffer call) {
    return call.getLong(ENQUEUED);
  }

  static long sequence(ByteBuffer call) {
    return call.getLong(40);
  }

  /** Whether a sender's call and a receiver's fit together. */
  static boolean samePair(ByteBuffer a, ByteBuffer b) {
    return count(a) == count(b) && element(a) == element(b);
  }

  /** Turns a call into what its rank thinks of all calls that it has been told. */
  static void writeVerdict(ByteBuffer call, boolean fits) {
    call.putLong(40, fits ? 1 : 0);
  }

  static boolean verdict(ByteBuffer call) {
    return call.getLong(40) == 1;
  }

  /** Whether two ranks ask for the same, whatever their buffers are called. */
  static boolean same(ByteBuffer a, ByteBuffer b) {
    for (int i = 0; i < COMPARED; i += 8) {
      if (a.getLong(i) != b.getLong(i)) {
        return false;
      }
    }
    return true;
  }

  /** Whether it is about a buffer that its rank has given a name. */
  static boolean hasName(ByteBuffer call) {
    return call.get(NAME) != 0;
  }

  /** Whether two ranks have given their buffers the same name, if both have given one. */
  static boolean sameName(ByteBuffer a, ByteBuffer b) {
    if (!hasName(a) || !hasName(b)) {
      return true;
    }
    for (int i = NAME; i < NAME + NAME_BYTES; i += 8) {
      if (a.getLong(i) != b.getLong(i)) {
        return false;
      }
    }
    return true;
  }

  /** The kind of a call, or null if the memory holds none. */
  static Kind kind(ByteBuffer call) {
    long kind = call.getLong(0);
    return kind >= 0 && kind < KINDS.length ? KINDS[(int) kind] : null;
  }

  static long count(ByteBuffer call) {
    return call.getLong(16);
  }

  static long element(ByteBuffer call) {
    return call.getLong(8);
  }

  /** A call as a user reads it: {@code allReduce(FLOAT32[1000] "w1", AVERAGE), call=7}. */
  static String describe(ByteBuffer call) {
    Kind kind = kind(call);
    if (kind == null) {
      return "an unknown call (another version of this library?)";
    }
    StringBuilder text = new StringBuilder(kind.text).append('(');
    long element = element(call);
    if (element >= 0 && element < TYPES.length) {
      text.append(TYPES[(int) element]).append('[').append(count(call)).append(']');
    } else if (element >= FIRST_ELEMENT && element < FIRST_ELEMENT + ELEMENTS.length) {
      text.append(ELEMENTS[(int) element - FIRST_ELEMENT])
          .append('[')
          .append(count(call))
          .append(']');
    }
    String name = name(call);
    if (!name.isEmpty()) {
      text.append(" \"").append(name).append('"');
    }
    long op = call.getLong(24);
    if (op >= 0 && op < OPS.length) {
      text.append(", ").append(OPS[(int) op]);
    }
    if (call.getLong(32) != NO_ROOT) {
      text.append(kind == Kind.SEND || kind == Kind.RECEIVE ? ", tag=" : ", root=")
          .append(call.getLong(32));
    }
    text.append(')');
    return (call.getLong(40) > 0 ? text.append(", call=").append(call.getLong(40)) : text)
        .toString();
  }
}
