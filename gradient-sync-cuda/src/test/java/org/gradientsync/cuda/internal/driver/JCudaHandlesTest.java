package org.gradientsync.cuda.internal.driver;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import jcuda.driver.CUipcMemHandle;
import org.junit.jupiter.api.Test;

class JCudaHandlesTest {
  @Test
  void handlesOfMemoryCanBeReadAndWritten() {
    CUipcMemHandle handle = new CUipcMemHandle();
    byte[] bytes = JCudaHandles.bytes(handle);
    assertEquals(64, bytes.length);
    bytes[3] = 7;
    assertArrayEquals(bytes, JCudaHandles.bytes(handle));
  }

  @Test
  void handlesOfStreamsCanBeReadAndWritten() {
    assertEquals(4711, JCudaHandles.handleOf(JCudaHandles.streamOf(4711)));
  }
}
