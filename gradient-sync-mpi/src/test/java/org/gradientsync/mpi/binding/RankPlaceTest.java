package org.gradientsync.mpi.binding;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class RankPlaceTest {
  @Test
  void whatIsToldIsUnderstoodAndInOneLine() {
    byte[] two = new byte[2 * RankPlace.BYTES];
    byte[] told = new RankPlace("a\u2028b", 7, 11, 13).encode();
    System.arraycopy(told, 0, two, RankPlace.BYTES, RankPlace.BYTES);
    assertEquals(new RankPlace("a b", 7, 11, 13), RankPlace.decode(two, RankPlace.BYTES));
  }

  @Test
  void aLongHostNameIsCutOff() {
    byte[] told = new RankPlace("h".repeat(200), 7, 11, 13).encode();
    assertEquals(RankPlace.BYTES, told.length);
    assertEquals(new RankPlace("h".repeat(112), 7, 11, 13), RankPlace.decode(told, 0));
  }

  @Test
  void thisProcessIsAliveAndALaterOneOfItsNumberIsAnother() {
    RankPlace own = RankPlace.own("h");
    assertTrue(own.isAlive());
    assertFalse(new RankPlace("h", own.process(), own.started() + 1, own.namespace()).isAlive());
  }

  /** Another rank may have this one's process id, and its start time to the hundredth second. */
  @Test
  void aProcessOfAnotherNamespaceCannotBeSeen() {
    RankPlace own = RankPlace.own("h");
    assertFalse(
        new RankPlace("h", own.process(), own.started(), own.namespace() + 1).isAlive());
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
