package org.gradientsync.kernelcompiler;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Stream;

/**
 * The list of modules in the file {@code kernels.txt} beside the sources. Each line gives a
 * module's name, the file that it includes, and, if that is a header, the macros that define the
 * kernels. A {@code #} begins a comment.
 */
final class KernelTable {
  private static final SortedMap<String, String> STANDARD_HEADERS =
      new TreeMap<>(
          Map.of(
              "climits",
              """
              #pragma once
              #define INT_MAX 2147483647
              """,
              "cstdint",
              """
              #pragma once
              typedef signed char int8_t;
              typedef unsigned char uint8_t;
              typedef short int16_t;
              typedef unsigned short uint16_t;
              typedef int int32_t;
              typedef unsigned int uint32_t;
              typedef long int64_t;
              typedef unsigned long uint64_t;
              typedef long intptr_t;
              typedef unsigned long uintptr_t;
              """));

  private KernelTable() {}

  /** The modules in a folder's table. */
  static List<Source> read(Path folder) throws IOException, BuildException {
    Path table = folder.resolve("kernels.txt");
    SortedMap<String, String> files = files(folder);
    List<Source> sources = new ArrayList<>();
    Set<String> names = new HashSet<>();
    int number = 0;
    for (String line : Files.readAllLines(table)) {
      number++;
      String text = line.replaceFirst("#.*", "").strip();
      if (text.isEmpty()) {
        continue;
      }
      String[] words = text.split("\\s+", 3);
      if (words.length < 2 || !files.containsKey(words[1]) || !names.add(words[0])) {
        throw new BuildException(
            table
                + ", line "
                + number
                + ": a line names a module that no other line does, then a file beside the table.");
      }
      String macros = words.length == 3 ? words[2] : "";
      sources.add(new Source(words[0], "#include \"" + words[1] + "\"\n" + macros + "\n", files));
    }
    return sources;
  }

  /** A module for each {@code .cu} file in a folder. */
  static List<Source> programs(Path folder) throws IOException {
    SortedMap<String, String> files = files(folder);
    return files.entrySet().stream()
        .filter(file -> file.getKey().endsWith(".cu"))
        .map(file -> new Source(file.getKey().replace(".cu", ""), file.getValue(), headers(files)))
        .toList();
  }

  private static SortedMap<String, String> headers(SortedMap<String, String> files) {
    SortedMap<String, String> headers = new TreeMap<>(files);
    headers.keySet().removeIf(name -> name.endsWith(".cu"));
    return headers;
  }

  private static SortedMap<String, String> files(Path folder) throws IOException {
    SortedMap<String, String> files = new TreeMap<>(STANDARD_HEADERS);
    try (Stream<Path> all = Files.list(folder)) {
      for (Path file : all.sorted().toList()) {
        String name = file.getFileName().toString();
        if (name.endsWith(".cu") || name.endsWith(".cuh")) {
          files.put(name, Files.readString(file));
        }
      }
    }
    return files;
  }
}
