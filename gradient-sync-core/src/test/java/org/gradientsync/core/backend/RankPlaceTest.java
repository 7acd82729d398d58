package org.gradientsync.core.backend;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

class RankPlaceTest {
  @Test
  void whatIsToldIsUnderstoodAndInOneLine() {
    byte[] two = new byte[2 * RankPlace.BYTES];
    byte[] told = new RankPlace("a\u2028b", 7, 11, 13, 17).encode();
    System.arraycopy(told, 0, two, RankPlace.BYTES, RankPlace.BYTES);
    assertEquals(new RankPlace("a b", 7, 11, 13, 17), RankPlace.decode(two, RankPlace.BYTES));
  }

  @Test
  void aLongHostNameIsCutOff() {
    byte[] told = new RankPlace("h".repeat(200), 7, 11, 13, 17).encode();
    assertEquals(RankPlace.BYTES, told.length);
    assertEquals(new RankPlace("h".repeat(104), 7, 11, 13, 17), RankPlace.decode(told, 0));
  }

  @Test
  void thisProcessIsAliveAndALaterOneOfItsNumberIsAnother() {
    RankPlace own = RankPlace.own("h");
    assertTrue(own.isAlive());
    assertFalse(new RankPlace("h", own.process(), own.started() + 1, own.namespace(), 0).isAlive());
  }

  @Test
  void ranksThatShareMemoryAreOnOneNode() {
    assertNotEquals(0, RankPlace.own("h").memory());
    assertEquals(RankPlace.own("a").memory(), RankPlace.own("b").memory());
    requireNodes("0 0 0", "0 1 2", 5, 5, 5); // each alone, as MPI reports it
    requireNodes("0 1 0", "0 1 0", 5, 6, 5);
    requireNodes("0 0 0", "0 0 0", 5, 6, 7); // containers of one machine, by MPI's own word
    requireNodes("0 1 2", "0 1 2", 0, 0, 0); // unknown
    requireNodes("0 1 1 0", "0 1 1 3", 5, 6, 7, 5);
    requireNodes("0 1 0 0 0", "0 1 2 2 4", 5, 6, 5, 8, 8);
    requireNodes("0 1 0 0 0", "0 1 2 0 2", 5, 6, 7, 8, 5);
  }

  private static void requireNodes(String expected, String ofMpi, long... memory) {
    int[] reported = Arrays.stream(ofMpi.split(" ")).mapToInt(Integer::parseInt).toArray();
    RankPlace[] places =
        Arrays.stream(memory)
            .mapToObj(m -> new RankPlace("h", 1, 1, 1, m))
            .toArray(RankPlace[]::new);
    int[] nodes = RankPlace.nodes(reported, places);
    assertEquals(
        expected, Arrays.stream(nodes).mapToObj(String::valueOf).collect(Collectors.joining(" ")));
  }

  /** Another rank may have this one's process id, and its start time to the hundredth second. */
  @Test
  void aProcessOfAnotherNamespaceCannotBeSeen() {
    RankPlace own = RankPlace.own("h");
    assertFalse(new RankPlace("h", own.process(), own.started(), own.namespace() + 1, 0).isAlive());
  }

  @Test
  void aProcessThatIsStoppedOrEndedIsFoundOut() throws Exception {
    Process process = new ProcessBuilder("sleep", "300").start();
    try {
      RankPlace place = RankPlace.of("h", process.pid());
      assertEquals("", place.trouble());
      new ProcessBuilder("kill", "-STOP", Long.toString(process.pid())).start().waitFor();
      while (place.trouble().isEmpty()) {
        Thread.sleep(1);
      }
      assertEquals("is stopped", place.trouble());
      process.destroyForcibly().waitFor();
      assertEquals("has died", place.trouble());
    } finally {
      process.destroyForcibly();
    }
  }
}
