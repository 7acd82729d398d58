package org.gradientsync.test.faults;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;
import static org.mockito.Mockito.withSettings;

import java.util.HashSet;
import java.util.Set;
import org.gradientsync.Communicator;
import org.gradientsync.GradientSync;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.mockito.MockMakers;

/** Tests Faults as a test parameter, and the check at the end of each test. */
@ExtendWith(Faults.class)
class FaultsParameterTest {
  private static final Set<Faults> given = new HashSet<>();

  @AfterAll
  static void eachTestHadItsOwn() {
    assertEquals(3, given.size());
  }

  @RepeatedTest(2)
  void strikeWherePlanned(Faults faults) {
    given.add(faults);
    faults.onRank(0).atCall(2).deviceError("ECC");
    try (GradientSync sync = faults.install(GradientSync.builder()).create()) {
      Communicator communicator = sync.communicator();
      communicator.barrier();
      assertThrows(RuntimeException.class, communicator::barrier);
    }
  }

  @Test
  void theTestFailsIfOneIsNotReached(Faults faults) {
    given.add(faults);
    ExtensionContext context =
        mock(ExtensionContext.class, withSettings().mockMaker(MockMakers.SUBCLASS));
    ExtensionContext.Store store =
        mock(ExtensionContext.Store.class, withSettings().mockMaker(MockMakers.SUBCLASS));
    when(context.getStore(any())).thenReturn(store);
    when(store.get(Faults.class, Faults.class)).thenReturn(faults);
    Faults registered = new Faults();
    registered.onRank(0).atCall(1).die();
    faults.onRank(1).atCall(2).drop();
    AssertionError e = assertThrows(AssertionError.class, () -> registered.afterEach(context));
    assertTrue(e.getMessage().contains("onRank(1).atCall(2).drop()"), e.getMessage());
    assertTrue(
        e.getSuppressed()[0].getMessage().contains("onRank(0).atCall(1).die()"), e.getMessage());
    assertDoesNotThrow(() -> registered.afterEach(context)); // both plans have been cleared
  }
}
