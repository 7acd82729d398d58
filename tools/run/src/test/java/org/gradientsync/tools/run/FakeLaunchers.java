package org.gradientsync.tools.run;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Scripts that print what the launchers of several MPIs print with {@code --version}. */
final class FakeLaunchers {
  static final String OPEN_MPI_4 =
      "mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/";
  static final String OPEN_MPI_5 =
      "mpirun (Open MPI) 5.0.7\n\nReport bugs to https://www.open-mpi.org/community/help/";
  static final String HYDRA =
      "HYDRA build details:\n    Version:                                 4.0.2\n"
          + "    Release Date:                            Thu Apr  7 12:34:45 CDT 2022";
  static final String INTEL =
      "Intel(R) MPI Library for Linux* OS, Version 2021.11 Build 20231005 (id: 74c4a23)";
  static final String SLURM = "slurm-wlm 22.05.8";

  private FakeLaunchers() {}

  static Path make(Path file, String version) throws IOException {
    return make(file, version, 0);
  }

  static Path make(Path file, String version, int code) throws IOException {
    Files.createDirectories(file.getParent());
    Files.writeString(file, "#!/bin/sh\ncat <<'END'\n" + version + "\nEND\nexit " + code + "\n");
    if (!file.toFile().setExecutable(true)) {
      throw new IOException("cannot make it executable: " + file);
    }
    return file;
  }
}
