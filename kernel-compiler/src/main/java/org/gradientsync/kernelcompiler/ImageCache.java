package org.gradientsync.kernelcompiler;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.time.Instant;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * A cache of compiled kernels in a folder. A file's name is a hash of everything that the result
 * depends on, then the version of NVRTC. Safe for use by several threads and processes.
 */
final class ImageCache {
  private static final Duration MAX_UNUSED = Duration.ofDays(30);

  private final Path folder;

  ImageCache(Path folder) throws IOException {
    this.folder = Files.createDirectories(folder);
  }

  /** Finds what a version of NVRTC has compiled. */
  Optional<byte[]> find(Source source, Target target, Version version) throws IOException {
    return read(folder.resolve(name(source, target, version.toString())));
  }

  /** Finds what any version of NVRTC has compiled. */
  Optional<byte[]> findOfAny(Source source, Target target) throws IOException {
    String prefix = name(source, target, "");
    for (Path file : files()) {
      if (file.getFileName().toString().startsWith(prefix)) {
        return read(file);
      }
    }
    return Optional.empty();
  }

  private static Optional<byte[]> read(Path file) throws IOException {
    if (!Files.exists(file)) {
      return Optional.empty();
    }
    Files.setLastModifiedTime(file, FileTime.from(Instant.now()));
    return Optional.of(Files.readAllBytes(file));
  }

  void put(Source source, Target target, Version version, byte[] image) throws IOException {
    Path file = folder.resolve(name(source, target, version.toString()));
    Path temporary = Files.createTempFile(folder, "new", ".part");
    Files.write(temporary, image);
    Files.move(temporary, file, StandardCopyOption.ATOMIC_MOVE); // readers never see a part
  }

  /** Deletes files that no build has used for 30 days. */
  void deleteUnused() throws IOException {
    Instant oldest = Instant.now().minus(MAX_UNUSED);
    for (Path file : files()) {
      if (Files.getLastModifiedTime(file).toInstant().isBefore(oldest)) {
        Files.deleteIfExists(file);
      }
    }
  }

  private List<Path> files() throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files.sorted().toList();
    } catch (UncheckedIOException e) {
      throw e.getCause();
    }
  }

  private static String name(Source source, Target target, String version) {
    MessageDigest digest = sha256();
    add(digest, source.text());
    source
        .headers()
        .forEach(
            (name, text) -> {
              add(digest, name);
              add(digest, text);
            });
    target.options().forEach(option -> add(digest, option));
    add(digest, target.file("")); // its suffix says whether the file is compressed
    if (target.isPtx()) {
      add(digest, "no counts"); // caches may have PTX of an earlier build, with them
    }
    return HexFormat.of().formatHex(digest.digest()) + "-" + version;
  }

  private static void add(MessageDigest digest, String text) {
    digest.update(text.getBytes(StandardCharsets.UTF_8));
    digest.update((byte) 0);
  }

  private static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e); // every Java has it
    }
  }
}
