package org.gradientsync.examples.hybrid;

import static java.util.stream.Collectors.joining;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.IntStream;
import org.gradientsync.examples.hybrid.Schedule.Action;
import org.gradientsync.examples.hybrid.Schedule.Kind;
import org.junit.jupiter.api.Test;

/** Tests what stages do in a step, for pipelines of up to 6 stages and 9 micro-batches. */
class ScheduleTest {
  private static final int MOST_STAGES = 6;
  private static final int MOST_MICRO_BATCHES = 9;

  private interface Case {
    void check(int stages, int microBatches);
  }

  private static void forAll(Case test) {
    for (int stages = 1; stages <= MOST_STAGES; stages++) {
      for (int microBatches = 1; microBatches <= MOST_MICRO_BATCHES; microBatches++) {
        test.check(stages, microBatches);
      }
    }
  }

  private static List<List<Action>> schedules(int stages, int microBatches) {
    return IntStream.range(0, stages)
        .mapToObj(stage -> Schedule.of(stage, stages, microBatches))
        .toList();
  }

  private static String passes(int stage, int stages, int microBatches) {
    return Schedule.of(stage, stages, microBatches).stream()
        .filter(action -> action.kind() == Kind.FORWARD || action.kind() == Kind.BACKWARD)
        .map(action -> (action.kind() == Kind.FORWARD ? "F" : "B") + action.microBatch())
        .collect(joining(" "));
  }

  @Test
  void passesAlternateOnceThePipelineIsFull() {
    assertEquals("F0 F1 F2 F3 B0 F4 B1 B2 B3 B4", passes(0, 4, 5));
    assertEquals("F0 F1 F2 B0 F3 B1 F4 B2 B3 B4", passes(1, 4, 5));
    assertEquals("F0 F1 B0 F2 B1 F3 B2 F4 B3 B4", passes(2, 4, 5));
    assertEquals("F0 B0 F1 B1 F2 B2 F3 B3 F4 B4", passes(3, 4, 5));
    assertEquals("F0 F1 B0 B1", passes(0, 4, 2));
    assertEquals("F0 B0", passes(0, 1, 1));
  }

  @Test
  void aStageReceivesWhatItComputesAndSendsWhatItHasComputed() {
    forAll(
        (stages, microBatches) -> {
          for (int stage = 0; stage < stages; stage++) {
            List<Action> actions = Schedule.of(stage, stages, microBatches);
            assertEquals(microBatches * kinds(stage, stages).size(), actions.size());
            for (int i = 0; i < microBatches; i++) {
              List<Integer> places = new ArrayList<>();
              for (Kind kind : kinds(stage, stages)) {
                places.add(actions.indexOf(new Action(kind, i)));
              }
              List<Integer> sorted = places.stream().sorted().toList();
              assertEquals(sorted, places);
              assertTrue(places.get(0) >= 0);
            }
          }
        });
  }

  /** Returns what a stage does for a micro-batch, in this order. */
  private static List<Kind> kinds(int stage, int stages) {
    List<Kind> kinds = new ArrayList<>(List.of(Kind.values()));
    if (stage == 0) {
      kinds.removeAll(List.of(Kind.RECEIVE_ACTIVATIONS, Kind.SEND_GRADIENTS));
    }
    if (stage == stages - 1) {
      kinds.removeAll(List.of(Kind.SEND_ACTIVATIONS, Kind.RECEIVE_GRADIENTS));
    }
    return kinds;
  }

  @Test
  void fewMicroBatchesAreInFlight() {
    forAll(
        (stages, microBatches) -> {
          for (int stage = 0; stage < stages; stage++) {
            int now = 0;
            int most = 0;
            for (Action action : Schedule.of(stage, stages, microBatches)) {
              now += action.kind() == Kind.FORWARD ? 1 : action.kind() == Kind.BACKWARD ? -1 : 0;
              most = Math.max(most, now);
            }
            assertEquals(Math.min(stages - stage, microBatches), most);
            assertEquals(most, Schedule.inFlight(stage, stages, microBatches));
          }
        });
  }

  @Test
  void endsThoughEachSendWaitsForItsReceive() {
    forAll(
        (stages, microBatches) ->
            assertTrue(
                ends(schedules(stages, microBatches)),
                "deadlock: stages=" + stages + ", micro-batches=" + microBatches));
  }

  @Test
  void stagesThatAllSendFirstDeadlock() {
    List<List<Action>> schedules = new ArrayList<>();
    for (List<Action> schedule : schedules(2, 3)) {
      List<Action> swapped = new ArrayList<>(schedule);
      for (int i = 1; i < swapped.size(); i++) {
        if (swapped.get(i).kind() == Kind.SEND_GRADIENTS
            && swapped.get(i - 1).kind() == Kind.RECEIVE_ACTIVATIONS) {
          Collections.swap(swapped, i, i - 1);
        }
      }
      schedules.add(swapped);
    }
    assertFalse(ends(schedules));
  }

  /** Runs all stages with messages that wait for each other. Returns false if they deadlock. */
  private static boolean ends(List<List<Action>> schedules) {
    int[] next = new int[schedules.size()];
    boolean moved = true;
    while (moved) {
      moved = false;
      for (int stage = 0; stage < next.length; stage++) {
        Action action = at(schedules, next, stage);
        if (action == null) {
          continue;
        }
        int receiver = stage + (action.kind() == Kind.SEND_ACTIVATIONS ? 1 : -1);
        Kind answer =
            action.kind() == Kind.SEND_ACTIVATIONS
                ? Kind.RECEIVE_ACTIVATIONS
                : Kind.RECEIVE_GRADIENTS;
        if (action.kind() == Kind.FORWARD || action.kind() == Kind.BACKWARD) {
          next[stage]++;
          moved = true;
        } else if ((action.kind() == Kind.SEND_ACTIVATIONS || action.kind() == Kind.SEND_GRADIENTS)
            && new Action(answer, action.microBatch()).equals(at(schedules, next, receiver))) {
          next[stage]++;
          next[receiver]++;
          moved = true;
        }
      }
    }
    return IntStream.range(0, next.length).allMatch(s -> next[s] == schedules.get(s).size());
  }

  private static Action at(List<List<Action>> schedules, int[] next, int stage) {
    List<Action> schedule = schedules.get(stage);
    return next[stage] < schedule.size() ? schedule.get(next[stage]) : null;
  }

  /** Checks the proof in the comment of {@link Schedule}. */
  @Test
  void messagesOfAStageAreInTheOrderOfTheirNumbers() {
    forAll(
        (stages, microBatches) -> {
          for (int stage = 0; stage < stages; stage++) {
            int before = -1;
            for (Action action : Schedule.of(stage, stages, microBatches)) {
              int number = number(action, stage, stages);
              assertTrue(number < 0 || number > before, () -> "not in order: " + action);
              before = Math.max(before, number);
            }
          }
        });
  }

  /** Returns twice the number of a message, one more for gradients, and -1 for passes. */
  private static int number(Action action, int stage, int stages) {
    int i = action.microBatch();
    return switch (action.kind()) {
      case SEND_ACTIVATIONS -> 2 * (2 * i + stage);
      case RECEIVE_ACTIVATIONS -> 2 * (2 * i + stage - 1);
      case RECEIVE_GRADIENTS -> 2 * (2 * (stages - 1 + i) - stage) + 1;
      case SEND_GRADIENTS -> 2 * (2 * (stages - 1 + i) - stage + 1) + 1;
      case FORWARD, BACKWARD -> -1;
    };
  }
}
