package org.gradientsync.core.collectives.nodes;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.gradientsync.SumOrder;
import org.junit.jupiter.api.Test;

class RunningSumTest {
  private static final int CHUNKS = 1000;

  /** Everything but results comes at once. */
  private static final class Steps implements RunningSum.Steps {
    private boolean resultsCome;
    private boolean halfOfThemCome; // those of one tree
    private int expected;
    private int returned;

    @Override
    public void expectSum(int chunk) {
      expected++;
    }

    @Override
    public boolean isSumThere(int chunk) {
      return true;
    }

    @Override
    public void add(int chunk) {}

    @Override
    public boolean isSumSent(int chunk) {
      return true;
    }

    @Override
    public void expectResult(int chunk) {}

    @Override
    public boolean isResultThere(int chunk) {
      return resultsCome || halfOfThemCome && chunk % 2 == 1;
    }

    @Override
    public void returnResult(int chunk) {
      returned++;
    }

    @Override
    public boolean isResultReturned(int chunk) {
      return true;
    }
  }

  @Test
  void sumsAreNotFarAheadOfTheirResults() {
    for (SumOrder sumOrder : SumOrder.values()) {
      for (int nodes : new int[] {2, 3, 4, 8}) {
        ChunkOrder order = new ChunkOrder(CHUNKS, nodes, 1, sumOrder);
        Steps steps = new Steps();
        RunningSum sum = new RunningSum(order, SumPlan.slots(sumOrder, nodes), steps);
        sum.begin();
        while (sum.advance()) {}
        assertEquals(Math.min(CHUNKS, order.window()), steps.expected, sumOrder + " " + nodes);
        assertEquals(0, steps.returned);
        assertFalse(sum.isDone());
        steps.resultsCome = true;
        while (sum.advance()) {}
        assertTrue(sum.isDone());
        assertEquals(CHUNKS, steps.returned);
      }
    }
  }

  /** Otherwise each result would wait for all nodes of the other tree. */
  @Test
  void resultsOfOneTreeDoNotWaitForThoseOfTheOther() {
    ChunkOrder order = new ChunkOrder(CHUNKS, 8, 1, SumOrder.RANKS);
    Steps steps = new Steps();
    RunningSum sum = new RunningSum(order, SumPlan.slots(SumOrder.RANKS, 8), steps);
    sum.begin();
    steps.halfOfThemCome = true;
    while (sum.advance()) {}
    assertEquals(order.window() / 2, steps.returned);
    assertEquals(0, sum.results());
    assertEquals(0, sum.awaitedResult());
    steps.resultsCome = true;
    while (sum.advance()) {}
    assertTrue(sum.isDone());
  }
}
