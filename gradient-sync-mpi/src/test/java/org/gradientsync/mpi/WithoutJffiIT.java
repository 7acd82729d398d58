package org.gradientsync.mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Tests ranks that call the C library of MPI where jffi cannot: then JNA makes all calls. */
class WithoutJffiIT {
  /** The first JDK on which jffi is never asked. */
  private static final int NEVER_ASKED = 24;

  @Test
  void ranksAverageWithoutItsJars() throws Exception {
    requireAverage(Mpirun.without("mpi-java", "jffi"));
  }

  @Test
  void ranksAverageWhereItCannotWriteItsLibrary() throws Exception {
    List<String> options = new ArrayList<>(Mpirun.withoutMpiJar());
    options.add("-Djffi.extract.dir=/proc");
    requireAverage(options);
  }

  private static void requireAverage(List<String> given) throws Exception {
    List<String> options = new ArrayList<>(given);
    options.add("-Dgradientsync.reducer=mpi");
    options.add("-Dgradientsync.dev.rendezvous=messages");
    options.add("-Dorg.slf4j.simpleLogger.log.org.gradientsync.mpi.direct=debug");
    Mpirun.Result job = Mpirun.run(2, options, Programs.class, "average");
    assertEquals(0, job.exitCode(), job.output());
    job.expect("rank 0 of 2: mpi, average 0.5").expect("rank 1 of 2: mpi, average 0.5");
    if (Runtime.version().feature() < NEVER_ASKED) {
      job.expect("jffi does not load");
    }
  }
}
