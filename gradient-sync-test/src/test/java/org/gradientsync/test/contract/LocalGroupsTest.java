package org.gradientsync.test.contract;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;

import java.util.ArrayList;
import java.util.List;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Test;

/** The contract of groups, with ranks as threads. */
class LocalGroupsTest extends GroupsContract {
  @Override
  protected RankRunner runner() {
    return new LocalRunner();
  }

  @Test
  void sixtyFourGroupsOfEightRanksAverage() {
    LocalRanks.run(
        8,
        sync -> {
          List<GradientSync> groups = new ArrayList<>();
          for (int i = 0; i < 64; i++) {
            groups.add(sync.split(0, i % 2 == 0 ? sync.rank() : -sync.rank()));
          }
          try (DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 3)) {
            for (int round = 0; round < 3; round++) {
              for (GradientSync group : groups) {
                buffer.copyFrom(new float[] {sync.rank(), group.rank(), round});
                group.average(buffer);
                float[] result = new float[3];
                buffer.copyTo(result);
                assertArrayEquals(new float[] {3.5f, 3.5f, round}, result);
              }
            }
          }
        });
  }
}
