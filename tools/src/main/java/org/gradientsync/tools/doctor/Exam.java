package org.gradientsync.tools.doctor;

import java.time.Duration;
import java.util.List;
import java.util.Map;

/** Runs the checks that one rank can make by itself. */
final class Exam {
  static final String CUDA_AWARE_CHECK = "CUDA-aware MPI";

  private final Place place;
  private final Clock clock;
  private final Mpi mpi;

  Exam(Place place, Clock clock, Map<String, String> environment) {
    this.place = place;
    this.clock = clock;
    mpi = new Mpi(environment);
  }

  /**
   * Runs the checks.
   *
   * @param facts receives the facts, step by step
   */
  void run(Facts facts) {
    Duration quick = Duration.ofSeconds(5);
    Duration trial = Duration.ofSeconds(18);
    facts.addAll(
        clock.run(
            List.of(
                new Check("JDK", quick, Host::jdk),
                new Check("machine", quick, Host::machine),
                new Check("CPU binding", quick, Host::cpus),
                new Check("/dev/shm", quick, Host::sharedMemory),
                new Check("settings", quick, Host::settings),
                new Check("Open MPI", trial, mpi::check),
                new Check("GPUs", trial, Gpus::list)),
            0.4));
    boolean gpus = Gpus.areUsable(facts);
    boolean bindings = facts.get(Mpi.MPI, Mpi.BINDINGS).equals(Mpi.USABLE);
    if (!gpus || !bindings) {
      facts.add(
          Mpi.MPI,
          Mpi.CUDA_AWARE,
          "not tried: " + (gpus ? "the Java bindings are not usable" : "no GPU is usable"));
    }
    if (!gpus || !place.isFirstOfNode()) {
      return; // the first rank of a node checks for all
    }
    if (bindings) {
      facts.addAll(
          clock.run(
              List.of(new Check(CUDA_AWARE_CHECK, Duration.ofSeconds(13), mpi::checkCudaAware)),
              0.55));
    }
    // In sequence, because they would disturb each other's times.
    facts.addAll(clock.run(List.of(new Check("links", Duration.ofSeconds(16), Gpus::links)), 0.65));
  }

  /** Returns the folder of Open MPI's Java library, if the JVM does not find it by itself. */
  String libraries() {
    return mpi.libraries();
  }
}
