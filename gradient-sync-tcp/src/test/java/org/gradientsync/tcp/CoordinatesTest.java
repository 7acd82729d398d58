package org.gradientsync.tcp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.gradientsync.UnavailableException;
import org.gradientsync.spi.Settings;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests what variables and settings make a rank, and how mistakes in them are named. */
class CoordinatesTest {
  private static final Settings NONE = new Settings(Map.of());

  private static Map<String, String> variables(String... changes) {
    Map<String, String> variables = new HashMap<>();
    variables.put("RANK", "1");
    variables.put("WORLD_SIZE", "4");
    variables.put("MASTER_ADDR", "node0");
    variables.put("MASTER_PORT", "29500");
    variables.put("LOCAL_RANK", "1");
    variables.put("LOCAL_WORLD_SIZE", "2");
    variables.put("GRADIENTSYNC_SECRET", "hidden");
    for (String change : changes) {
      String[] parts = change.split("=", 2);
      if (parts.length == 1) {
        variables.remove(parts[0]);
      } else {
        variables.put(parts[0], parts[1]);
      }
    }
    return variables;
  }

  @Test
  void variablesAreRead() {
    assertEquals(
        new Coordinates(1, 4, "node0", 29500, 1, 2, "hidden", "", true, false, 0),
        Coordinates.of(NONE, variables()));
    assertEquals(
        new Coordinates(1, 4, "::1", 29500, -1, -1, "", "", true, false, 0),
        Coordinates.of(
            NONE,
            variables(
                "MASTER_ADDR=[::1]",
                "RANK= 1 ",
                "LOCAL_RANK",
                "LOCAL_WORLD_SIZE",
                "GRADIENTSYNC_SECRET")));
  }

  /** Its agent of the first node then has a store at the master's port. */
  @Test
  void ranksTakeTheNextPortWhereTorchrunListensItself() {
    assertEquals(
        29501, Coordinates.of(NONE, variables("TORCHELASTIC_USE_AGENT_STORE=True")).port());
    assertEquals(
        29500, Coordinates.of(NONE, variables("TORCHELASTIC_USE_AGENT_STORE=False")).port());
  }

  @Test
  void settingsReplaceAllVariablesButTheSecret() {
    Settings settings =
        new Settings(Map.of("tcp.rank", "0", "tcp.size", "2", "tcp.master", "[::1]:1"));
    assertEquals(
        new Coordinates(0, 2, "::1", 1, -1, -1, "hidden", "", false, false, 0),
        Coordinates.of(settings, variables()));
  }

  @Test
  void settingsThatVariablesWouldHaveToCompleteAreRefused() {
    Settings settings = new Settings(Map.of("tcp.rank", "0"));
    UnavailableException e =
        assertThrows(UnavailableException.class, () -> Coordinates.of(settings, variables()));
    assertEquals(
        "not set: tcp.size, given={tcp.rank=0, tcp.size=, tcp.master=}; a job over TCP needs RANK,"
            + " WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or all of the settings tcp.rank, tcp.size"
            + " and tcp.master, which no variables complete",
        e.getMessage());
  }

  /** Locales would make different bytes of them. */
  @Test
  void secretsOfOtherCharactersThanAsciiAreRefused() {
    for (Settings settings : List.of(NONE, new Settings(Map.of("tcp.secret", "gehe\u00efm")))) {
      UnavailableException e =
          assertThrows(
              UnavailableException.class,
              () -> Coordinates.of(settings, variables("GRADIENTSYNC_SECRET=gehe\u00efm")));
      String name = settings == NONE ? "GRADIENTSYNC_SECRET" : "tcp.secret";
      assertEquals(
          name
              + " has characters that are not ASCII, of which each locale makes other bytes: rank=1;"
              + " take letters and digits, for example of: openssl rand -hex 32",
          e.getMessage());
    }
    assertEquals("a b~!", Coordinates.of(NONE, variables("GRADIENTSYNC_SECRET=a b~!")).secret());
  }

