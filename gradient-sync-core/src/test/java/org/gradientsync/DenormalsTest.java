package org.gradientsync;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.gradientsync.core.host.Denormals;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests ranks whose processor flushes denormal numbers to zero because of a native library. */
class DenormalsTest {
  /**
   * Sets the same mode as the start-up code that -ffast-math adds, in a function that all versions
   * of Java call.
   */
  private static final String LIBRARY =
      """
      int JNI_OnLoad(void *vm, void *reserved) {
      #if defined(__x86_64__)
        __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
      #elif defined(__aarch64__)
        unsigned long fpcr;
        __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
        __asm__ volatile("msr fpcr, %0" : : "r"(fpcr | 1ul << 24));
      #endif
        return 0x00010008;
      }
      """;

  @TempDir Path folder;
  private Path library;

  /** A new file for each test, because a JVM calls the function once for each file. */
  @BeforeEach
  void setUp() throws IOException, InterruptedException {
    Path source = Files.writeString(folder.resolve("flush.c"), LIBRARY);
    library = folder.resolve("libflush.so");
    try {
      Process compiler =
          new ProcessBuilder("cc", "-shared", "-fPIC", "-o", library.toString(), source.toString())
              .inheritIO()
              .start();
      assertEquals(0, compiler.waitFor());
    } catch (IOException e) {
      Assumptions.abort("SKIPPED: there is no C compiler; script/bootstrap --tests installs gcc");
    }
  }

  /** On rank 1 alone. */
  private void load(int rank) {
    if (rank == 1) {
      System.load(library.toString());
      assertTrue(Denormals.areFlushed());
    }
  }

  @ParameterizedTest
  @EnumSource(
      value = DataType.class,
      names = {"FLOAT16", "BFLOAT16", "FLOAT32", "FLOAT64"})
  void aLibraryThatIsLoadedLaterIsFoundInTheNextCall(DataType type) {
    AtomicInteger refused = new AtomicInteger();
    LocalRanks.run(
        2,
        sync -> {
          DeviceBuffer buffer = sync.allocate(type, 1000);
          sync.average(buffer);
          load(sync.rank());
          RankLostException e = assertThrows(RankLostException.class, () -> sync.average(buffer));
          assertTrue(e.getMessage().contains("takes denormal numbers for zero"), e::getMessage);
          assertTrue(e.getMessage().contains("rank=1"), e::getMessage);
          assertEquals(1, e.exitCode(), "another start would end in the same way");
          refused.incrementAndGet();
        });
    assertEquals(2, refused.get());
  }

  @Test
  void aLibraryThatWasLoadedBeforeIsFoundByAllRanks() {
    AtomicInteger refused = new AtomicInteger();
    LocalRanks.run(
        2,
        sync -> {
          load(sync.rank());
          UnavailableException e =
              assertThrows(UnavailableException.class, () -> GradientSync.create().close());
          assertTrue(
              e.getMessage().contains("for zero on ranks [1], rank=" + sync.rank()), e::getMessage);
          refused.incrementAndGet();
        });
    assertEquals(2, refused.get());
  }

  @Test
  void integersAndOtherThreadsAreNotAffected() {
    LocalRanks.run(
        2,
        sync -> {
          Thread loads = new Thread(() -> load(sync.rank()));
          loads.start();
          loads.join();
          assertFalse(Denormals.areFlushed());
          float[] values = new float[1000];
          Arrays.fill(values, Float.MIN_VALUE);
          DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 1000);
          buffer.copyFrom(values);
          sync.allReduce(buffer, ReduceOp.SUM);
          buffer.copyTo(values);
          float[] expected = new float[1000];
          Arrays.fill(expected, 2 * Float.MIN_VALUE);
          assertArrayEquals(expected, values);
        });
  }

  /** The advice holds. */
  @Test
  void theJvmCanRestoreTheMode() throws IOException, InterruptedException {
    if (!System.getProperty("os.arch").equals("amd64")) {
      return;
    }
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    for (List<String> option : List.of(List.<String>of(), List.of("-XX:+RestoreMXCSROnJNICalls"))) {
      ProcessBuilder builder = new ProcessBuilder(java, "-XX:TieredStopAtLevel=1");
      builder.command().addAll(option);
      builder
          .command()
          .addAll(
              List.of(
                  "-cp",
                  System.getProperty("java.class.path"),
                  Loads.class.getName(),
                  library.toString()));
      assertEquals(option.isEmpty() ? 1 : 0, builder.inheritIO().start().waitFor());
    }
  }

  /** A program that loads a library. */
  static final class Loads {
    private Loads() {}

    public static void main(String[] args) {
      System.load(args[0]);
      System.exit(Denormals.areFlushed() ? 1 : 0);
    }
  }
}
