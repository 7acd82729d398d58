package org.gradientsync.core.rendezvous;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.gradientsync.DataType;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.core.backend.ShortText;
import org.gradientsync.core.host.HostBuffer;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.HostCall;
import org.gradientsync.spi.HostElement;
import org.gradientsync.spi.RankGroup;

/**
 * What a rank asks for in one call, in the form that it sends to other ranks: fixed fields of eight
 * bytes in native byte order. Two calls are compared by comparing memory.
 */
public final class CallRecord {
  /** Which method of the API a call comes from. Calls of two origins never match. */
  public enum Origin {
    SYNC(""), // on device buffers, and a barrier
    FIRST_BUCKET(""), // of a step, if all ranks must have as many steps
    LATER_BUCKET(""), // of such a step, and any weights that are gathered
    UNEVEN_BUCKET(""), // of a step that ranks may have alone
    COUNTS(""), // on device buffers, with a count for each block
    COMMUNICATOR("communicator."), // on host memory
    REGISTER("register"), // preparing a call, of any kind
    CREATE("GradientSync.create"),
    SYNC_SPLIT("split"),
    COMMUNICATOR_SPLIT("communicator.split"),

    // From here on, what consists of several exchanges, whose elements the program does not know.
    MEAN("mean"),
    AVERAGE_ROWS("average"),
    BUILD_BUCKETS("GradientBuckets.build"),
    REBUILD_BUCKETS("GradientBuckets.rebuild"),
    CLIP("GradientBuckets.clipByGlobalNorm"),
    IS_FINITE("GradientBuckets.isFinite"),
    STOP_REQUESTED("GradientBuckets.stopRequested"),
    DISCARD("discard"),
    UPDATE_THROWN("the end of an update that has thrown");

    private final String text;

    Origin(String text) {
      this.text = text;
    }
  }

  public static final int BYTES = 200; // the size of a call in a message
  private static final long NOWHERE = -1; // the memory id of a buffer that no other rank can map
  private static final long INLINE = -2; // the memory id of elements that travel with the call
  private static final long SUMMED = -3; // the memory id of elements that are summed on the way

  // The size of the part that must be the same on all ranks. A rank's own fields follow: what it
  // has enqueued on its device, what it has found in the buffer, and where that lies. Then the
  // names of its input and its output, either of which may be missing. Names, and offsets in named
  // buffers, must be the same on all ranks that give them. Names are compared by a hash; their text
  // is for error messages.
  private static final int COMPARED = 32;
  private static final int KIND = 0;
  private static final int ELEMENT = 4;
  private static final int COUNT = 8;
  private static final int OP = 16; // or the tag of a message on host memory
  private static final int ROOT = 20;
  private static final int SEQUENCE = 24;
  private static final int ENQUEUED = 32;
  private static final int NOT_FINITE = 40;
  private static final int MEMORY_ID = 48;
  private static final int MEMORY_OFFSET = 56;
  private static final int NAMES = 64; // a hash of what follows, without the texts
  private static final int NAME_HASH = 0; // in the name of the input or the output
  private static final int NAME_OFFSET = 8;
  private static final int NAME_TEXT = 16;
  private static final int NAME_BYTES = AbstractDeviceBuffer.NAME_BYTES;
  private static final int NAME_FIELDS = NAME_TEXT + NAME_BYTES;
  public static final int INPUT = 72; // the name of the input, or of the only buffer
  public static final int OUTPUT = INPUT + NAME_FIELDS;

  private static final int NO_ELEMENT = -1;
  private static final int NO_OP = HostCall.NO_TAG;
  private static final int FIRST_ELEMENT = 100;
  private static final int KIND_BITS = 8; // below the origin

  private CallRecord() {}

  public static ByteBuffer allocate() {
    return ByteBuffer.allocate(BYTES).order(ByteOrder.nativeOrder());
  }

