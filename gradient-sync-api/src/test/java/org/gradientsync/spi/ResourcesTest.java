package org.gradientsync.spi;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Tests that all resources are closed, and that the first failure is thrown. */
class ResourcesTest {
  private final List<String> closed = new ArrayList<>();

  private AutoCloseable good(String name) {
    return () -> closed.add(name);
  }

  private AutoCloseable bad(String name, Exception failure) {
    return () -> {
      closed.add(name);
      throw failure;
    };
  }

  @Test
  void theLastOneIsClosedFirstAndOnce() {
    Resources resources = new Resources();
    resources.add(good("a"));
    resources.add(good("b"));
    resources.close();
    resources.close();
    assertEquals(List.of("b", "a"), closed);
  }

  @Test
  void whatFailsLaterIsSuppressed() {
    RuntimeException first = new IllegalStateException("first");
    RuntimeException second = new IllegalStateException("second");
    assertSame(
        first,
        assertThrows(
            IllegalStateException.class,
            () ->
                Resources.closeAll(
                    null, bad("a", first), bad("b", second), bad("c", first), good("d"))));
    assertEquals(List.of("a", "b", "c", "d"), closed);
    assertEquals(List.of(second), List.of(first.getSuppressed()));
  }

  @Test
  void afterAFailureAllIsSuppressedInIt() {
    RuntimeException failure = new IllegalStateException("failure");
    RuntimeException second = new IllegalStateException("second");
    Resources resources = new Resources();
    resources.add(good("a"));
    resources.add(bad("b", second));
    assertDoesNotThrow(() -> resources.closeAfter(failure));
    assertEquals(List.of("b", "a"), closed);
    assertEquals(List.of(second), List.of(failure.getSuppressed()));
  }

  @Test
  void checkedExceptionsAreCauses() {
    IOException cause = new IOException("disk");
    IllegalStateException e =
        assertThrows(
            IllegalStateException.class,
            () -> Resources.closeAll(bad("a", cause), bad("b", new InterruptedException())));
    assertSame(cause, e.getCause());
    assertTrue(Thread.interrupted());
  }
}
