package org.gradientsync.kernelcompiler;

import com.sun.jna.Function;
import com.sun.jna.Memory;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.IntByReference;
import com.sun.jna.ptr.LongByReference;
import com.sun.jna.ptr.PointerByReference;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;

/** NVIDIA's run-time compiler, which compiles CUDA C++ without a GPU and without nvcc. */
final class Nvrtc implements Compiler {
  private static final String FILE = "libnvrtc.so.";

  private final NativeLibrary library;
  private final Version version;

  private Nvrtc(NativeLibrary library) {
    this.library = library;
    IntByReference major = new IntByReference();
    IntByReference minor = new IntByReference();
    check(call("nvrtcVersion", major, minor), "nvrtcVersion");
    version = new Version(major.getValue(), minor.getValue());
  }

  /**
   * Finds an NVRTC that is new enough: the named one, or else the first in the folders.
   *
   * @param named the library's file, or null or empty
   * @throws BuildException if there is none; the message says what to do
   */
  static Nvrtc find(String named, List<Path> folders) throws BuildException {
    if (named != null && !named.isEmpty()) {
      return loadNamed(Path.of(named));
    }
    List<String> refused = new ArrayList<>();
    for (Path file : libraries(folders)) {
      try {
        Nvrtc found = load(file);
        if (found.version.isNewEnough()) {
          return found;
        }
        refused.add(file + " is " + found.version);
      } catch (LinkageError | IOException e) {
        refused.add(file + " does not load");
      }
    }
    throw new BuildException(
        "the build compiles CUDA kernels and needs NVRTC "
            + Version.OLDEST
            + " or newer, which is not here"
            + (refused.isEmpty() ? "" : " (" + String.join("; ", refused) + ")")
            + ": run script/bootstrap, or set NVRTC_LIBRARY to a libnvrtc.so");
  }

  private static Nvrtc loadNamed(Path path) throws BuildException {
    try {
      Nvrtc found = load(path);
      if (found.version.isNewEnough()) {
        return found;
      }
      throw new BuildException(
          "NVRTC_LIBRARY="
              + path
              + " is NVRTC "
              + found.version
              + ", and the kernels need "
              + Version.OLDEST
              + " or newer: name another, or unset it and run script/bootstrap");
    } catch (LinkageError | IOException e) {
      throw new BuildException(
          "NVRTC_LIBRARY="
              + path
              + " does not load ("
              + e.getMessage()
              + "): name another libnvrtc.so, or unset it and run script/bootstrap");
    }
  }

  /** The folders to search: that of script/bootstrap, then those of CUDA and the system. */
  static List<Path> folders(UnaryOperator<String> environment, Path cache) {
    List<Path> folders = new ArrayList<>(List.of(cache.resolve("nvrtc")));
    String libraries = environment.apply("LD_LIBRARY_PATH");
    for (String folder : libraries == null ? new String[0] : libraries.split(":")) {
      if (!folder.isEmpty()) {
        folders.add(Path.of(folder));
      }
    }
    for (Path cuda : list(Path.of("/usr/local"), "cuda")) {
      folders.add(cuda.resolve("lib64"));
      folders.add(cuda.resolve("targets/x86_64-linux/lib"));
    }
    for (String folder : List.of("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib")) {
      folders.add(Path.of(folder));
    }
    return folders;
  }

  /** The libraries in the folders, without duplicates: several links may lead to one file. */
  private static Collection<Path> libraries(List<Path> folders) {
    Set<Path> files = new LinkedHashSet<>();
    for (Path folder : folders) {
      for (Path file : list(folder, FILE)) {
        try {
          files.add(file.toRealPath());
        } catch (IOException e) {
          continue; // a broken link
        }
      }
    }
    return files;
  }

  /** The files in a folder whose names begin with a prefix, sorted. */
  private static List<Path> list(Path folder, String prefix) {
    try (Stream<Path> files = Files.list(folder)) {
      return files
          .filter(file -> file.getFileName().toString().startsWith(prefix))
          .sorted()
          .toList();
    } catch (IOException e) {
      return List.of();
    }
  }

  private static Nvrtc load(Path path) throws IOException {
    Path real = path.toRealPath();
    Nvrtc nvrtc = new Nvrtc(NativeLibrary.getInstance(real.toString()));
    // NVRTC loads this library by its bare name, which finds it if it is already loaded.
    Path builtins = real.resolveSibling("libnvrtc-builtins.so." + nvrtc.version);
    if (Files.exists(builtins)) {
      NativeLibrary.getInstance(builtins.toString());
    }
    return nvrtc;
  }

  @Override
  public Version version() {
    return version;
  }

  @Override
  public byte[] compile(Source source, Target target) throws BuildException {
    List<String> names = List.copyOf(source.headers().keySet());
    String[] texts = names.stream().map(source.headers()::get).toArray(String[]::new);
    PointerByReference created = new PointerByReference();
    check(
        call(
            "nvrtcCreateProgram",
            created,
            source.text(),
            source.name() + ".module",
            names.size(),
            texts,
            names.toArray(String[]::new)),
        "nvrtcCreateProgram");
    Pointer program = created.getValue();
    try {
      List<String> options = target.options();
      int result =
          call("nvrtcCompileProgram", program, options.size(), options.toArray(String[]::new));
      if (result != 0) {
        throw new BuildException(
            "NVRTC "
                + version
                + " does not compile "
                + source.name()
                + " for "
                + target.architecture()
                + ":\n"
                + new String(output(program, "ProgramLog"), StandardCharsets.UTF_8).strip());
      }
      return target.isPtx() ? output(program, "PTX") : output(program, "CUBIN");
    } finally {
      call("nvrtcDestroyProgram", created);
    }
  }

  /** The result of nvrtcGet..., for texts without the terminating zero. */
  private byte[] output(Pointer program, String what) {
    LongByReference size = new LongByReference();
    check(call("nvrtcGet" + what + "Size", program, size), "nvrtcGet" + what + "Size");
    try (Memory bytes = new Memory(size.getValue())) {
      check(call("nvrtcGet" + what, program, bytes), "nvrtcGet" + what);
      int length = (int) size.getValue() - (what.equals("CUBIN") ? 0 : 1);
      return bytes.getByteArray(0, length);
    }
  }

  private int call(String name, Object... arguments) {
    return library.getFunction(name, Function.C_CONVENTION, "UTF-8").invokeInt(arguments);
  }

  private static void check(int result, String call) {
    if (result != 0) {
      throw new IllegalStateException(call + " failed: result=" + result);
    }
  }
}
