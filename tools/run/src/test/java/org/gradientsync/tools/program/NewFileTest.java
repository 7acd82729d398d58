package org.gradientsync.tools.program;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests files that can be written, and files that cannot. */
class NewFileTest {
  @TempDir Path folder;

  @Test
  void writesAFileAndReplacesIt() throws IOException {
    Path file = folder.resolve("file");
    NewFile.write(file, "longer than the next");
    NewFile.write(file, "next");
    assertEquals("next", Files.readString(file));
  }

  @Test
  void leavesNoHalfFile() {
    Path file = folder.resolve("file");
    IOException full = new IOException("no space left");
    NewFile.Content half =
        out -> {
          out.write(new byte[100]);
          throw full;
        };
    assertEquals(full, assertThrows(IOException.class, () -> NewFile.write(file, half)));
    assertFalse(Files.exists(file));
  }

  @Test
  void deletesNoDevice() {
    Path device = Path.of("/dev/full");
    assertThrows(IOException.class, () -> NewFile.write(device, "text"));
    assertTrue(Files.exists(device));
  }
}
