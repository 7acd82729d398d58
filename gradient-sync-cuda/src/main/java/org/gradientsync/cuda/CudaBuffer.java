package org.gradientsync.cuda;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import jcuda.driver.CUdeviceptr;
import org.gradientsync.DataType;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.spi.AbstractDeviceBuffer;

/** A buffer in a GPU's memory. All work on it is enqueued on the stream that it belongs to. */
public final class CudaBuffer extends AbstractDeviceBuffer {
  private final CudaDevice device;
  private final CudaStream stream;
  private final long address;
  private CUdeviceptr pointer; // or null
  private final boolean ownsMemory;

  /** Creates a buffer that is not a view. */
  CudaBuffer(
      CudaDevice device,
      DataType type,
      long count,
      CudaStream stream,
      long address,
      boolean ownsMemory) {
    super(device, type, count);
    this.device = device;
    this.stream = stream;
    this.address = address;
    this.ownsMemory = ownsMemory;
  }

  /** Creates a view, which may belong to another stream than its parent. */
  CudaBuffer(CudaBuffer parent, long offset, long count, CudaStream stream) {
    super(parent, offset, count);
    device = parent.device;
    this.stream = stream;
    address = parent.address() + offset * type().sizeInBytes();
    ownsMemory = false;
  }

  /**
   * The address of the first element.
   *
   * @return an address on the GPU; 0 if this was allocated without elements
   * @throws IllegalStateException if this buffer is closed
   */
  public long address() {
    requireOpen();
    return address;
  }

  /** The address, for the driver's calls that copy. Allocates at the first call only. */
  CUdeviceptr pointer() {
    long own = address();
    if (pointer == null) {
      pointer = device.gpu().api().pointer(own);
    }
    return pointer;
  }

  /**
   * {@return the stream that this buffer belongs to: the one it was created with, or else the
   * device's own}
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
    device.staging().upload(source, address, usedBytes(), stream.driver());
  }

  @Override
  protected void download(Buffer target) {
    stream.driver().await(); // outside of the staging's lock, which other groups may need meanwhile
    device.staging().download(address, usedBytes(), stream.driver(), target);
  }

  private long usedBytes() {
    return usedCount() * type().sizeInBytes();
  }

  @Override
  protected AbstractDeviceBuffer view(long offset, long elements) {
    return new CudaBuffer(this, offset, elements, stream);
  }

  @Override
  protected void release() {
    if (ownsMemory && address != 0) {
      device.gpu().memory().freeBuffer(address, stream.driver());
    }
  }
}
