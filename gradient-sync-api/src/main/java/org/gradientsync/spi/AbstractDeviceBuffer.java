package org.gradientsync.spi;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.function.LongFunction;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;

/**
 * The base class of all backends' buffers: checks arguments and state, and gives reducers access to
 * names and memory.
 */
public abstract class AbstractDeviceBuffer implements DeviceBuffer {
  /** The length of {@link #nameBytes}. */
  public static final int NAME_BYTES = BufferName.BYTES;

  private final BackendDevice device;
  private final CallInterceptor interceptor; // or null
  private final AbstractDeviceBuffer parent;
  private final long offset; // in the parent
  private final DataType type;
  private final long count;
  private Set<Runnable> closeListeners = Set.of(); // most views have none; guarded by this
  private long used = -1; // or all elements if negative
  private volatile boolean closed;
  private volatile Unclosed unclosed; // or null
  private volatile BufferName name = BufferName.NONE;
  private volatile LongFunction<String> elementNames = element -> "";

  /**
   * Creates a buffer that is not a view.
   *
   * @param device the device that holds the memory
   * @param type the element type
   * @param count the number of elements
   */
  protected AbstractDeviceBuffer(BackendDevice device, DataType type, long count) {
    this(device, null, 0, type, count);
  }

  /**
   * Creates a view of a part of a buffer.
   *
   * @param parent the buffer that this is a view of
   * @param offset the first element in the parent
   * @param count the number of elements
   */
  protected AbstractDeviceBuffer(AbstractDeviceBuffer parent, long offset, long count) {
    this(parent.device, parent, offset, parent.type, count);
  }

  /**
   * Creates a view of a buffer's memory as elements of another type.
   *
   * @param parent the buffer that this is a view of
   * @param type the element type
   * @param count the number of elements, which must fit into the parent
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
   * {@return a direct buffer over a range of elements, to pass to a transport; null if the memory
   * of this range is not contiguous} On a device other than the host it only carries an address:
   * Java code must never read or write it.
   *
   * @param first the first element
   * @param elements the number of elements; their size in bytes fits an int
   */
  public abstract ByteBuffer nativeView(long first, long elements);

  /**
   * Copies from a Java buffer. The caller has checked type, length and state.
   *
   * @param source a matching buffer, whose position must not change
   */
  protected abstract void upload(Buffer source);

  /**
   * Copies to a Java buffer. The caller has checked type, length and state.
   *
   * @param target a matching buffer, whose position must not change
   */
  protected abstract void download(Buffer target);

  /** Sets all elements to zero. The caller has checked the state. */
  protected abstract void zero();

  /**
   * {@return a new view of a part of this buffer} The caller has checked the range.
   *
   * @param offset the first element
   * @param elements the number of elements
   */
  protected abstract AbstractDeviceBuffer view(long offset, long elements);

  /** Frees the memory. Called once for a buffer, and never for a view. */
  protected abstract void release();

  @Override
  public final DataType type() {
    return type;
  }

  @Override
  public final long count() {
    return count;
  }

  /**
   * Makes only the first elements count: copies move these, and the ranks compare their number in
   * each call. The others are padding and must be zero; this zeroes those that were used before.
   *
   * @param elements the number of elements to use, up to {@link #count}
   */
  public final void use(long elements) {
    if (elements < usedCount()) {
      fillZero();
    }
    used = elements;
  }

  /** {@return the number of elements that are not padding: {@link #count} without {@link #use}} */
  public final long usedCount() {
    return used < 0 ? count : used;
  }

  /**
   * {@return whether {@link #use} was called} From then on the ranks may use different numbers of
   * elements, so they compare these in each call.
   */
  public final boolean isPadded() {
    return used >= 0;
  }

  @Override
  public final BackendDevice device() {
    return device;
  }

  @Override
  public final AbstractDeviceBuffer named(String newName) {
    name = BufferName.of(Objects.requireNonNull(newName, "name"));
    if (unclosed != null) {
      unclosed.rename("buffer " + this);
    }
    return this;
  }

  @Override
  public final String name() {
    return inheritedName().text();
  }

  /**
   * {@return the name as errors of all ranks show it, {@link #NAME_BYTES} bytes of UTF-8, padded
   * with zeros, which the caller must not change; a longer name is shortened to its beginning, its
   * end and a part of its hash} Allocates nothing.
   */
  public final byte[] nameBytes() {
    return inheritedName().shown();
  }

  /**
   * {@return a hash of the whole name, which the ranks compare, 64 bits; 0 if there is no name}
   * Allocates nothing.
   */
  public final long nameHash() {
    return inheritedName().hash();
  }

