package org.gradientsync.tools.doctor;

import java.util.List;
import java.util.Map;

/** Runs the checks that one rank can make by itself. */
final class Exam {
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
    facts.addAll(
        clock.run(
            List.of(
                new Check("JDK", Host::jdk),
                new Check("machine", Host::machine),
                new Check("CPU binding", Host::cpus),
                new Check("/dev/shm", Host::sharedMemory),
                new Check("settings", Host::settings),
                new Check("Open MPI", mpi::check),
                new Check("GPUs", Gpus::list)),
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
      facts.addAll(clock.run(List.of(new Check("CUDA-aware MPI", mpi::checkCudaAware)), 0.55));
    }
    // In sequence, because they would disturb each other's times.
    facts.addAll(clock.run(List.of(new Check("links", Gpus::links)), 0.65));
  }

  /** Returns the folder of Open MPI's Java library, if the JVM does not find it by itself. */
  String libraries() {
    return mpi.libraries();
  }
}
