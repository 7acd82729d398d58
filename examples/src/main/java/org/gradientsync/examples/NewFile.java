package org.gradientsync.examples;

import static java.nio.file.LinkOption.NOFOLLOW_LINKS;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** Writes files of which there is no half: one that cannot be written to its end is deleted. */
final class NewFile {
  private NewFile() {}

  /** What is written. */
  interface Content {
    void writeTo(OutputStream out) throws IOException;
  }

  static void write(Path file, String text) throws IOException {
    write(file, out -> out.write(text.getBytes(StandardCharsets.UTF_8)));
  }

  static void write(Path file, Content content) throws IOException {
    try (OutputStream out = Files.newOutputStream(file)) {
      content.writeTo(out);
    } catch (IOException | RuntimeException e) {
      if (Files.isRegularFile(file, NOFOLLOW_LINKS)) { // and no device or pipe
        Files.deleteIfExists(file);
      }
      throw e;
    }
  }
}
