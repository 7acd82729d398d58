package org.gradientsync.cuda.internal.peer;

import org.gradientsync.DataType;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.cuda.CudaBuffer;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.cuda.internal.driver.DriverAccess;

/** Shares memory as ranks in separate processes do. */
public final class ProcessMemory {
  private ProcessMemory() {}

  public static void share(ProcessGroup group, CudaDevice device) {
    try (PeerMemory memory =
            PeerMemory.open(
                new GroupCommunicator(group), DriverAccess.gpu(device), false, group.rank());
        CudaBuffer one = device.allocate(DataType.FLOAT32, 10);
        CudaBuffer other = device.allocate(DataType.FLOAT32, 10)) {
      PeerMemory.Mapped[] mapped = memory.share(one.address());
      memory.share(other.address());
      if (mapped != null) {
        memory.unmap(mapped);
      }
    }
  }
}
