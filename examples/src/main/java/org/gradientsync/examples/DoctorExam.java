package org.gradientsync.examples;

import java.time.Duration;
import java.util.List;
import java.util.Map;

/** Collects what one rank can find out by itself. */
final class DoctorExam {
  static final String CUDA_AWARE_CHECK = "CUDA-aware MPI";

  private final DoctorPlace place;
  private final DoctorClock clock;
  private final DoctorMpi mpi;

  DoctorExam(DoctorPlace place, DoctorClock clock, Map<String, String> environment) {
    this.place = place;
    this.clock = clock;
    mpi = new DoctorMpi(environment);
  }

  /**
   * Looks and tries.
   *
   * @param facts where it goes, step by step
   */
  void run(DoctorFacts facts) {
    Duration quick = Duration.ofSeconds(5);
    Duration trial = Duration.ofSeconds(18);
    facts.addAll(
        clock.run(
            List.of(
                new DoctorCheck("JDK", quick, DoctorHost::jdk),
                new DoctorCheck("machine", quick, DoctorHost::machine),
                new DoctorCheck("CPU binding", quick, DoctorHost::cpus),
                new DoctorCheck("/dev/shm", quick, DoctorHost::sharedMemory),
                new DoctorCheck("settings", quick, DoctorHost::settings),
                new DoctorCheck("Open MPI", trial, mpi::check),
                new DoctorCheck("GPUs", trial, DoctorGpus::list)),
            0.4));
    boolean gpus = DoctorGpus.areUsable(facts);
    boolean bindings = facts.get(DoctorMpi.MPI, DoctorMpi.BINDINGS).equals(DoctorMpi.USABLE);
    if (!gpus || !bindings) {
      facts.add(
          DoctorMpi.MPI,
          DoctorMpi.CUDA_AWARE,
          "not tried: " + (gpus ? "the Java bindings are not usable" : "no GPU is usable"));
    }
    if (!gpus || !place.isFirstOfNode()) {
      return; // the first rank of a node tries for all
    }
    if (bindings) {
      facts.addAll(
          clock.run(
              List.of(
                  new DoctorCheck(CUDA_AWARE_CHECK, Duration.ofSeconds(13), mpi::checkCudaAware)),
              0.55));
    }
    // One after the other: each would disturb the other's times.
    facts.addAll(
        clock.run(
            List.of(new DoctorCheck("links", Duration.ofSeconds(16), DoctorGpus::links)), 0.65));
  }

  /** Where the library of Open MPI's Java bindings is, if the JVM does not find it by itself. */
  String libraries() {
    return mpi.libraries();
  }
}
