package org.gradientsync.tools.program;

import static java.nio.file.LinkOption.NOFOLLOW_LINKS;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** Writes files completely or not at all: if writing fails, it deletes the file. */
public final class NewFile {
  private NewFile() {}

  /** Writes the content of a file. */
  public interface Content {
    void writeTo(OutputStream out) throws IOException;
  }

  public static void write(Path file, String text) throws IOException {
    write(file, out -> out.write(text.getBytes(StandardCharsets.UTF_8)));
  }

  public static void write(Path file, Content content) throws IOException {
    try (OutputStream out = Files.newOutputStream(file)) {
      content.writeTo(out);
    } catch (IOException | RuntimeException e) {
      if (Files.isRegularFile(file, NOFOLLOW_LINKS)) { // but no device or pipe
        Files.deleteIfExists(file);
      }
      throw e;
    }
  }
}
