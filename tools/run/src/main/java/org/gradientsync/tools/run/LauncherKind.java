package org.gradientsync.tools.run;

/** The kinds of programs that start ranks, by the words of their options. */
enum LauncherKind {
  OPEN_MPI("Open MPI"),
  HYDRA("MPICH"),
  SLURM("Slurm");

  private final String title;

  LauncherKind(String title) {
    this.title = title;
  }

  @Override
  public String toString() {
    return title;
  }
}
