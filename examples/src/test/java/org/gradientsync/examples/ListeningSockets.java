package org.gradientsync.examples;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.gradientsync.GradientSync;

/** A rank that prints its own sockets to which another machine could connect. */
final class ListeningSockets {
  private static final String LISTENING = "0A";

  private ListeningSockets() {}

  public static void main(String[] args) throws IOException {
    try (GradientSync sync = GradientSync.create()) {
      System.out.println("rank " + sync.rank() + " of " + sync.size() + " listens at " + open());
      sync.barrier();
    }
  }

  /** Reads the kernel's tables, whose second column is the address. */
  private static List<String> open() throws IOException {
    Set<String> own = new HashSet<>();
    try (Stream<Path> files = Files.list(Path.of("/proc/self/fd"))) {
      for (Path file : files.toList()) {
        // The listing's own descriptor is already closed.
        if (Files.exists(file, LinkOption.NOFOLLOW_LINKS)) {
          own.add(Files.readSymbolicLink(file).toString());
        }
      }
    }
    return Stream.concat(lines("/proc/net/tcp"), lines("/proc/net/tcp6"))
        .map(line -> line.strip().split("\\s+"))
        .filter(c -> c[3].equals(LISTENING) && own.contains("socket:[" + c[9] + "]"))
        .map(columns -> columns[1])
        .filter(address -> !isLoopback(address))
        .toList();
  }

  private static Stream<String> lines(String table) throws IOException {
    Path file = Path.of(table);
    return Files.exists(file) ? Files.readAllLines(file).stream().skip(1) : Stream.empty();
  }

  /**
   * Returns whether an address is 127.0.0.1 or ::1, in the kernel's format on either byte order.
   */
  private static boolean isLoopback(String address) {
    return address.matches("(0100007F|7F000001|0{24}01000000|0{31}1):.*");
  }
}
