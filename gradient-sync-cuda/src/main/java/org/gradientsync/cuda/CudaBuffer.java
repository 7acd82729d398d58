package org.gradientsync.cuda;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import org.gradientsync.DataType;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.spi.AbstractDeviceBuffer;

/** A buffer in a GPU's memory. It belongs to a stream: all work on it is enqueued there. */
public final class CudaBuffer extends AbstractDeviceBuffer {
  private final CudaDevice device;
  private final CudaStream stream;
  private final long address;
  private final boolean own;

  /** A buffer that is no view. */
  CudaBuffer(
      CudaDevice device, DataType type, long count, CudaStream stream, long address, boolean own) {
    super(device, type, count);
    this.device = device;
    this.stream = stream;
    this.address = address;
    this.own = own;
  }

  /** A view, which may belong to another stream. */
  CudaBuffer(CudaBuffer parent, long offset, long count, CudaStream stream) {
    super(parent, offset, count);
    device = parent.device;
    this.stream = stream;
    address = parent.address() + offset * type().sizeInBytes();
    own = false;
  }

  /**
   * Where the elements lie.
   *
   * @return an address on the GPU; 0 if there are no elements
   */
  public long address() {
    requireOpen();
    return address;
  }

  /**
   * The stream that this buffer belongs to.
   *
   * @return the stream given at allocation, or its device's own
   */
  public CudaStream stream() {
    return stream;
  }

  @Override
  public ByteBuffer nativeView(long first, long elements) {
    int size = type().sizeInBytes();
    return new com.sun.jna.Pointer(address + first * size).getByteBuffer(0, elements * size);
  }

  @Override
  protected void zero() {
    if (count() > 0) {
      Gpu gpu = device.gpu();
      gpu.makeCurrent();
      gpu.api().fillZero(address, sizeInBytes(), stream.driver().handle());
    }
  }

  @Override
  protected void upload(Buffer source) {
    device.staging().upload(source, address, sizeInBytes(), stream.driver());
  }

  @Override
  protected void download(Buffer target) {
    device.staging().download(address, sizeInBytes(), stream.driver(), target);
  }

  @Override
  protected AbstractDeviceBuffer view(long offset, long elements) {
    return new CudaBuffer(this, offset, elements, stream);
  }

  @Override
  protected void release() {
    if (own && address != 0) {
      device.free(this, address);
    }
  }
}