  /** One variable alone is somebody else's; with two somebody meant a job. */
  @Test
  void halfOfTheVariablesIsAMistakeAndOneIsNot() {
    assertTrue(Coordinates.areIn(variables()));
    assertFalse(Coordinates.areIn(Map.of()));
    assertFalse(Coordinates.areIn(Map.of("RANK", "1")));
    assertFalse(Coordinates.areIn(Map.of("WORLD_SIZE", "4", "LOCAL_RANK", "0")));
    assertFalse(Coordinates.areIn(Map.of("MASTER_ADDR", "node0", "MASTER_PORT", "29500")));
    assertFalse(Coordinates.areIn(Map.of("RANK", "0", "WORLD_SIZE", "1")));
    assertTrue(Coordinates.areIn(Map.of("RANK", "0", "WORLD_SIZE", "2")));
    assertTrue(Coordinates.areIn(Map.of("RANK", "0", "MASTER_ADDR", "node0")));
  }

  @ParameterizedTest
  @ValueSource(strings = {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"})
  void aMissingVariableIsNamed(String name) {
    for (String change : new String[] {name, name + "= "}) {
      assertRefused("not set: " + name + ", given={", change);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "RANK=one, not a number from 0: RANK=one",
    "RANK=-1, not a number from 0: RANK=-1",
    "RANK=4294967296, not a number from 0: RANK=4294967296",
    "RANK=4, 'no such rank: RANK=4, WORLD_SIZE=4'",
    "WORLD_SIZE=0, not a number from 1 to 65536: WORLD_SIZE=0",
    "WORLD_SIZE=65537, not a number from 1 to 65536: WORLD_SIZE=65537",
    "MASTER_PORT=0, not a number from 1 to 65535: MASTER_PORT=0",
    "MASTER_PORT=http, not a number from 1 to 65535: MASTER_PORT=http"
  })
  void aWrongVariableIsNamed(String change, String text) {
    assertRefused(text, change);
  }

  @ParameterizedTest
  @CsvSource({
    "LOCAL_RANK=x, not a number from 0 to RANK: LOCAL_RANK=x",
    "LOCAL_RANK=2, not a number from 0 to RANK: LOCAL_RANK=2",
    "LOCAL_WORLD_SIZE=5, not a number from 1 to WORLD_SIZE: LOCAL_WORLD_SIZE=5",
    "LOCAL_WORLD_SIZE=0, not a number from 1 to WORLD_SIZE: LOCAL_WORLD_SIZE=0",
    "LOCAL_WORLD_SIZE=, not a number from 1 to WORLD_SIZE: LOCAL_WORLD_SIZE="
  })
  void aWrongLocalVariableIsNamed(String change, String text) {
    UnavailableException thrown =
        assertThrows(UnavailableException.class, () -> Coordinates.of(NONE, variables(change)));
    String advice = ", rank=1, size=4; correct or unset it";
    assertEquals(text + advice, thrown.getMessage());
  }

  /** Instead of looking up a name until the time-out. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "::1",
        "[::1]",
        "[::1",
        ":",
        "::1]:29500",
        "node0:",
        "a:b:29500",
        "a:0",
        "a:65536"
      })
  void whatIsNoHostAndPortIsNamed(String master) {
    Settings settings =
        new Settings(Map.of("tcp.rank", "0", "tcp.size", "2", "tcp.master", master));
    UnavailableException thrown =
        assertThrows(UnavailableException.class, () -> Coordinates.of(settings, Map.of()));
    String expected = "not a host and a port: tcp.master=" + master + ", rank=0";
    assertTrue(thrown.getMessage().startsWith(expected), thrown::getMessage);
  }

  @Test
  void aHostWithAPortIsNamed() {
    UnavailableException thrown =
        assertThrows(
            UnavailableException.class,
            () -> Coordinates.of(NONE, variables("MASTER_ADDR=node0:29500")));
    assertTrue(thrown.getMessage().startsWith("not a host: MASTER_ADDR=node0:29500, rank=1"));
  }

  private static void assertRefused(String text, String change) {
    Map<String, String> variables = variables(change);
    UnavailableException thrown =
        assertThrows(UnavailableException.class, () -> Coordinates.of(NONE, variables));
    assertTrue(thrown.getMessage().startsWith(text), thrown::getMessage);
    assertFalse(thrown.getMessage().contains("hidden"), thrown::getMessage);
    assertTrue(thrown.getMessage().contains("a job over TCP needs") || text.startsWith("no such"));
  }

  @Test
  void theSecretIsInNoText() {
    assertEquals(
        "rank=1, size=4, master=node0:29500", Coordinates.of(NONE, variables()).toString());
  }
}