  /**
   * {@return the offset of this buffer in the buffer whose name it shows, as the index of the first
   * element; 0 for a buffer with its own name, or without a name} Allocates nothing.
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

  /**
   * {@return whether this buffer and another one are views of the same memory and have elements in
   * common} Buffers that wrap the same memory separately are not known to overlap.
   *
   * @param other a buffer of the same type
   */
  public final boolean overlaps(AbstractDeviceBuffer other) {
    long first = offsetInWhole();
    long itsFirst = other.offsetInWhole();
    return whole() == other.whole()
        && Math.max(first, itsFirst) < Math.min(first + count, itsFirst + other.count);
  }

  /**
   * {@return whether this buffer begins at an element of another one, in the same memory; the
   * caller knows the counts}
   *
   * @param other a buffer of the same type
   * @param first the first element in the other buffer
   */
  public final boolean isPartOf(AbstractDeviceBuffer other, long first) {
    return whole() == other.whole() && offsetInWhole() == other.offsetInWhole() + first;
  }

  private AbstractDeviceBuffer whole() {
    AbstractDeviceBuffer whole = this;
    while (whole.parent != null) {
      whole = whole.parent;
    }
    return whole;
  }

  private long offsetInWhole() {
    long first = 0;
    for (AbstractDeviceBuffer b = this; b != null; b = b.parent) {
      first += b.offset;
    }
    return first;
  }

  private BufferName inheritedName() {
    return name == BufferName.NONE && parent != null ? parent.inheritedName() : name;
  }

  /**
   * {@return this buffer as errors show it, for example {@code FLOAT32[1000] "w1" at offset 2000}}
   */
  public final String describe() {
    String given = inheritedName().shownText();
    long first = offsetInNamed();
    return type
        + "["
        + usedCount()
        + "]"
        + (given.isEmpty() ? "" : " \"" + given + "\"")
        + (first == 0 ? "" : " at offset " + first);
  }

  /**
   * Names this buffer's elements in errors. Does not name the elements of its views.
   *
   * @param names returns the name of an element, or an empty text; called by any thread
   */
  public final void elementsNamed(LongFunction<String> names) {
    elementNames = Objects.requireNonNull(names, "names");
  }

  /**
   * {@return the position of an element for errors, for example {@code index=1077 (layer3[77])}}
   *
   * @param element the element's index
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
    copyFromUnintercepted(source);
  }

  /**
   * {@link #copyFrom(Buffer)} for the library's own copies, unseen by a {@link CallInterceptor}.
   *
   * @param source a matching buffer
   */
  public final void copyFromUnintercepted(Buffer source) {
    Objects.requireNonNull(source, "source");
    requireOpen();
    HostElement.requireMatching(source, "source", this);
    upload(source);
  }

  @Override
  public final void copyTo(Buffer target) {
    if (interceptor != null) {
      interceptor.beforeCopy();
    }
    copyToUnintercepted(target);
  }

  /**
   * {@link #copyTo(Buffer)} for the library's own copies, unseen by a {@link CallInterceptor}.
   *
   * @param target a matching buffer
   */
  public final void copyToUnintercepted(Buffer target) {
    Objects.requireNonNull(target, "target");
    requireOpen();
    HostElement.requireMatching(target, "target", this);
    if (target.isReadOnly()) {
      throw new IllegalArgumentException("target is read-only: buffer=" + this);
    }
    download(target);
  }

  @Override
  public final boolean isClosed() {
    return closed || device.isClosed() || parent != null && parent.isClosed();
  }

  /** Throws an {@link IllegalStateException} if this buffer {@linkplain #isClosed is closed}. */
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
      if (unclosed != null) {
        unclosed.closed();
      }
      closeListeners.forEach(listener -> listeners.add(listener::run));
      closeListeners = Set.of();
    }
    if (parent == null) {
      listeners.add(this::release);
    }
    Resources.closeAll(listeners); // frees the memory even if a listener throws
  }

  /**
   * Warns in the log if this buffer is collected without having been closed. Devices call this for
   * what they allocate. A second call does nothing.
   */
  public final void warnIfNeverClosed() {
    if (unclosed == null) {
      unclosed = Unclosed.watch(this, "buffer " + this);
    }
  }

  /** See {@link Unclosed#exempt}. */
  final void warnNever() {
    if (unclosed != null) {
      unclosed.closed();
    }
  }

  /**
   * Adds a listener that is called before the memory is freed, to release whatever refers to it.
   *
   * @param listener called once, by the thread that closes this buffer or the one it is a view of
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
   * Removes a listener.
   *
   * @param listener the listener that was passed to {@link #onClose}
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
}
