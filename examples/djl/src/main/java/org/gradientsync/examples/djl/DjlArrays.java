package org.gradientsync.examples.djl;

import ai.djl.ndarray.NDArray;
import org.gradientsync.DeviceBuffer;

/** Where DJL's arrays lie, for the sync to work there. */
interface DjlArrays {
  /**
   * The array's own memory.
   *
   * @param array dense, of FLOAT32
   * @return a buffer that the caller closes before the array
   */
  DeviceBuffer wrap(NDArray array);
}
