package org.gradientsync.internal.host;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;

/**
 * Files and folders in the temporary folder that only this user can access, with names that cannot
 * be guessed. Their creator deletes them. Those of a killed process are deleted by the next process
 * of this user that creates one for the same purpose.
 */
public final class TemporaryFiles {
  private static final Path BOOT = Path.of("/proc/sys/kernel/random/boot_id");

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
    prefix = "gradient-sync-" + purpose + "-" + boot() + "-";
  }

  /** Creates an empty folder, {@code rwx------}. */
  public Path createFolder() throws IOException {
    deleteStaleFiles();
    return Files.createTempDirectory(folder, name(), only("rwx------"));
  }

  /**
   * Creates an empty file, {@code rw-------}.
   *
   * @param suffix of its name
   */
  public Path createFile(String suffix) throws IOException {
    deleteStaleFiles();
    return Files.createTempFile(folder, name(), suffix, only("rw-------"));
  }

  private void deleteStaleFiles() {
    ProcessFileNames.deleteStaleFiles(folder, prefix, OwnFiles.ofThisUser());
  }

  private String name() {
    return ProcessFileNames.of(prefix, ProcessHandle.current().pid());
  }

  private static FileAttribute<Set<java.nio.file.attribute.PosixFilePermission>> only(String mode) {
    return PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString(mode));
  }

  private static String boot() {
    try {
      return Files.readString(BOOT, StandardCharsets.US_ASCII).substring(0, 8);
    } catch (IOException | RuntimeException e) {
      return "unknown";
    }
  }
}
