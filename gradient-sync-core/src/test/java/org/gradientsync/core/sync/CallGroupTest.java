package org.gradientsync.core.sync;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSyncException;
import org.gradientsync.RankLostException;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.selection.Selection;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.CollectiveCall;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class CallGroupTest {
  @Test
  void aRankWithoutMemoryForAPackEndsTheOthers() {
    GradientSyncException full = new GradientSyncException("out of host memory: type=FLOAT32");
    CountDownLatch thrown = new CountDownLatch(1);
    LocalRanks.run(
        2,
        b -> b.timeout(Duration.ofSeconds(20)),
        sync -> {
          Selection.Choice choice = ((GradientSyncImpl) sync).choice;
          DeviceBuffer a = sync.allocate(DataType.FLOAT32, 3);
          DeviceBuffer b = sync.allocate(DataType.FLOAT32, 4);
          if (sync.rank() == 0) {
            RankLostException e =
                assertThrows(
                    RankLostException.class,
                    () ->
                        sync.grouped(
                            () -> {
                              sync.average(a);
                              sync.average(b);
                            }));
            String text = e.getMessage();
            assertTrue(text.startsWith("rank 1 (thread=rank-1) gave up in the middle of"), text);
            assertTrue(text.contains(full.getMessage()), text);
            thrown.countDown();
            return;
          }
          List<CollectiveCall> calls =
              List.of(
                  CollectiveCall.allReduce(a, ReduceOp.AVERAGE),
                  CollectiveCall.allReduce(b, ReduceOp.AVERAGE));
          BackendDevice device = withoutMemory(choice.device(), full);
          synchronized (choice.group()) {
            assertThrows(
                GradientSyncException.class,
                () -> new CallGroup(calls, device, choice.group(), choice.reducer()));
          }
          thrown.await(); // without closing the sync
        });
  }

  private static BackendDevice withoutMemory(BackendDevice device, RuntimeException full) {
    return (BackendDevice)
        Proxy.newProxyInstance(
            CallGroupTest.class.getClassLoader(),
            new Class<?>[] {BackendDevice.class},
            (proxy, method, arguments) -> {
              if (method.getName().equals("allocate")) {
                throw full;
              }
              try {
                return method.invoke(device, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }
}
