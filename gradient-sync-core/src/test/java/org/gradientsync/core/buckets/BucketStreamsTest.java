package org.gradientsync.core.buckets;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.gradientsync.Event;
import org.gradientsync.GradientSyncException;
import org.gradientsync.Stream;
import org.gradientsync.spi.BackendDevice;
import org.junit.jupiter.api.Test;

/** Tests which stream averages which bucket, and that the streams are closed. */
class BucketStreamsTest {
  private final List<Named> created = new ArrayList<>();
  private final List<String> closed = new ArrayList<>();
  private final Named compute = new Named("compute");
  private int most = Integer.MAX_VALUE;

  private final class Named implements Stream {
    private final String name;

    Named(String name) {
      this.name = name;
    }

    @Override
    public void waitFor(Event event) {
      throw new AssertionError("nothing is enqueued here");
    }

    @Override
    public void await() {
      throw new AssertionError("nothing is enqueued here");
    }

    @Override
    public void close() {
      closed.add(name);
    }
  }

  /** A device that only creates streams. */
  private final BackendDevice device =
      (BackendDevice)
          Proxy.newProxyInstance(
              BackendDevice.class.getClassLoader(),
              new Class<?>[] {BackendDevice.class},
              (self, method, arguments) -> {
                assertEquals("createStream", method.getName());
                if (created.size() == most) {
                  throw new GradientSyncException("no more streams");
                }
                boolean sparing = (boolean) arguments[0];
                created.add(new Named((sparing ? "sparing " : "whole ") + created.size()));
                return created.get(created.size() - 1);
              });

  private List<String> names(boolean blocks, boolean overlap, int buckets) {
    try (BucketStreams streams = new BucketStreams(device, blocks, compute, overlap)) {
      return IntStream.range(0, buckets)
          .mapToObj(i -> ((Named) streams.of(i, buckets)).name)
          .toList();
    }
  }

  @Test
  void twoAlternateAndTheLastBucketHasTheWholeDevice() {
    assertEquals(
        List.of("sparing 0", "sparing 1", "sparing 0", "sparing 1", "whole 2"),
        names(false, true, 5));
    assertEquals(List.of("whole 2", "sparing 1", "sparing 0"), closed);
  }

  @Test
  void oneBucketIsTheLast() {
    assertEquals(List.of("whole 2"), names(false, true, 1));
  }

  @Test
  void aBlockingReducerHasOneStream() {
    assertEquals(List.of("sparing 0", "sparing 0", "sparing 0"), names(true, true, 3));
    assertEquals(List.of("sparing 0"), closed);
  }

  @Test
  void withoutOverlapItIsTheComputeStream() {
    assertEquals(List.of("compute", "compute"), names(false, false, 2));
    assertEquals(List.of("compute", "compute"), names(true, false, 2));
    assertEquals(List.of(), closed); // its owner closes it
  }

  @Test
  void streamsAreClosedIfCreatingAnotherFails() {
    most = 2;
    assertThrows(
        GradientSyncException.class, () -> new BucketStreams(device, false, compute, true));
    assertEquals(List.of("sparing 1", "sparing 0"), closed);
  }
}
