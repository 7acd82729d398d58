package org.gradientsync.internal.host;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;

/**
 * Files and folders in the temporary folder that only this user can reach, with names that cannot
 * be guessed. Who makes one deletes it; what a killed process has left is deleted by the next one
 * of this user that makes one for the same purpose.
 */
public final class TemporaryFiles {
  private static final Path BOOT = Path.of("/proc/sys/kernel/random/boot_id");

  private final Path folder;
  private final String prefix;

  /**
   * Files in the JVM's temporary folder.
   *
   * @param purpose a word for the name
   */
  public TemporaryFiles(String purpose) {
    this(Path.of(System.getProperty("java.io.tmpdir")), purpose);
  }

  /**
   * Files in a folder.
   *
   * @param folder where others may make files, too
   * @param purpose a word for the name
   */
  public TemporaryFiles(Path folder, String purpose) {
    this.folder = folder;
    // Of this machine since it started: others may see the same folder, and count processes anew.
    prefix = "gradient-sync-" + purpose + "-" + boot() + "-";
  }

  /**
   * Makes a folder, {@code rwx------}.
   *
   * @return the empty folder
   * @throws IOException if it cannot be made
   */
  public Path createFolder() throws IOException {
    deleteStaleFiles();
    return Files.createTempDirectory(folder, name(), only("rwx------"));
  }

  /**
   * Makes a file, {@code rw-------}.
   *
   * @param suffix how its name ends
   * @return the empty file
   * @throws IOException if it cannot be made
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
