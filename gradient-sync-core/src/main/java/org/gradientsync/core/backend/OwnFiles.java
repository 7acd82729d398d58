package org.gradientsync.core.backend;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Opens files that belong to this user and that no other user can write to. Refuses all others:
 * files of other users, symbolic links, pipes, folders, and files above a maximum size. A user who
 * can plant a file controls its contents.
 */
public final class OwnFiles {
  /** Write permission of the group or of others. */
  private static final int OTHERS_WRITE = 0022;

  private static final int KIND = 0170000;
  private static final int FILE = 0100000;
  private static final int FOLDER = 0040000;
  private static final int LINK = 0120000;

  private final int user;

  private OwnFiles(int user) {
    this.user = user;
  }

  /**
   * {@return the files of the user that this process runs as}
   *
   * @throws UncheckedIOException if the user cannot be determined
   */
  public static OwnFiles ofThisUser() {
    return new OwnFiles(ThisUser.ID);
  }

  /**
   * {@return the permissions for a new file or folder; none where the file system has no such
   * permissions, as on Windows, where a folder's access list counts}
   *
   * @param path the file or folder to create
   * @param permissions for example {@code rwx------}
   */
  public static FileAttribute<?>[] mode(Path path, String permissions) {
    return path.getFileSystem().supportedFileAttributeViews().contains("posix")
        ? new FileAttribute<?>[] {
          PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString(permissions))
        }
        : new FileAttribute<?>[0];
  }

  /**
   * {@return the files of a user}
   *
   * @param user the id of the user
   */
  public static OwnFiles of(int user) {
    return new OwnFiles(user);
  }

  /**
   * Opens a file.
   *
   * @param file must exist
   * @param mostBytes its maximum size
   * @param options for reading or writing an existing file
   * @return the open file, which the caller closes
   * @throws IOException if it does not exist or is refused; the message gives the reason
   */
  public FileChannel open(Path file, long mostBytes, OpenOption... options) throws IOException {
    // Checked before opening, because opening a pipe would block, and after, because another user
    // could have replaced the file in between.
    Map<String, Object> before = require(file, FILE, "a file");
    List<OpenOption> all = new ArrayList<>(List.of(options));
    all.add(LinkOption.NOFOLLOW_LINKS);
    FileChannel channel = FileChannel.open(file, all.toArray(OpenOption[]::new));
    try {
      Map<String, Object> after = require(file, FILE, "a file");
      if (!before.get("ino").equals(after.get("ino"))
          || !before.get("dev").equals(after.get("dev"))) {
        throw refusal(file, "it was replaced while it was opened");
      }
      if (channel.size() > mostBytes) {
        throw refusal(file, "it is too large: bytes=" + channel.size() + ", most=" + mostBytes);
      }
      return channel;
    } catch (IOException | RuntimeException e) {
      channel.close();
      throw e;
    }
  }

  /**
   * Requires a folder to which no other user can add files.
   *
   * @param folder must exist, and must not be a symbolic link
   * @throws IOException if it is refused; the message gives the reason
   */
  public void requireFolder(Path folder) throws IOException {
    require(folder, FOLDER, "a folder");
  }

  /**
   * Whether a file, a folder or a symbolic link belongs to this user. False if that cannot be
   * determined.
   */
  boolean owns(Path path) {
    try {
      return attributes(path).get("uid").equals(user);
    } catch (IOException | RuntimeException e) {
      return false;
    }
  }

  private Map<String, Object> require(Path path, int kind, String text) throws IOException {
    Map<String, Object> attributes = attributes(path);
    int mode = (int) attributes.get("mode");
    if ((mode & KIND) == FOLDER && kind != FOLDER) {
      throw new IOException("it is a folder, not " + text + ": file=" + path);
    }
    if ((mode & KIND) != kind) {
      throw refusal(path, (mode & KIND) == LINK ? "it is a symbolic link" : "it is not " + text);
    }
    if (!attributes.get("uid").equals(user)) {
      throw refusal(
          path, "it is another user's: owner=" + attributes.get("uid") + ", user=" + user);
    }
    if ((mode & OTHERS_WRITE) != 0) {
      throw refusal(
          path, "other users can write to it: mode=" + Integer.toOctalString(mode & 07777));
    }
    return attributes;
  }

  private static Map<String, Object> attributes(Path path) throws IOException {
    return Files.readAttributes(path, "unix:mode,uid,ino,dev", LinkOption.NOFOLLOW_LINKS);
  }

  private static IOException refusal(Path path, String reason) {
    return new IOException(
        "not trusted: file=" + path + ", " + reason + "; delete it, or copy it if you trust it");
  }

  /** Determined once. */
  private static final class ThisUser {
    static final int ID = find();
    private static final int NO_IDS = -1; // as on Windows, where this user owns no file, therefore

    private static int find() {
      try {
        return fromStatus();
      } catch (IOException | RuntimeException e) {
        return fromNewFile();
      }
    }

    /** The user of new files: the last of the real, effective, saved and file system ids. */
    private static int fromStatus() throws IOException {
      for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
        if (line.startsWith("Uid:")) {
          return Integer.parseUnsignedInt(line.substring(line.lastIndexOf('\t') + 1).trim());
        }
      }
      throw new IOException("no user in /proc/self/status");
    }

    private static int fromNewFile() {
      try {
        Path file = Files.createTempFile("gradient-sync-user", "");
        try {
          return (int) attributes(file).get("uid");
        } finally {
          Files.delete(file);
        }
      } catch (UnsupportedOperationException e) {
        return NO_IDS;
      } catch (IOException e) {
        throw new UncheckedIOException("this process's user cannot be found out: " + e, e);
      }
    }
  }
}
