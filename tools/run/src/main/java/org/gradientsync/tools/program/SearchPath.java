package org.gradientsync.tools.program;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.stream.Stream;

/** Files in folders that are listed as in the variable PATH. */
public final class SearchPath {
  private SearchPath() {}

  /** Returns the files of a name, in the order of the folders. */
  public static Stream<Path> find(String folders, String name) {
    return Arrays.stream(folders.split(File.pathSeparator))
        .filter(folder -> !folder.isEmpty())
        .map(folder -> Path.of(folder, name))
        .filter(file -> Files.exists(file) && !Files.isDirectory(file));
  }
}
