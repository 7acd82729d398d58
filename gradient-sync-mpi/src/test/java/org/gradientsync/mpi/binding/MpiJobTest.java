package org.gradientsync.mpi.binding;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Map;
import org.junit.jupiter.api.Test;

/** Tests what needs no job. */
class MpiJobTest {
  @Test
  void aRankWithoutItsMpisPrefixIsToldSo() {
    assertEquals("", MpiJob.prefixMissing(Map.of()));
    assertEquals("", MpiJob.prefixMissing(Map.of("OPAL_PREFIX", "/a")));
    assertEquals(
        "", MpiJob.prefixMissing(Map.of("OPAL_PREFIX", "/a", "PMIX_INSTALL_PREFIX", "/a")));
    assertEquals(
        ", or because this rank has not got OPAL_PREFIX, prefix=/a; start the job with mpirun -x"
            + " OPAL_PREFIX=/a",
        MpiJob.prefixMissing(Map.of("PMIX_INSTALL_PREFIX", "/a")));
  }
}
