package org.gradientsync.internal.host;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Opens files that belong to this user and that nobody else can write to, and refuses all others:
 * another user's, those behind a symbolic link, pipes and folders, and those that are larger than
 * they can be. Whoever can plant a file can choose what is in it.
 */
public final class OwnFiles {
  /** That a group or everybody may write. */
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
   * The files of the user that this process runs as.
   *
   * @return to open files with
   * @throws UncheckedIOException if the user cannot be found out
   */
  public static OwnFiles ofThisUser() {
    return new OwnFiles(ThisUser.ID);
  }

  /**
   * The files of a user.
   *
   * @param user the user's number
   * @return to open files with
   */
  public static OwnFiles of(int user) {
    return new OwnFiles(user);
  }

  /**
   * Opens a file.
   *
   * @param file which must be there
   * @param mostBytes how large it may be
   * @param options for reading or writing what is there
   * @return the open file, which the caller closes
   * @throws IOException if it is not there, or is refused: says why
   */
  public FileChannel open(Path file, long mostBytes, OpenOption... options) throws IOException {
    // Looked at before, because opening a pipe would wait, and after, because somebody could have
    // put another file in its place in between.
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
   * Makes sure that nobody else can put files into a folder.
   *
   * @param folder which must be there, and not behind a symbolic link
   * @throws IOException if it is refused: says why
   */
  public void requireFolder(Path folder) throws IOException {
    require(folder, FOLDER, "a folder");
  }

  /**
   * Whether something belongs to this user.
   *
   * @param path a file, a folder or a symbolic link, which is not followed
   * @return false, too, if it cannot be found out
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

  /** Found out once. */
  private static final class ThisUser {
    static final int ID = find();

    private static int find() {
      try {
        return fromStatus();
      } catch (IOException | RuntimeException e) {
        return fromNewFile();
      }
    }

    /** As whom this process makes files: the last of real, effective, saved and file system's. */
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
      } catch (IOException e) {
        throw new UncheckedIOException("this process's user cannot be found out: " + e, e);
      }
    }
  }
}
