package org.gradientsync.djl;

import ai.djl.Device;
import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.util.NativeResource;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.Buffer;
import java.util.List;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.UnavailableException;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.CudaStream;

/**
 * DJL's arrays on a GPU. DJL has no public call for their address. Its natives have one, in a class
 * that may change with any release: so it is looked up by name.
 */
final class GpuArrays {
  private final int rank;
  private final CudaDevice gpu;
  private final CudaStream stream;
  private final Object natives;
  private final Method view;

  private GpuArrays(GradientSync sync, ClassLoader engine) {
    rank = sync.rank();
    gpu = (CudaDevice) sync.device();
    stream = gpu.wrapStream(0); // CUDA's default stream, on which PyTorch computes
    try {
      Class<?> library = Class.forName("ai.djl.pytorch.jni.PyTorchLibrary", true, engine);
      Field instance = library.getDeclaredField("LIB");
      instance.setAccessible(true);
      natives = instance.get(null);
      view = library.getDeclaredMethod("torchDirectByteBuffer", long.class);
      view.setAccessible(true);
    } catch (ReflectiveOperationException | RuntimeException e) {
      throw unavailable(rank, e);
    }
  }

  /**
   * For arrays on the sync's GPU.
   *
   * @throws UnavailableException if they are elsewhere, or this DJL does not tell where
   */
  static GpuArrays of(GradientSync sync, List<NDArray> arrays) {
    Device device = arrays.get(0).getDevice();
    if (!device.equals(deviceOf(sync))) {
      throw new UnavailableException(
          ("training is on another GPU than the sync's: djl=%s, sync=%s, rank=%s;"
                  + " train on DataParallel.device(sync)")
              .formatted(device, sync.device().name(), sync.rank()));
    }
    GpuArrays gpu = new GpuArrays(sync, arrays.get(0).getClass().getClassLoader());
    arrays.forEach(gpu::address); // fails now, or not at all
    return gpu;
  }

  /** The sync's GPU as DJL names it: both go by the order that CUDA shows this process. */
  static Device deviceOf(GradientSync sync) {
    return Device.gpu(((CudaDevice) sync.device()).ordinal());
  }

  /** The array's own memory. The caller closes the buffer before the array. */
  DeviceBuffer wrap(String parameter, NDArray array) {
    return gpu.wrap(
        HostCopy.gradientTypeOf(parameter, array), address(array), array.size(), stream);
  }

  /** Of the first element, on the GPU. The buffer that has it is never read. */
  private long address(NDArray array) {
    try {
      Object handle = ((NativeResource<?>) array).getHandle();
      Buffer elements = (Buffer) view.invoke(natives, handle);
      return Pointer.nativeValue(Native.getDirectBufferPointer(elements));
    } catch (InvocationTargetException e) {
      throw unavailable(rank, e.getCause());
    } catch (ReflectiveOperationException | RuntimeException | LinkageError e) {
      throw unavailable(rank, e);
    }
  }

  private static UnavailableException unavailable(int rank, Throwable cause) {
    return new UnavailableException(
        ("the address of DJL's arrays on the GPU cannot be found: version=%s, cause=%s, rank=%s;"
                + " use natives that fit the PyTorch, see docs/deep-java-library.md")
            .formatted(Engine.getDjlVersion(), cause, rank),
        cause);
  }
}
