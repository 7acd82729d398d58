package org.gradientsync.cuda.internal.nccl;

import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Looks for the NCCL that comes with PyTorch: in the packages of the active environment, of the
 * Python on the path, and of the user and the system. Starts no program.
 */
final class NcclFiles {
  private static final String IN_PACKAGES = "nvidia/nccl/lib/" + NcclLibrary.NAME;

  private final Map<String, String> environment;
  private final List<Path> prefixes;

  /**
   * @param environment variables of the process
   * @param prefixes folders below which Pythons of the user and the system are installed
   */
  NcclFiles(Map<String, String> environment, List<Path> prefixes) {
    this.environment = environment;
    this.prefixes = prefixes;
  }

  static NcclFiles ofProcess() {
    return new NcclFiles(
        System.getenv(),
        List.of(
            Path.of(System.getProperty("user.home"), ".local"),
            Path.of("/usr/local"),
            Path.of("/usr")));
  }

  /** The libraries that are there, the most likely one first. */
  List<Path> find() {
    List<Path> found = new ArrayList<>();
    for (Path prefix : allPrefixes()) {
      for (String lib : List.of("lib", "lib64")) {
        for (Path python : pythons(prefix.resolve(lib))) {
          for (String packages : List.of("site-packages", "dist-packages")) {
            Path file = python.resolve(packages).resolve(IN_PACKAGES);
            if (Files.isRegularFile(file)) {
              found.add(file);
            }
          }
        }
      }
    }
    return found;
  }

  private Set<Path> allPrefixes() {
    Set<Path> all = new LinkedHashSet<>();
    for (String variable : List.of("VIRTUAL_ENV", "CONDA_PREFIX")) {
      addIfAbsolute(all, environment.getOrDefault(variable, ""), "");
    }
    for (String folder : environment.getOrDefault("PATH", "").split(":")) {
      addIfAbsolute(all, folder, "python3");
    }
    all.addAll(prefixes);
    return all;
  }

  /**
   * Adds a folder, or the two prefixes of a program in it: of its link, which belongs to a virtual
   * environment, and of the file.
   */
  private static void addIfAbsolute(Set<Path> all, String folder, String program) {
    try {
      Path path = Path.of(folder);
      if (!path.isAbsolute()) {
        return; // it would depend on the working folder
      }
      if (program.isEmpty()) {
        all.add(path);
      } else if (Files.isExecutable(path.resolve(program))) {
        addParent(all, path);
        addParent(all, path.resolve(program).toRealPath().getParent());
      }
    } catch (InvalidPathException | IOException e) {
      // then it is not there
    }
  }

  private static void addParent(Set<Path> all, Path folder) {
    if (folder != null && folder.getParent() != null) {
      all.add(folder.getParent());
    }
  }

  private static List<Path> pythons(Path lib) {
    List<Path> found = new ArrayList<>();
    try (DirectoryStream<Path> folders = Files.newDirectoryStream(lib, "python3*")) {
      folders.forEach(found::add);
    } catch (IOException | DirectoryIteratorException e) {
      return List.of();
    }
    found.sort(null);
    return found;
  }
}
