package org.gradientsync.tools.run;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests which lost ranks are started again. The ranks are shell scripts. */
class RanksAsProcessesTest {
  @TempDir Path folder;

  private int run(int size, String script) throws Exception {
    return run(size, 0, size, script);
  }

  private int run(int size, int first, int localSize, String script) throws Exception {
    return run(size, first, localSize, false, script);
  }

  private int run(int size, int first, int localSize, boolean joins, String script)
      throws Exception {
    String begin =
        "cd '"
            + folder
            + "'; begin() { rm \"$GRADIENTSYNC_WAITING\"; }; wait_for() {"
            + " for i in $(seq 400); do [ ! -e $1 ] || break; sleep 0.05; done; }; ";
    return new RanksAsProcesses(
            new RanksAsProcesses.Share(size, first, localSize, "127.0.0.1:1", true, joins),
            Map.of(),
            List.of("sh", "-c", begin + script),
            rank -> "",
            RanksAsProcesses.NO_INPUT)
        .run();
  }

  private boolean has(String file) {
    return Files.exists(folder.resolve(file));
  }

  @Test
  void aRankThatIsLostBeforeTheJobBeginsIsStartedAsThatRank() throws Exception {
    String script =
        "if mkdir first-$RANK; then kill -9 $$; fi; [ -z \"$GRADIENTSYNC_JOIN\" ] || exit 9;"
            + " touch again-$RANK; wait_for again-0; wait_for again-1; begin";
    assertEquals(0, run(2, script));
    assertTrue(has("first-0") && has("first-1"));
  }

  /** Those that have met it have no sync with which they could go on. */
  @Test
  void aLossInCreateStartsAllRanksAgain() throws Exception {
    String script =
        "if mkdir first-$RANK; then touch $GRADIENTSYNC_WAITING.met; case $RANK in"
            + " 0) touch met; wait_for lost; sleep 0.5; [ ! -e again-1 ] || exit 9; exit 75 ;;"
            + " 1) wait_for met; touch lost; kill -9 $$ ;;"
            + " esac; fi; [ -z \"$GRADIENTSYNC_JOIN\" ] || exit 9; touch again-$RANK;"
            + " wait_for again-0; wait_for again-1; begin";
    assertEquals(0, run(2, script));
    assertTrue(has("again-0") && has("again-1"));
  }

  @Test
  void aRankThatIsLostAtTheEndOfCreateJoinsTheOthers() throws Exception {
    String script =
        "touch $GRADIENTSYNC_WAITING.met; case $RANK$GRADIENTSYNC_JOIN in"
            + " 0) touch met; wait_for lost; sleep 0.5; begin; wait_for again ;;"
            + " 1) wait_for met; touch lost; kill -9 $$ ;;"
            + " 1true) begin; touch again ;;"
            + " esac";
    assertEquals(0, run(2, script));
    assertTrue(has("again"));
  }

  /** On a host to which the ranks of a lost one have come. */
  @Test
  void ranksThatJoinAndMeetNobodySayThatRanksAreLost() throws Exception {
    assertEquals(75, run(3, 2, 1, true, "[ -n \"$GRADIENTSYNC_JOIN\" ] || exit 9; exit 75"));
  }

  @Test
  void aRankThatFailsBeforeTheJobBeginsEndsIt() throws Exception {
    assertEquals(5, run(2, "[ $RANK = 0 ] || exit 5; wait_for nothing; touch waited"));
    assertFalse(has("waited"));
  }

  @Test
  void ranksAreStartedAgainAfterOneHasLeft() throws Exception {
    String script =
        "begin; case $RANK$GRADIENTSYNC_JOIN in"
            + " 0) wait_for again ;;"
            + " 1) wait_for left; sleep 0.2; kill -9 $$ ;;"
            + " 1true) touch again ;;"
            + " 2) touch left ;;"
            + " esac";
    assertEquals(0, run(3, script));
    assertTrue(has("again"));
  }

  /** It may hang. */
  @Test
  void aRankThatTheOthersGoOnWithoutIsEndedAndStartedAgain() throws Exception {
    String script =
        "begin; case $RANK$GRADIENTSYNC_JOIN in"
            + " 0) wait_for pid; cat pid >$GRADIENTSYNC_WAITING.left; wait_for again ;;"
            + " 1) echo $$ >number; mv number pid; wait_for nothing; touch waited ;;"
            + " 1true) touch again ;;"
            + " esac";
    assertEquals(0, run(2, script));
    assertTrue(has("again"));
    assertFalse(has("waited"));
  }

  /** The code is that of those that have gone on. */
  @Test
  void aRankThatHangsDoesNotOutliveTheOthers() throws Exception {
    String script =
        "begin; case $RANK$GRADIENTSYNC_JOIN in"
            + " 0) wait_for pid; cat pid >$GRADIENTSYNC_WAITING.left ;;"
            + " 1) echo $$ >number; mv number pid; wait_for nothing; touch waited ;;"
            + " *) touch again ;;"
            + " esac";
    assertEquals(0, run(2, script));
    assertFalse(has("again") || has("waited"));
  }

  @Test
  void nobodyWaitsToJoinNobody() throws Exception {
    String script =
        "case $RANK$GRADIENTSYNC_JOIN in"
            + " 0) begin; touch begun; wait_for again; exit 75 ;;"
            + " 1) begin; wait_for begun; kill -9 $$ ;;"
            + " 1true) touch again; wait_for nothing; touch waited ;;"
            + " esac";
    assertEquals(75, run(2, script));
    assertFalse(has("waited"));
  }

  @Test
  void aRankThatMetNobodyIsNotStartedAgain() throws Exception {
    String script =
        "case $RANK$GRADIENTSYNC_JOIN in"
            + " 2) begin; kill -9 $$ ;;"
            + " 2true) mkdir joins || touch again; wait_for left; sleep 0.3; exit 75 ;;"
            + " 3) begin; wait_for joins; touch left ;;"
            + " esac";
    assertEquals(0, run(4, 2, 2, script)); // the second of two nodes
    assertTrue(has("joins"));
    assertFalse(has("again"));
  }

  @Test
  void ranksThatHaveGivenUpAreNotStartedAgain() throws Exception {
    String script =
        "case $RANK$GRADIENTSYNC_JOIN in"
            + " 0) begin; wait_for lost; echo too few >$GRADIENTSYNC_WAITING; exit 75 ;;"
            + " 1) begin; wait_for lost; echo too few >$GRADIENTSYNC_WAITING; sleep 0.5;"
            + " touch ended; exit 75 ;;"
            + " 2) begin; kill -9 $$ ;;"
            + " 2true) touch lost; wait_for nothing; touch waited ;;"
            + " *true) touch again ;;"
            + " esac";
    assertEquals(75, run(4, 0, 3, script)); // the first of two nodes
    assertTrue(has("ended"));
    assertFalse(has("again") || has("waited"));
  }
}
