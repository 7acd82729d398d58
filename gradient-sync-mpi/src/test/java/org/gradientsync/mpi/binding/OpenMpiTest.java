package org.gradientsync.mpi.binding;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Map;
import org.junit.jupiter.api.Test;

/** Tests what needs no job. */
class OpenMpiTest {
  @Test
  void aRankWithoutItsMpisPrefixIsToldSo() {
    assertEquals("", OpenMpi.prefixMissing(Map.of()));
    assertEquals("", OpenMpi.prefixMissing(Map.of("OPAL_PREFIX", "/a")));
    assertEquals(
        "", OpenMpi.prefixMissing(Map.of("OPAL_PREFIX", "/a", "PMIX_INSTALL_PREFIX", "/a")));
    assertEquals(
        ", or because this rank has not got OPAL_PREFIX, prefix=/a; start the job with mpirun -x"
            + " OPAL_PREFIX=/a",
        OpenMpi.prefixMissing(Map.of("PMIX_INSTALL_PREFIX", "/a")));
  }
}
