package org.gradientsync.cuda.internal.driver;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.mockito.Mockito.mock;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import jcuda.driver.CUcontext;
import org.gradientsync.DeviceException;
import org.gradientsync.cuda.FakeGpu;
import org.junit.jupiter.api.Test;

class KernelGateTest {
  private final CudaApi api = mock(CudaApi.class);
  private final CUcontext context = FakeGpu.newContext();
  private final KernelGate gate = KernelGate.of(api, context);
  private final AtomicInteger runs = new AtomicInteger();

  @Test
  void devicesOfOneGpuShareAGate() {
    assertSame(gate, KernelGate.of(api, context));
    assertFalse(gate == KernelGate.of(api, FakeGpu.newContext()));
  }

  @Test
  void oneSyncAloneHoldsNothingUp() {
    gate.add(() -> false);
    assertTrue(gate.tryRun(runs::incrementAndGet));
    gate.run(runs::incrementAndGet);
    assertEquals(2, runs.get());
  }

  @Test
  void callsWaitForOneKernelOfSeveralSyncs() {
    AtomicInteger asked = new AtomicInteger();
    gate.add(() -> true);
    gate.add(() -> asked.incrementAndGet() > 3);
    assertFalse(gate.tryRun(runs::incrementAndGet));
    gate.pass();
    assertEquals(0, runs.get());
    gate.run(runs::incrementAndGet);
    assertEquals(1, runs.get());
    assertEquals(4, asked.get());
  }

  @Test
  void callsAreMadeIfKernelsNeverEnd() {
    gate.add(() -> true);
    gate.add(() -> false);
    gate.run(runs::incrementAndGet);
    assertEquals(1, runs.get());
    gate.pass();
  }

  @Test
  void aFailureOpensTheGate() {
    gate.add(() -> true);
    gate.add(() -> true);
    Runnable failing =
        () -> {
          throw new DeviceException("cuMemFree failed: X (1)", 1);
        };
    assertThrows(DeviceException.class, () -> gate.run(failing));
    assertThrows(DeviceException.class, () -> gate.tryRun(failing));
    gate.pass();
  }

  @Test
  void noKernelPassesUntilAllCallsAreMade() throws InterruptedException {
    gate.add(() -> true);
    gate.add(() -> true);
    CountDownLatch begun = new CountDownLatch(1);
    CountDownLatch mayEnd = new CountDownLatch(1);
    AtomicBoolean passed = new AtomicBoolean();
    AtomicBoolean passedEarly = new AtomicBoolean();
    Thread calling =
        new Thread(
            () ->
                gate.run(
                    () -> {
                      begun.countDown();
                      await(mayEnd);
                      passedEarly.set(passed.get());
                    }));
    calling.start();
    begun.await();
    assertTrue(gate.tryRun(runs::incrementAndGet)); // another thread's, and the gate stays closed
    Thread enqueuing =
        new Thread(
            () -> {
              gate.pass();
              passed.set(true);
            });
    enqueuing.start();
    enqueuing.join(50);
    mayEnd.countDown();
    enqueuing.join();
    calling.join();
    assertFalse(passedEarly.get());
    assertTrue(passed.get());
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }
}
