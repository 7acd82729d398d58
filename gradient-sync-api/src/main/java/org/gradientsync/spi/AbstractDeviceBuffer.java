package org.gradientsync.spi;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.function.LongFunction;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;

/** The checks that all backends' buffers share, and what reducers need to know of a buffer. */
public abstract class AbstractDeviceBuffer implements DeviceBuffer {
  /** The length of {@link #nameBytes}. */
  public static final int NAME_BYTES = BufferName.BYTES;

  private final BackendDevice device;
  private final CallInterceptor interceptor; // or null
  private final AbstractDeviceBuffer parent;
  private final long offset; // in the parent
  private final DataType type;
  private final long count;
  private Set<Runnable> closeListeners = Set.of(); // of most views none; guarded by this
  private volatile boolean closed;
  private volatile BufferName name = BufferName.NONE;
  private volatile LongFunction<String> elementNames = element -> "";

  /**
   * A buffer that is no view.
   *
   * @param device whose memory it is
   * @param type the element type
   * @param count the number of elements
   */
  protected AbstractDeviceBuffer(BackendDevice device, DataType type, long count) {
    this(device, null, 0, type, count);
  }

  /**
   * A view of a buffer.
   *
   * @param parent the buffer that this is a view of
   * @param offset the first element in it
   * @param count the number of elements
   */
  protected AbstractDeviceBuffer(AbstractDeviceBuffer parent, long offset, long count) {
    this(parent.device, parent, offset, parent.type, count);
  }

  /**
   * All of a buffer's memory, as elements of another type.
   *
   * @param parent the buffer that this is a view of
   * @param type the element type
   * @param count the number of elements, all of which lie in the buffer
   */
  protected AbstractDeviceBuffer(AbstractDeviceBuffer parent, DataType type, long count) {
    this(parent.device, parent, 0, type, count);
  }

  private AbstractDeviceBuffer(
      BackendDevice device, AbstractDeviceBuffer parent, long offset, DataType type, long count) {
    this.device = Objects.requireNonNull(device, "device");
    this.interceptor = device.interceptor();
    this.parent = parent;
    this.offset = offset;
    this.type = Objects.requireNonNull(type, "type");
    this.count = count;
  }

  /**
   * Refuses counts that no buffer can have.
   *
   * @param type the element type
   * @param count the number of elements asked for
   * @throws IllegalArgumentException if count is negative or its bytes do not fit a long
   */
  public static void requireCount(DataType type, long count) {
    Objects.requireNonNull(type, "type");
    if (count < 0) {
      throw new IllegalArgumentException("count is negative: type=" + type + ", count=" + count);
    }
    if (count > Long.MAX_VALUE / type.sizeInBytes()) {
      throw new IllegalArgumentException("count is too large: type=" + type + ", count=" + count);
    }
  }

  /**
   * Refuses what {@link BackendDevice#convert} does not take.
   *
   * @param source what is read
   * @param target what is written
   * @throws IllegalArgumentException if the types or counts do not fit
   */
  public static void requireConvertible(DeviceBuffer source, DeviceBuffer target) {
    DataType other = source.type() == DataType.FLOAT32 ? target.type() : source.type();
    if (source.type() == target.type()
        || source.type() != DataType.FLOAT32 && target.type() != DataType.FLOAT32
        || other.sizeInBytes() != Short.BYTES
        || source.count() != target.count()) {
      throw new IllegalArgumentException("cannot convert: source=" + source + ", target=" + target);
    }
  }

  /**
   * A direct buffer over a run of elements, for handing to a transport. On a device other than the
   * host it is only an address: it must never be read or written from Java.
   *
   * @param first the first element
   * @param elements how many; their bytes fit an int
   * @return the view, or null where the memory is not contiguous there
   */
  public abstract ByteBuffer nativeView(long first, long elements);

  /**
   * Copies in; type, length and state have been checked.
   *
   * @param source a matching buffer; its position must not be changed
   */
  protected abstract void upload(Buffer source);

  /**
   * Copies out; type, length and state have been checked.
   *
   * @param target a matching buffer; its position must not be changed
   */
  protected abstract void download(Buffer target);

