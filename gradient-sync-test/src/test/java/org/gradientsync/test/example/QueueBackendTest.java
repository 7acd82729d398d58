package org.gradientsync.test.example;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.gradientsync.test.contract.AveragesContract;
import org.gradientsync.test.contract.CollectivesContract;
import org.gradientsync.test.contract.CommunicatorContract;
import org.gradientsync.test.contract.GroupedCallsContract;
import org.gradientsync.test.contract.GroupsContract;
import org.gradientsync.test.contract.RankRunner;
import org.gradientsync.test.contract.ReducerContract;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;

/** A backend that is written from the SPI alone passes the contracts. */
class QueueBackendTest {
  @Test
  void isWhatTheContractsRun() {
    new QueueRunner()
        .run(2, sync -> assertEquals("queues queues", sync.launcher() + " " + sync.reducer()));
  }

  @Nested
  class Reduces extends ReducerContract {
    @Override
    protected RankRunner runner() {
      return new QueueRunner();
    }
  }

  @Nested
  class Collects extends CollectivesContract {
    @Override
    protected RankRunner runner() {
      return new QueueRunner();
    }
  }

  @Nested
  class Groups extends GroupedCallsContract {
    @Override
    protected RankRunner runner() {
      return new QueueRunner();
    }
  }

  @Nested
  class Splits extends GroupsContract {
    @Override
    protected RankRunner runner() {
      return new QueueRunner();
    }
  }

  @Nested
  class Averages extends AveragesContract {
    @Override
    protected RankRunner runner() {
      return new QueueRunner();
    }
  }

  @Nested
  class Communicates extends CommunicatorContract {
    @Override
    protected RankRunner runner() {
      return new QueueRunner();
    }
  }
}