  /**
   * Writes what all ranks compare, and this rank's own fields: for example how many calls it has
   * enqueued on its device without a rendezvous, negative if unknown. A registration matches any
   * operation.
   */
  public static void write(
      ByteBuffer target,
      long sequence,
      long enqueued,
      Origin origin,
      CollectiveCall call,
      int ranks) {
    long count = call.blockCount(ranks);
    if (call.in() instanceof AbstractDeviceBuffer in && in.isPadded()) {
      count = in.usedCount(); // which the program knows of
    }
    boolean any = origin == Origin.REGISTER;
    int op = call.op() == null || any ? NO_OP : call.op().ordinal();
    target.putInt(KIND, origin.ordinal() << KIND_BITS | call.kind().ordinal());
    target.putInt(ELEMENT, element(call));
    target.putLong(COUNT, count);
    target.putInt(OP, call instanceof HostCall host ? host.tag() : op);
    target.putInt(ROOT, any ? RankGroup.NO_RANK : call.root());
    target.putLong(SEQUENCE, sequence);
    target.putLong(ENQUEUED, enqueued);
    target.putLong(NOT_FINITE, -1);
    if (!call.kind().isMessage() && call.in() instanceof HostBuffer host) {
      writePlace(target, host.memoryId(), host.memoryOffset());
    } else {
      writePlace(target, NOWHERE, 0);
    }
    writeNames(target, call);
  }

  private static int element(CollectiveCall call) {
    if (call instanceof HostCall host) {
      Buffer data = host.hostBuffer();
      return data == null ? NO_ELEMENT : FIRST_ELEMENT + HostElement.of(data).ordinal();
    }
    return call.buffer() == null ? NO_ELEMENT : call.buffer().type().ordinal();
  }

  static void writePlace(ByteBuffer target, long memoryId, long memoryOffset) {
    target.putLong(MEMORY_ID, memoryId);
    target.putLong(MEMORY_OFFSET, memoryOffset);
  }

  /** Writes that the elements travel with the call, themselves or in sums. */
  static void writeCarried(ByteBuffer target, int bytes, boolean summed) {
    writePlace(target, summed ? SUMMED : INLINE, bytes);
  }

  static boolean isSummed(ByteBuffer call) {
    return memoryId(call) == SUMMED;
  }

  /** Whether two calls begin with the same bytes; the first one is at an index. */
  static boolean equal(ByteBuffer a, int at, ByteBuffer b, int bytes) {
    for (int i = 0; i < bytes; i += Long.BYTES) {
      if (a.getLong(at + i) != b.getLong(i)) {
        return false;
      }
    }
    return true;
  }

  /** The size of the elements that travel with the call, or 0. */
  static int inlineBytes(ByteBuffer call) {
    return memoryId(call) == INLINE ? (int) memoryOffset(call) : 0;
  }

  /** Whether other ranks read the elements of a rank in a call, which is at an index. */
  static boolean contributes(ByteBuffer call, int at, int rank) {
    int kind = call.getInt(at + KIND) & (1 << KIND_BITS) - 1;
    boolean ofRoot = kind == Kind.BROADCAST.ordinal() || kind == Kind.SCATTER.ordinal();
    return !ofRoot || call.getInt(at + ROOT) == rank;
  }

  public static long memoryId(ByteBuffer call) {
    return call.getLong(MEMORY_ID);
  }

  public static long memoryOffset(ByteBuffer call) {
    return call.getLong(MEMORY_OFFSET);
  }

  /** Adds the index of an element that is not finite, or a negative number. */
  public static void writeNotFinite(ByteBuffer target, long index) {
    target.putLong(NOT_FINITE, index);
  }