  /** Sets all elements to zero; the state has been checked. */
  protected abstract void zero();

  /**
   * Makes a view; the range has been checked.
   *
   * @param offset the first element
   * @param elements how many
   * @return the view
   */
  protected abstract AbstractDeviceBuffer view(long offset, long elements);

  /** Gives the memory back. Called once, and for a view not at all. */
  protected abstract void release();

  @Override
  public final DataType type() {
    return type;
  }

  @Override
  public final long count() {
    return count;
  }

  @Override
  public final BackendDevice device() {
    return device;
  }

  @Override
  public final AbstractDeviceBuffer named(String newName) {
    name = BufferName.of(Objects.requireNonNull(newName, "name"));
    return this;
  }

  @Override
  public final String name() {
    return inheritedName().text();
  }

  /**
   * The name as errors of all ranks show it; allocates nothing.
   *
   * @return {@link #NAME_BYTES} bytes of UTF-8, filled up with zeros; not to be changed. Of a
   *     longer name the beginning, the end and a part of its hash
   */
  public final byte[] nameBytes() {
    return inheritedName().shown();
  }

  /**
   * A hash of the whole name, by which the ranks compare names; allocates nothing.
   *
   * @return 64 bits; 0 if there is no name
   */
  public final long nameHash() {
    return inheritedName().hash();
  }

  /**
   * Where this buffer begins in the one whose name it has; allocates nothing.
   *
   * @return the first element; 0 for a buffer with a name of its own, or without any
   */
  public final long offsetInNamed() {
    long first = 0;
    for (AbstractDeviceBuffer b = this; b != null; b = b.parent) {
      if (b.name != BufferName.NONE) {
        return first;
      }
      first += b.offset;
    }
    return 0;
  }

  private BufferName inheritedName() {
    return name == BufferName.NONE && parent != null ? parent.inheritedName() : name;
  }

  /**
   * This buffer as errors show it.
   *
   * @return for example {@code FLOAT32[1000] "w1" at offset 2000}
   */
  public final String describe() {
    String given = name();
    long first = offsetInNamed();
    return type
        + "["
        + count
        + "]"
        + (given.isEmpty() ? "" : " \"" + given + "\"")
        + (first == 0 ? "" : " at offset " + first);
  }

  /**
   * Gives this buffer's elements names, by which errors call them; not those of its views.
   *
   * @param names the name of an element, or an empty text; called by any thread
   */
  public final void elementsNamed(LongFunction<String> names) {
    elementNames = Objects.requireNonNull(names, "names");
  }

  /**
   * Where an element is, as errors say it.
   *
   * @param element its index
   * @return for example {@code index=1077 (layer3[77])}
   */
  public final String placeOf(long element) {
    String given = elementNames.apply(element);
    return "index=" + element + (given.isEmpty() ? "" : " (" + given + ")");
  }

  @Override
  public final AbstractDeviceBuffer slice(long offset, long elements) {
    requireOpen();
    if (offset < 0 || elements < 0 || offset > count - elements) {
      throw new IndexOutOfBoundsException(
          "slice is out of range: offset=" + offset + ", count=" + elements + ", buffer=" + this);
    }
    return view(offset, elements);
  }

  @Override
  public final void fillZero() {
    requireOpen();
    zero();
  }

  @Override
  public final void copyFrom(Buffer source) {
    if (interceptor != null) {
      interceptor.beforeCopy();
    }
    copyFromUnseen(source);
  }

  /**
   * {@link #copyFrom(Buffer)} as the library calls it: a {@link CallInterceptor} does not see it.
   *
   * @param source a matching buffer
   */
  public final void copyFromUnseen(Buffer source) {
    requireMatching(source, "source");
    upload(source);
  }

  @Override
  public final void copyTo(Buffer target) {
    if (interceptor != null) {
      interceptor.beforeCopy();
    }
    copyToUnseen(target);
  }

  /**
   * {@link #copyTo(Buffer)} as the library calls it: a {@link CallInterceptor} does not see it.
   *
   * @param target a matching buffer
   */
  public final void copyToUnseen(Buffer target) {
    requireMatching(target, "target");
    if (target.isReadOnly()) {
      throw new IllegalArgumentException("target is read-only: buffer=" + this);
    }
    download(target);
  }

