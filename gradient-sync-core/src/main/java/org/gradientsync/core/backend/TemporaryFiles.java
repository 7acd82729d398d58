package org.gradientsync.core.backend;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Files and folders in the temporary folder that only this user can access, with names that cannot
 * be guessed. Their creator deletes them. Those of a killed process are deleted by the next process
 * of this user that creates one for the same purpose.
 */
public final class TemporaryFiles {
  private static final Path BOOT = Path.of("/proc/sys/kernel/random/boot_id");
  private static final int BOOT_LENGTH = 36;

  private final Path folder;
  private final String prefix;

  /**
   * Files in the JVM's temporary folder.
   *
   * @param purpose part of the names
   */
  public TemporaryFiles(String purpose) {
    this(Path.of(System.getProperty("java.io.tmpdir")), purpose);
  }

  /**
   * Files in a folder.
   *
   * @param folder other users may create files there, too
   * @param purpose part of the names
   */
  public TemporaryFiles(Path folder, String purpose) {
    this.folder = folder;
    // The boot id: other machines may see the same folder, and reuse process ids.
    String boot = boot();
    prefix =
        "gradient-sync-%s-%s-"
            .formatted(purpose, boot.isEmpty() ? "unknown" : boot.substring(0, 8));
  }

  /**
   * {@return a new, empty folder, {@code rwx------}}
   *
   * @throws IOException if it cannot be created
   */
  public Path createFolder() throws IOException {
    deleteStaleFiles();
    return Files.createTempDirectory(folder, name(), OwnFiles.mode(folder, "rwx------"));
  }

  /**
   * {@return a new, empty file, {@code rw-------}}
   *
   * @param suffix of its name
   * @throws IOException if it cannot be created
   */
  public Path createFile(String suffix) throws IOException {
    deleteStaleFiles();
    return Files.createTempFile(folder, name(), suffix, OwnFiles.mode(folder, "rw-------"));
  }

  private void deleteStaleFiles() {
    ProcessFileNames.deleteStaleFiles(folder, prefix, OwnFiles.ofThisUser());
  }

  private String name() {
    return ProcessFileNames.of(prefix, ProcessHandle.current().pid());
  }

  /** {@return the id of the machine's last start, 36 characters, or empty if there is none} */
  public static String boot() {
    try {
      String id = Files.readString(BOOT, StandardCharsets.US_ASCII).strip();
      return id.length() == BOOT_LENGTH ? id : "";
    } catch (IOException | RuntimeException e) {
      return "";
    }
  }
}