  /**
   * Adds the names of a call's buffers, and a hash of them. A rank's own block has no offset: it
   * may be a part of a buffer that all ranks have, at another place on each. It has no name if it
   * is a part of the call's other buffer. A message has one buffer, whose name both ranks give as
   * that of the input.
   */
  private static void writeNames(ByteBuffer target, CollectiveCall call) {
    Kind kind = call.kind();
    boolean message = kind.isMessage();
    AbstractDeviceBuffer in = (AbstractDeviceBuffer) (message ? call.buffer() : call.in());
    AbstractDeviceBuffer out = message ? null : (AbstractDeviceBuffer) call.out();
    boolean ownIn = kind == Kind.ALL_GATHER || kind == Kind.GATHER;
    boolean ownOut = kind == Kind.REDUCE_SCATTER || kind == Kind.SCATTER;
    boolean oneName =
        in != null
            && out != null
            && in.nameHash() == out.nameHash()
            && (in == out || in.overlaps(out)); // without elements, nothing overlaps
    writeName(target, INPUT, ownIn && oneName ? null : in, !ownIn);
    writeName(target, OUTPUT, !ownIn && oneName ? null : out, !ownOut);
    long names = mix(0, target.getLong(INPUT + NAME_HASH));
    names = mix(names, target.getLong(INPUT + NAME_OFFSET));
    names = mix(names, target.getLong(OUTPUT + NAME_HASH));
    target.putLong(NAMES, mix(names, target.getLong(OUTPUT + NAME_OFFSET)));
  }

  private static long mix(long hash, long more) {
    long mixed = (hash ^ more) * 0x9E3779B97F4A7C15L;
    return mixed ^ mixed >>> 32;
  }

  private static void writeName(
      ByteBuffer target, int at, AbstractDeviceBuffer buffer, boolean hasOffset) {
    target.putLong(at + NAME_OFFSET, buffer == null || !hasOffset ? 0 : buffer.offsetInNamed());
    long hash = buffer == null ? 0 : buffer.nameHash();
    if (target.getLong(at + NAME_HASH) == hash) {
      return; // the record of an earlier call, with the same text
    }
    target.putLong(at + NAME_HASH, hash);
    if (buffer != null) {
      target.put(at + NAME_TEXT, buffer.nameBytes(), 0, NAME_BYTES);
    } else {
      HostBuffers.fillZero(target, at + NAME_TEXT, NAME_BYTES);
    }
  }

  public static long notFinite(ByteBuffer call) {
    return call.getLong(NOT_FINITE);
  }

  /** Whether two ranks have enqueued the same number of calls, as far as they know. */
  public static boolean sameEnqueued(ByteBuffer a, ByteBuffer b) {
    return enqueued(a) == enqueued(b) || enqueued(a) < 0 || enqueued(b) < 0;
  }

  public static long enqueued(ByteBuffer call) {
    return call.getLong(ENQUEUED);
  }

  static boolean sameOrigin(ByteBuffer a, ByteBuffer b) {
    return a.getInt(KIND) >>> KIND_BITS == b.getInt(KIND) >>> KIND_BITS;
  }

  /** Whether a send and a receive match, ignoring the names of their buffers. */
  static boolean samePair(ByteBuffer a, ByteBuffer b) {
    return sameOrigin(a, b)
        && a.getLong(COUNT) == b.getLong(COUNT)
        && a.getInt(ELEMENT) == b.getInt(ELEMENT)
        && a.getInt(OP) == b.getInt(OP);
  }

  /** Whether two ranks ask for the same, ignoring the names of their buffers. */
  public static boolean same(ByteBuffer a, ByteBuffer b) {
    return equal(a, 0, b, COMPARED);
  }

  /**
   * Copies a record over that of an earlier call. Names that stay the same are not written, so that
   * another rank that has read them need not load them again.
   */
  static void copy(ByteBuffer source, ByteBuffer target) {
    if (source.getLong(NAMES) != target.getLong(NAMES)) {
      target.put(0, source, 0, BYTES);
      return;
    }
    for (int i = 0; i < NAMES; i += Long.BYTES) {
      target.putLong(i, source.getLong(i));
    }
  }

