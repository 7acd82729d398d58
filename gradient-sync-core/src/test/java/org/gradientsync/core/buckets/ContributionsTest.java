package org.gradientsync.core.buckets;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Proxy;
import java.util.List;
import org.gradientsync.BFloat16;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientBuckets.Uneven;
import org.gradientsync.core.host.HostDevice;
import org.junit.jupiter.api.Test;

/** Tests what flags say of more ranks than a type of 16 bits can count. */
class ContributionsTest {
  private static final int RANKS = 1000;

  private Object stops; // whether the sync has heard that all stop

  private final BucketSync sync =
      (BucketSync)
          Proxy.newProxyInstance(
              BucketSync.class.getClassLoader(),
              new Class<?>[] {BucketSync.class},
              (self, method, arguments) ->
                  switch (method.getName()) {
                    case "size" -> RANKS;
                    case "isStopRequested" -> false;
                    case "allStop" -> stops = true;
                    default -> throw new AssertionError(method);
                  });

  @Test
  void oneOfManyRanksHasNoMoreData() {
    BucketsBuilder options = new BucketsBuilder(sync, List.of()).unevenSteps(Uneven.STOP);
    try (HostDevice device = new HostDevice();
        DeviceBuffer place = device.allocate(DataType.BFLOAT16, StepFlags.FIXED);
        StepFlags flags = new StepFlags(device, place, device.stream(), RANKS)) {
      Contributions contributions = new Contributions(options, new Readiness(List.of(), 0));
      contributions.write(flags);
      short[] others = new short[StepFlags.FIXED];
      place.copyTo(others);
      contributions.joining(true);
      contributions.write(flags);
      short[] averages = new short[StepFlags.FIXED];
      place.copyTo(averages);
      for (int i = 0; i < averages.length; i++) {
        float sum = BFloat16.toFloat(averages[i]) + (RANKS - 1) * BFloat16.toFloat(others[i]);
        averages[i] = BFloat16.fromFloat(sum / RANKS);
      }
      place.copyFrom(averages);
      contributions.known();
      assertTrue(contributions.isStopRequested(flags));
      assertEquals(true, stops);
    }
  }
}
