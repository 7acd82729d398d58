package org.gradientsync.kernelcompiler;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.tukaani.xz.XZInputStream;

/** The table, the cache, and what is written, with a compiler that only says what it was given. */
class KernelCompilerTest {
  private static final BuildException NO_NVRTC = new BuildException("no NVRTC");

  @TempDir Path folder;
  private Path sources;
  private Path output;

  /** What it compiles is what it was given. */
  private record Echo(Version version) implements Compiler {
    @Override
    public byte[] compile(Source source, Target target) throws BuildException {
      if (source.text().contains("wrong")) {
        throw new BuildException("does not compile: " + source.name());
      }
      return (target.architecture() + ":" + source.text()).getBytes(StandardCharsets.UTF_8);
    }
  }

  @BeforeEach
  void writeSources() throws IOException {
    sources = Files.createDirectories(folder.resolve("cuda"));
    output = folder.resolve("classes/kernels");
    write("kernels.txt", "# two modules\none a.cuh  KERNEL(int) # of integers\n\ntwo b.cu\n");
    write("a.cuh", "#include <cstdint>");
    write("b.cu", "kernel");
  }

  private void write(String name, String text) throws IOException {
    Files.writeString(sources.resolve(name), text);
  }

  /** Builds the library; returns how many files were compiled. */
  private int build(Version version) throws Exception {
    KernelCompiler compiler =
        new KernelCompiler(
            folder.resolve("cache"),
            Target.LIBRARY,
            () -> {
              if (version == null) {
                throw NO_NVRTC;
              }
              return new Echo(version);
            });
    compiler.build(true, sources, output);
    return compiler.compiled();
  }

  private static TreeSet<String> names(Path folder) throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return new TreeSet<>(files.map(file -> file.getFileName().toString()).toList());
    }
  }

  private String unpacked(String name) throws IOException {
    try (InputStream in = new XZInputStream(Files.newInputStream(output.resolve(name)))) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    }
  }

  @Test
  void eachModuleOfTheTableIsCompiledForEachGpu() throws Exception {
    assertEquals(8, build(Version.OLDEST));
    assertEquals(
        new TreeSet<>(
            List.of(
                "one.sm_75.cubin.xz",
                "one.sm_80.cubin.xz",
                "one.sm_90.cubin.xz",
                "one.compute_90.ptx.xz",
                "two.sm_75.cubin.xz",
                "two.sm_80.cubin.xz",
                "two.sm_90.cubin.xz",
                "two.compute_90.ptx.xz")),
        names(output));
    assertEquals("sm_80:#include \"a.cuh\"\nKERNEL(int)\n", unpacked("one.sm_80.cubin.xz"));
  }

  @Test
  void someArchitecturesCanBeChosen() throws Exception {
    assertEquals(
        List.of(new Target("sm_90", true), new Target("compute_90", true)),
        Target.library("sm_90,compute_90"));
    BuildException e = assertThrows(BuildException.class, () -> Target.library("sm_90,sm_9"));
    assertEquals("no such kernels: GRADIENTSYNC_KERNELS=sm_90,sm_9", e.getMessage());
    assertEquals(Target.LIBRARY, Target.library(null));
  }

  @Test
  void programsAreCompiledToPtx() throws Exception {
    Files.delete(sources.resolve("kernels.txt"));
    new KernelCompiler(folder.resolve("cache"), Target.LIBRARY, () -> new Echo(Version.OLDEST))
        .build(false, sources, output);
    assertEquals("compute_75:kernel", Files.readString(output.resolve("b.ptx")));
    assertEquals(1, names(output).size());
  }

  @Test
  void whatTheCompilerCountsInItsProcessIsNotInPtx() throws Exception {
    Files.delete(sources.resolve("kernels.txt"));
    write("b.cu", "{ // callseq 575, 0\ncall;\n} // callseq 575\n// other");
    new KernelCompiler(folder.resolve("cache"), Target.LIBRARY, () -> new Echo(Version.OLDEST))
        .build(false, sources, output);
    assertEquals("compute_75:{\ncall;\n}\n// other", Files.readString(output.resolve("b.ptx")));
  }

  @Test
  void whatIsUnchangedIsNotCompiledAgain() throws Exception {
    assertEquals(8, build(Version.OLDEST));
    assertEquals(0, build(Version.OLDEST));
    write("kernels.txt", "one a.cuh KERNEL(long)\ntwo b.cu\n");
    assertEquals(4, build(Version.OLDEST));
    write("a.cuh", "another header, which any module may include");
    assertEquals(8, build(Version.OLDEST));
    assertEquals(8, build(new Version(13, 0)));
    assertEquals(0, build(Version.OLDEST));
  }

  @Test
  void withoutNvrtcTheCacheServes() throws Exception {
    assertEquals(NO_NVRTC, assertThrows(BuildException.class, () -> build(null)));
    build(new Version(12, 6));
    String image = unpacked("one.sm_90.cubin.xz");
    Files.delete(output.resolve("one.sm_90.cubin.xz"));
    assertEquals(0, build(null));
    assertEquals(image, unpacked("one.sm_90.cubin.xz"));
    write("b.cu", "changed");
    assertThrows(BuildException.class, () -> build(null));
  }

  @Test
  void whatTheTableNoLongerNamesGoes() throws Exception {
    build(Version.OLDEST);
    Files.writeString(output.resolve("Other.class"), "not a kernel");
    write("kernels.txt", "two b.cu\n");
    build(Version.OLDEST);
    assertEquals(5, names(output).size());
    assertTrue(Files.exists(output.resolve("Other.class")));
  }

  @Test
  void whatNoBuildHasUsedForAMonthLeavesTheCache() throws Exception {
    build(Version.OLDEST);
    Path cache = folder.resolve("cache");
    Path old = cache.resolve(names(cache).first());
    Files.setLastModifiedTime(old, FileTime.from(Instant.now().minus(Duration.ofDays(31))));
    write("kernels.txt", "two a.cuh\n");
    build(Version.OLDEST);
    assertEquals(11, names(cache).size());
  }

  @Test
  void theFirstThatDoesNotCompileEndsTheBuild() throws Exception {
    write("b.cu", "wrong");
    write("kernels.txt", "one a.cuh wrong\n");
    BuildException e = assertThrows(BuildException.class, () -> build(Version.OLDEST));
    assertEquals("does not compile: one", e.getMessage());
  }

  @Test
  void aWrongLineOfTheTableIsNamed() throws Exception {
    for (String wrong : List.of("lonely", "one nowhere.cuh", "one a.cuh\none b.cu")) {
      write("kernels.txt", "# first\n" + wrong + "\n");
      BuildException e = assertThrows(BuildException.class, () -> build(Version.OLDEST));
      assertTrue(e.getMessage().contains("kernels.txt, line "), e.getMessage());
    }
  }
}