  @Override
  public final void copyFrom(float[] source) {
    copyFrom(FloatBuffer.wrap(Objects.requireNonNull(source, "source")));
  }

  @Override
  public final void copyFrom(double[] source) {
    copyFrom(DoubleBuffer.wrap(Objects.requireNonNull(source, "source")));
  }

  @Override
  public final void copyFrom(short[] source) {
    copyFrom(ShortBuffer.wrap(Objects.requireNonNull(source, "source")));
  }

  @Override
  public final void copyFrom(int[] source) {
    copyFrom(IntBuffer.wrap(Objects.requireNonNull(source, "source")));
  }

  @Override
  public final void copyFrom(long[] source) {
    copyFrom(LongBuffer.wrap(Objects.requireNonNull(source, "source")));
  }

  @Override
  public final void copyTo(float[] target) {
    copyTo(FloatBuffer.wrap(Objects.requireNonNull(target, "target")));
  }

  @Override
  public final void copyTo(double[] target) {
    copyTo(DoubleBuffer.wrap(Objects.requireNonNull(target, "target")));
  }

  @Override
  public final void copyTo(short[] target) {
    copyTo(ShortBuffer.wrap(Objects.requireNonNull(target, "target")));
  }

  @Override
  public final void copyTo(int[] target) {
    copyTo(IntBuffer.wrap(Objects.requireNonNull(target, "target")));
  }

  @Override
  public final void copyTo(long[] target) {
    copyTo(LongBuffer.wrap(Objects.requireNonNull(target, "target")));
  }

  @Override
  public final boolean isClosed() {
    return closed || device.isClosed() || parent != null && parent.isClosed();
  }

  /**
   * Refuses a closed buffer.
   *
   * @throws IllegalStateException if it, what it is a view of, or its device is closed
   */
  public final void requireOpen() {
    if (isClosed()) {
      throw new IllegalStateException(
          "buffer is closed: buffer="
              + this
              + (device.isClosed() ? ", its sync is closed too" : ""));
    }
  }

  @Override
  public final void close() {
    List<AutoCloseable> listeners = new ArrayList<>();
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
      closeListeners.forEach(listener -> listeners.add(listener::run));
      closeListeners = Set.of();
    }
    if (parent == null) {
      listeners.add(this::release);
    }
    Resources.closeAll(listeners); // the memory is given back whatever a listener finds
  }

  /**
   * Calls back before the memory is given back, so that what others keep of this buffer ends first.
   *
   * @param listener called once, by the thread that closes this buffer or the one that it is a view
   *     of
   */
  public final void onClose(Runnable listener) {
    for (AbstractDeviceBuffer b = this; b != null; b = b.parent) {
      synchronized (b) {
        if (b.closeListeners.isEmpty()) {
          b.closeListeners = new LinkedHashSet<>();
        }
        b.closeListeners.add(listener);
      }
    }
  }

  /**
   * Takes back {@link #onClose}.
   *
   * @param listener what was given there
   */
  public final void removeCloseListener(Runnable listener) {
    for (AbstractDeviceBuffer b = this; b != null; b = b.parent) {
      synchronized (b) {
        if (!b.closeListeners.isEmpty()) {
          b.closeListeners.remove(listener);
        }
      }
    }
  }

  @Override
  public String toString() {
    return device.kind() + " " + describe();
  }

  private void requireMatching(Buffer host, String role) {
    Objects.requireNonNull(host, role);
    requireOpen();
    boolean bytes = host instanceof ByteBuffer;
    if (!bytes && HostElement.of(host) != HostElement.of(type)) {
      throw new IllegalArgumentException(
          "element type does not match: " + role + "=" + HostElement.of(host) + ", buffer=" + this);
    }
    long expected = bytes ? sizeInBytes() : count;
    if (host.remaining() != expected) {
      throw new IllegalArgumentException(
          "length does not match: "
              + role
              + "="
              + host.remaining()
              + ", expected="
              + expected
              + ", buffer="
              + this
              + "; use slice() for a part");
    }
  }
}
