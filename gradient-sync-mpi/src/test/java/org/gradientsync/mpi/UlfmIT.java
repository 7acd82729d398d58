package org.gradientsync.mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * How ranks go on without others under an mpirun that lets them live. The variable
 * GRADIENTSYNC_TEST_ULFM has the folder of an Open MPI 5, above {@code bin} and {@code lib}: /usr
 * on Debian 13, or where its sources were installed.
 *
 * <pre>
 * ./configure --prefix=/opt/openmpi-5 --with-ft=ulfm --with-pmix=internal --with-prrte=internal \
 *     --with-libevent=internal --with-hwloc=internal --disable-mpi-fortran --disable-oshmem \
 *     --disable-sphinx --disable-io-romio --without-ucx --without-ofi CFLAGS=-O1
 * make -j3 install
 * </pre>
 */
@Tag("ulfm") // script/test leaves it out where there is none
@Execution(ExecutionMode.SAME_THREAD) // its jobs fill the cores
class UlfmIT {
  private static final String FOLDER = "GRADIENTSYNC_TEST_ULFM";

  @ParameterizedTest
  @CsvSource({
    "3, mpi, kill, 1",
    "4, mpi, kill, 3 0",
    "4, shared, kill, 0 2",
    "3, mpi, throw, 1",
  })
  void theOthersGoOn(int size, String reducer, String how, String lost) throws Exception {
    String prefix = System.getenv(FOLDER);
    if (prefix == null) {
      String reason = "SKIPPED: " + FOLDER + " names no Open MPI 5 that lets ranks live";
      System.out.println(reason);
      Assumptions.abort(reason);
    }
    List<String> command = new ArrayList<>();
    command.add(Path.of(prefix, "bin", "mpirun").toString());
    command.addAll(List.of("--with-ft", "ulfm", "--oversubscribe", "--bind-to", "none"));
    command.addAll(List.of("-np", "" + size));
    List<String> options = new ArrayList<>(Mpirun.withoutMpiJar());
    options.add("-Dgradientsync.reducer=" + reducer);
    List<Integer> gone = Stream.of(lost.split(" ")).map(Integer::valueOf).toList();
    List<String> arguments = new ArrayList<>(List.of(how));
    gone.forEach(rank -> arguments.add("" + rank));
    command.addAll(Mpirun.java(options, GoingOn.class, arguments.toArray(String[]::new)));
    Map<String, String> libraries = Map.of("LD_LIBRARY_PATH", Path.of(prefix, "lib").toString());
    Mpirun.Result job = Mpirun.execute(command, libraries, 60);
    assertEquals(how.equals("throw") ? 1 : 0, job.exitCode(), job.output());
    int number = 0;
    for (int rank = 0; rank < size; rank++) {
      if (!gone.contains(rank)) {
        job.expect("rank " + rank + " has averaged as " + number++ + " of " + (size - gone.size()));
      }
    }
  }
}
