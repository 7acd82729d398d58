package org.gradientsync.examples.djl;

import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.util.NativeResource;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.Buffer;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.UnavailableException;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.CudaStream;

/**
 * DJL's arrays on a GPU. DJL does not tell where they lie, but its natives have a call that does,
 * in a class that is no part of DJL's interface and may change with any release: so it is looked up
 * by name.
 */
final class GpuArrays implements DjlArrays {
  private final int rank;
  private final CudaDevice gpu;
  private final CudaStream stream;
  private final Object natives;
  private final Method view;

  /**
   * For arrays on the sync's GPU.
   *
   * @throws UnavailableException if this DJL has no such call
   */
  GpuArrays(GradientSync sync) {
    rank = sync.rank();
    gpu = (CudaDevice) sync.device();
    stream = gpu.wrapStream(0); // CUDA's default stream, on which PyTorch computes
    try {
      Class<?> library = Class.forName("ai.djl.pytorch.jni.PyTorchLibrary");
      Field instance = library.getDeclaredField("LIB");
      instance.setAccessible(true);
      natives = instance.get(null);
      view = library.getDeclaredMethod("torchDirectByteBuffer", long.class);
      view.setAccessible(true);
    } catch (ReflectiveOperationException e) {
      throw unavailable(e);
    }
  }

  @Override
  public DeviceBuffer wrap(NDArray array) {
    return gpu.wrap(DataType.FLOAT32, address(array), array.size(), stream);
  }

  /** Of the first element, on the GPU. The buffer that has it is never read. */
  private long address(NDArray array) {
    try {
      Object handle = ((NativeResource<?>) array).getHandle();
      Buffer elements = (Buffer) view.invoke(natives, handle);
      return Pointer.nativeValue(Native.getDirectBufferPointer(elements));
    } catch (InvocationTargetException e) {
      throw unavailable(e.getCause());
    } catch (ReflectiveOperationException e) {
      throw unavailable(e);
    }
  }

  private UnavailableException unavailable(Throwable cause) {
    return new UnavailableException(
        "DJL does not tell where its arrays lie on the GPU: version="
            + Engine.getDjlVersion()
            + ", cause="
            + cause
            + ", rank="
            + rank
            + "; use natives that fit the PyTorch, see docs/deep-java-library.md, or train without"
            + " --gpu",
        cause);
  }
}
