package org.gradientsync.cuda.internal.driver;

import java.lang.reflect.Field;
import jcuda.NativePointerObject;
import jcuda.driver.CUipcMemHandle;
import jcuda.driver.CUstream;

/** What JCuda keeps in private fields: it has no other way to get it, or to set it. */
public final class JCudaHandles {
  private static final Field POINTER = field(NativePointerObject.class, "nativePointer");
  private static final Field RESERVED = field(CUipcMemHandle.class, "reserved");

  private JCudaHandles() {}

  private static Field field(Class<?> owner, String name) {
    try {
      Field field = owner.getDeclaredField(name);
      field.setAccessible(true);
      return field;
    } catch (ReflectiveOperationException e) {
      throw elsewhere(e);
    }
  }

  static CUstream streamOf(long handle) {
    return point(new CUstream(), handle);
  }

  /** Lets a pointer point to another address. */
  static <P extends NativePointerObject> P point(P pointer, long address) {
    try {
      POINTER.setLong(pointer, address);
    } catch (IllegalAccessException e) {
      throw elsewhere(e);
    }
    return pointer;
  }

  static long handleOf(CUstream stream) {
    try {
      return POINTER.getLong(stream);
    } catch (IllegalAccessException e) {
      throw elsewhere(e);
    }
  }

  /** Returns the driver's bytes of a handle, not a copy of them. */
  public static byte[] bytes(CUipcMemHandle handle) {
    try {
      if (RESERVED.get(handle) == null) {
        RESERVED.set(handle, new byte[CudaApi.HANDLE_BYTES]);
      }
      return (byte[]) RESERVED.get(handle);
    } catch (IllegalAccessException e) {
      throw elsewhere(e);
    }
  }

  private static IllegalStateException elsewhere(ReflectiveOperationException e) {
    return new IllegalStateException("this JCuda keeps its handles elsewhere", e);
  }
}
