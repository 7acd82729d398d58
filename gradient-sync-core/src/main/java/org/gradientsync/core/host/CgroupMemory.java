package org.gradientsync.core.host;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The memory that the control groups of this process leave it. Containers and batch systems limit
 * memory with them, and Linux kills a process of a group that exceeds its limit. Files in /dev/shm
 * count. Supports versions 1 and 2; the ancestors of a group limit it, too.
 */
final class CgroupMemory {
  /**
   * The memory that a group has left.
   *
   * @param bytes memory that its processes can still take, swap included
   * @param limit its limit, in bytes
   * @param file the file with the limit
   */
  record Left(long bytes, long limit, Path file) {}

  private static final Pattern OCTAL = Pattern.compile("\\\\([0-7]{3})");

  private final Path root;

  /**
   * @param root the root of the file system
   */
  CgroupMemory(Path root) {
    this.root = root;
  }

  /**
   * The group with the least memory left.
   *
   * @param swapFree the machine's free swap, in bytes
   * @return empty if there is no limit, or none that can be read
   */
  Optional<Left> least(long swapFree) {
    Left least = null;
    try {
      for (String mount : lines("proc/self/mountinfo")) {
        String[] fields = mount.split(" ");
        int dash = List.of(fields).indexOf("-");
        boolean second = fields[dash + 1].equals("cgroup2");
        boolean first =
            fields[dash + 1].equals("cgroup")
                && List.of(fields[dash + 3].split(",")).contains("memory");
        if (first || second) {
          for (Path group : groups(unescaped(fields[3]), unescaped(fields[4]), second)) {
            Left left = second ? leftInSecond(group, swapFree) : leftInFirst(group, swapFree);
            if (left != null && (least == null || left.bytes < least.bytes)) {
              least = left;
            }
          }
        }
      }
    } catch (IOException | RuntimeException e) {
      return Optional.ofNullable(least); // not Linux, or not readable
    }
    return Optional.ofNullable(least);
  }

  /** The mounted folders of this process's group and of its ancestors. */
  private List<Path> groups(String mountRoot, String mountPoint, boolean second)
      throws IOException {
    List<Path> groups = new ArrayList<>();
    Path top = root.resolve(mountPoint.substring(1));
    String above = mountRoot.equals("/") ? "" : mountRoot;
    for (String line : lines("proc/self/cgroup")) {
      String[] fields = line.split(":", 3);
      boolean own =
          second
              ? fields[0].equals("0") && fields[1].isEmpty()
              : List.of(fields[1].split(",")).contains("memory");
      if (own && (fields[2] + "/").startsWith(above + "/")) {
        String below = fields[2].substring(above.length());
        Path group = top.resolve("." + below).normalize();
        // A container may see the path of its group from outside, but has only its own group
        // mounted.
        boolean there = group.startsWith(top) && Files.isDirectory(group);
        for (Path each = there ? group : top; each.startsWith(top); each = each.getParent()) {
          groups.add(each);
        }
      }
    }
    return groups;
  }

  private static Left leftInSecond(Path group, long swapFree) {
    Path file = group.resolve("memory.max");
    long limit = number(file);
    long used = number(group.resolve("memory.current"));
    if (limit == Long.MAX_VALUE || used == Long.MAX_VALUE) {
      return null;
    }
    long swap = number(group.resolve("memory.swap.max"));
    if (swap != Long.MAX_VALUE) {
      swap = Math.max(0, swap - number(group.resolve("memory.swap.current")));
    }
    long left = limit - used + cached(group, "");
    long bytes = left + Math.min(Math.min(swap, swapFree), Long.MAX_VALUE - limit); // if unknown
    return new Left(bytes, limit, file);
  }

  private static Left leftInFirst(Path group, long swapFree) {
    Path file = group.resolve("memory.limit_in_bytes");
    long limit = number(file);
    long used = number(group.resolve("memory.usage_in_bytes"));
    if (limit == Long.MAX_VALUE || used == Long.MAX_VALUE) {
      return null;
    }
    long cached = cached(group, "total_");
    long bytes = limit - used + cached + Math.min(swapFree, Long.MAX_VALUE - limit);
    long withSwap = number(group.resolve("memory.memsw.limit_in_bytes"));
    if (withSwap != Long.MAX_VALUE) {
      long usedWithSwap = number(group.resolve("memory.memsw.usage_in_bytes"));
      bytes = Math.min(bytes, withSwap - usedWithSwap + cached);
    }
    return new Left(bytes, limit, file);
  }

  /** File contents, which Linux drops when a group needs memory. Excludes /dev/shm. */
  private static long cached(Path group, String prefix) {
    long bytes = 0;
    try {
      for (String line : Files.readAllLines(group.resolve("memory.stat"))) {
        if (line.startsWith(prefix + "active_file ")
            || line.startsWith(prefix + "inactive_file ")) {
          bytes += Long.parseLong(line.substring(line.indexOf(' ') + 1));
        }
      }
    } catch (IOException | RuntimeException e) {
      return 0;
    }
    return bytes;
  }

  /** The maximum if there is no limit, or none that can be read. */
  private static long number(Path file) {
    try {
      return Long.parseLong(Files.readString(file).strip());
    } catch (IOException | RuntimeException e) {
      return Long.MAX_VALUE; // for example "max"
    }
  }

  private List<String> lines(String file) throws IOException {
    return Files.readAllLines(root.resolve(file), StandardCharsets.ISO_8859_1);
  }

  private static String unescaped(String path) {
    return OCTAL
        .matcher(path)
        .replaceAll(
            found ->
                Matcher.quoteReplacement(
                    String.valueOf((char) Integer.parseInt(found.group(1), 8))));
  }
}
