package org.gradientsync.kernelcompiler;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;

/**
 * Compiles the CUDA kernels. The build calls it with three arguments:
 *
 * <ul>
 *   <li>{@code library SOURCES OUTPUT} compiles each module of {@code SOURCES/kernels.txt} to
 *       machine code for some GPUs and to PTX for others; the variable {@code GRADIENTSYNC_KERNELS}
 *       names some of these, for example {@code sm_90,compute_90};
 *   <li>{@code programs SOURCES OUTPUT} compiles each {@code .cu} in SOURCES to PTX.
 * </ul>
 *
 * <p>It deletes all other kernels in OUTPUT. It does not compile a module again if {@code
 * ~/.cache/gradient-sync/kernels} has it from the same sources and the same version of NVRTC, or,
 * without NVRTC, from any version.
 */
public final class KernelCompiler {
  private record Job(Source source, Target target, String file) {}

  /** Finds the compiler when it is first needed. */
  interface Finder {
    Compiler find() throws BuildException;
  }

  private final ImageCache cache;
  private final List<Target> targets;
  private final Finder finder;
  private Compiler compiler;
  private BuildException failure;
  private int compiled;

  /**
   * Creates a compiler.
   *
   * @param cache the folder of the cache
   * @param targets of the library
   */
  KernelCompiler(Path cache, List<Target> targets, Finder finder) throws IOException {
    this.cache = new ImageCache(cache);
    this.targets = targets;
    this.finder = finder;
  }

  /**
   * Compiles the kernels of a folder.
   *
   * @param args {@code library} or {@code programs}, the folder of the sources, the output folder
   * @throws BuildException if a kernel does not compile, or NVRTC is needed and missing
   * @throws IOException if files cannot be read or written
   * @throws InterruptedException if the thread is interrupted
   */
  public static void main(String[] args) throws BuildException, IOException, InterruptedException {
    if (args.length != 3 || !Set.of("library", "programs").contains(args[0])) {
      throw new IllegalArgumentException("usage: library|programs SOURCES OUTPUT");
    }
    long start = System.nanoTime();
    Path cache = cacheFolder(System::getenv);
    KernelCompiler compiler =
        new KernelCompiler(
            cache.resolve("kernels"),
            Target.library(System.getenv("GRADIENTSYNC_KERNELS")),
            () -> Nvrtc.find(System.getenv("NVRTC_LIBRARY"), Nvrtc.folders(System::getenv, cache)));
    if (args[0].equals("library") && compiler.targets.size() < Target.LIBRARY.size()) {
      System.out.println("kernel-compiler: not for all GPUs, by GRADIENTSYNC_KERNELS");
    }
    int files = compiler.build(args[0].equals("library"), Path.of(args[1]), Path.of(args[2]));
    if (compiler.compiled() > 0) {
      System.out.printf(
          Locale.ROOT,
          "kernel-compiler: compiled %d of %d files of kernels in %.0f s%n",
          compiler.compiled(),
          files,
          (System.nanoTime() - start) / 1e9);
    }
  }

  /** The same folder as in script/bootstrap. */
  private static Path cacheFolder(UnaryOperator<String> environment) {
    String cacheHome = environment.apply("XDG_CACHE_HOME");
    String home = environment.apply("HOME");
    return (cacheHome != null && !cacheHome.isEmpty()
            ? Path.of(cacheHome)
            : Path.of(home != null ? home : System.getProperty("user.home"), ".cache"))
        .resolve("gradient-sync");
  }

  /** Writes all of a folder's modules. Returns the number of files. */
  int build(boolean library, Path sources, Path output)
      throws BuildException, IOException, InterruptedException {
    List<Job> jobs = library ? library(sources) : programs(sources);
    Files.createDirectories(output);
    ExecutorService threads =
        Executors.newFixedThreadPool(Runtime.getRuntime().availableProcessors());
    try {
      List<Callable<Void>> tasks = new ArrayList<>();
      for (Job job : jobs) {
        tasks.add(
            () -> {
              Files.write(output.resolve(job.file), image(job));
              return null;
            });
      }
      for (Future<Void> done : threads.invokeAll(tasks)) {
        done.get();
      }
    } catch (ExecutionException e) {
      if (e.getCause() instanceof BuildException cause) {
        throw cause;
      }
      throw new IllegalStateException(e.getCause());
    } finally {
      threads.shutdownNow();
    }
    deleteOtherKernels(output, jobs);
    cache.deleteUnused();
    return jobs.size();
  }

  private List<Job> library(Path sources) throws BuildException, IOException {
    List<Job> jobs = new ArrayList<>();
    for (Source source : KernelTable.read(sources)) {
      for (Target target : targets) {
        jobs.add(new Job(source, target, target.file(source.name())));
      }
    }
    return jobs;
  }

  private static List<Job> programs(Path sources) throws IOException {
    return KernelTable.programs(sources).stream()
        .map(source -> new Job(source, Target.PROGRAM, Target.PROGRAM.file(source.name())))
        .toList();
  }

  private byte[] image(Job job) throws BuildException, IOException {
    Compiler nvrtc;
    try {
      nvrtc = compiler();
    } catch (BuildException e) {
      return cache.findOfAny(job.source, job.target).orElseThrow(() -> e);
    }
    var found = cache.find(job.source, job.target, nvrtc.version());
    if (found.isPresent()) {
      return found.get();
    }
    byte[] image = job.target.pack(nvrtc.compile(job.source, job.target));
    cache.put(job.source, job.target, nvrtc.version(), image);
    incrementCompiled();
    return image;
  }

  private synchronized void incrementCompiled() {
    compiled++;
  }

  /** The number of files that were compiled, not taken from the cache. */
  synchronized int compiled() {
    return compiled;
  }

  private synchronized Compiler compiler() throws BuildException {
    if (compiler == null && failure == null) {
      try {
        compiler = finder.find();
      } catch (BuildException e) {
        failure = e;
      }
    }
    if (failure != null) {
      throw failure;
    }
    return compiler;
  }

  /** Deletes kernels that are no longer built, such as those removed from the table. */
  private static void deleteOtherKernels(Path output, List<Job> jobs) throws IOException {
    Set<String> wanted = new HashSet<>();
    jobs.forEach(job -> wanted.add(job.file));
    try (Stream<Path> files = Files.list(output)) {
      for (Path file : files.toList()) {
        String name = file.getFileName().toString();
        if (name.matches(".*\\.(cubin|ptx)(\\.xz)?") && !wanted.contains(name)) {
          Files.delete(file);
        }
      }
    }
  }
}
