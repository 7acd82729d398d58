package org.gradientsync.tools.links;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.gradientsync.examples.GpuProgramsTest;
import org.gradientsync.examples.Run;
import org.gradientsync.tools.program.ByteCount;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the program without a GPU. */
class LinkPerfTest {
  @Test
  void saysThatThereIsNoGpu() {
    GpuProgramsTest.requireNoGpu();
    for (String[] args : new String[][] {{}, {"--bytes=64k", "--repeats=1"}}) {
      Run.of(new LinkPerf(), args).exits(3).complainsInOneLine("links: ");
    }
  }

  @Test
  void helpTellsOptionsAndExitCodes() {
    Run run = Run.of(new LinkPerf(), "--help").exits(0);
    for (String part :
        new String[] {"--bytes=N", "--repeats=K", "--json=FILE", "  0   ", "  2   ", "  3   "}) {
      assertTrue(run.out().contains(part), run::toString);
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "--bytes=3",
        "--bytes=1025M",
        "--bytes=-1",
        "--bytes=1T",
        "--bytes=",
        "--repeats=0",
        "--repeats=1001",
        "--repeats=many",
        "--json",
        "--local=2"
      })
  void impossibleOptionsAreBadUse(String option) {
    Run.of(new LinkPerf(), option).exits(2).complainsInOneLine(option.split("=")[0]);
  }

  @ParameterizedTest
  @CsvSource({"0,0", "4096,4096", "1K,1024", "64k,65536", "1G,1073741824", "1073741824,1073741824"})
  void bytesAreReadAsPeopleWriteThem(String text, long bytes) {
    assertEquals(bytes, new ByteCount().convert(text));
  }
}
