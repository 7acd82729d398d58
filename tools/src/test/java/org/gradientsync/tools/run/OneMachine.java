package org.gradientsync.tools.run;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Stands for several hosts. */
final class OneMachine {
  /** What an ssh does that reaches this machine, with an environment of its own. */
  static final String HERE = "shift\nexec env -i HOME=\"$HOME\" PATH=\"$PATH\" sh -c \"$*\"\n";

  private OneMachine() {}

  /**
   * Makes a program {@code ssh}, which adds each host's name to the file {@code hosts}.
   *
   * @param connects shell commands, whose arguments are the host and the command there
   * @return the folder of the program, for the PATH
   */
  static Path ssh(Path folder, String connects) throws IOException {
    Path ssh = Files.createDirectories(folder.resolve("bin")).resolve("ssh");
    Files.writeString(
        ssh,
        "#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do [ \"$1\" != -o ] || shift; shift; done\n"
            + ("echo \"$1\" >>'" + folder.resolve("hosts") + "'\n")
            + connects);
    assertTrue(ssh.toFile().setExecutable(true));
    return ssh.getParent();
  }
}