  /** Whether two ranks have the same in all that ranks compare. */
  static boolean sameInAll(ByteBuffer a, ByteBuffer b) {
    return same(a, b)
        && a.getLong(ENQUEUED) == b.getLong(ENQUEUED)
        && a.getLong(NOT_FINITE) == b.getLong(NOT_FINITE)
        && a.getLong(NAMES) == b.getLong(NAMES);
  }

  private static boolean sameNames(ByteBuffer a, ByteBuffer b, int at) {
    return a.getLong(at + NAME_HASH) == b.getLong(at + NAME_HASH)
        && a.getLong(at + NAME_OFFSET) == b.getLong(at + NAME_OFFSET);
  }

  /** Whether the rank has named its {@link #INPUT} or {@link #OUTPUT}. */
  public static boolean hasName(ByteBuffer call, int at) {
    return call.getLong(at + NAME_HASH) != 0;
  }

  /** Whether two ranks mean the same part of the same buffer, if both have named it. */
  public static boolean sameName(ByteBuffer a, ByteBuffer b, int at) {
    return !hasName(a, at) || !hasName(b, at) || sameNames(a, b, at);
  }

  /** The kind of a call, or null if it is invalid. */
  static Kind kind(ByteBuffer call) {
    return at(Kind.values(), call.getInt(KIND) & (1 << KIND_BITS) - 1);
  }

  static Origin origin(ByteBuffer call) {
    return at(Origin.values(), call.getInt(KIND) >>> KIND_BITS);
  }

  private static <E> E at(E[] all, int index) {
    return index >= 0 && index < all.length ? all[index] : null;
  }

  static boolean isValid(ByteBuffer call) {
    return kind(call) != null && origin(call) != null;
  }

  /** A call as users see it: {@code allReduce(FLOAT32[1000] "w1", AVERAGE), call=7}. */
  public static String describe(ByteBuffer call) {
    if (!isValid(call)) {
      return "an unknown call (another version of this library?)";
    }
    Kind kind = kind(call);
    Origin origin = origin(call);
    StringBuilder text = new StringBuilder(origin.text);
    text.append(origin.compareTo(Origin.COMMUNICATOR) <= 0 ? kind.text() : "");
    text.append('(');
    if (origin.compareTo(Origin.MEAN) < 0) {
      appendArguments(text, call, kind);
    }
    text.append(')');
    long sequence = call.getLong(SEQUENCE);
    return (sequence > 0 ? text.append(", call=").append(sequence) : text).toString();
  }

  private static void appendArguments(StringBuilder text, ByteBuffer call, Kind kind) {
    int element = call.getInt(ELEMENT);
    Object type =
        element < FIRST_ELEMENT
            ? at(DataType.values(), element)
            : at(HostElement.values(), element - FIRST_ELEMENT);
    if (type != null) {
      text.append(type).append('[').append(call.getLong(COUNT)).append(']');
    }
    appendName(text, call, INPUT, " ");
    appendName(text, call, OUTPUT, " to ");
    ReduceOp op = at(ReduceOp.values(), call.getInt(OP));
    if (op != null && kind.reduces()) {
      text.append(", ").append(op);
    }
    if (call.getInt(ROOT) != RankGroup.NO_RANK) {
      text.append(kind == Kind.SEND ? ", to=" : kind == Kind.RECEIVE ? ", from=" : ", root=");
      text.append(call.getInt(ROOT));
    }
    if (kind.isMessage() && call.getInt(OP) != HostCall.NO_TAG) {
      text.append(", tag=").append(call.getInt(OP));
    }
  }

  private static void appendName(StringBuilder text, ByteBuffer call, int at, String before) {
    String name = ShortText.get(call, at + NAME_TEXT, NAME_BYTES);
    if (!name.isEmpty()) {
      text.append(before).append('"').append(name).append('"');
    }
    long offset = call.getLong(at + NAME_OFFSET);
    if (offset != 0) {
      text.append(" at offset ").append(offset);
    }
  }
}
