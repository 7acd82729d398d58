package org.gradientsync.mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Test;

/** Tests many small buffers in memory that processes share. */
class ManyBuffersIT {
  @Test
  void smallOnesTakeFewFilesAndMappings() throws Exception {
    Mpirun.Result job = Mpirun.run(2, List.of(), ManyBuffers.class);
    assertEquals(0, job.exitCode(), job.output());
    assertEquals(
        3, job.output().split("files=few mappings=few\\.", -1).length, job.output()); // 2 ranks
  }
}
