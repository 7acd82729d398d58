package org.gradientsync;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.Optional;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.host.HostDevice;
import org.gradientsync.core.local.LocalWorld;
import org.gradientsync.core.selection.OwnParts;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.SyncContext;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests the setting {@code wire}: builder, system property, and wrong values. */
@Timeout(60)
class WireSettingTest {
  private static final String PROPERTY = "gradientsync.wire";

  @AfterEach
  void clear() {
    System.clearProperty(PROPERTY);
  }

  @Test
  void nothingTravelsCompressedUnlessAskedFor() {
    try (GradientSync sync = GradientSync.create()) {
      assertEquals(Optional.empty(), sync.wire());
    }
  }

  @Test
  void thePropertyIsReadInAnyCase() {
    assertProperty("bfloat16", DataType.BFLOAT16);
    assertProperty("BFloat16", DataType.BFLOAT16);
    assertProperty("float16", DataType.FLOAT16);
    assertProperty("FLOAT16", DataType.FLOAT16);
    assertProperty("", null);
    assertProperty("  ", null);
  }

  private static void assertProperty(String text, DataType wire) {
    System.setProperty(PROPERTY, text);
    try (GradientSync sync = GradientSync.create()) {
      assertEquals(Optional.ofNullable(wire), sync.wire());
      assertEquals("local", sync.reducer());
    }
  }

  @Test
  void otherValuesAreRefusedByAllRanks() {
    for (String text : new String[] {"float32", "half", "bfloat", "16", "none"}) {
      System.setProperty(PROPERTY, text);
      Exception e = assertThrows(GradientSyncException.class, () -> LocalRanks.run(2, sync -> {}));
      assertTrue(e.getMessage().contains("gradientsync.wire=" + text), e.getMessage());
      assertTrue(e.getMessage().contains("give bfloat16, float16, or nothing"), e.getMessage());
    }
  }

  @Test
  void theBuilderWins() {
    System.setProperty(PROPERTY, "float16");
    try (GradientSync sync = GradientSync.builder().wire(DataType.BFLOAT16).create()) {
      assertEquals(Optional.of(DataType.BFLOAT16), sync.wire());
    }
    try (GradientSync sync = GradientSync.builder().set("wire", "").create()) {
      assertEquals(Optional.empty(), sync.wire());
    }
  }

  @Test
  void theBuilderTakesOnlyTheTwoTypes() {
    GradientSync.Builder builder = GradientSync.builder();
    for (DataType type : DataType.values()) {
      if (type == DataType.FLOAT16 || type == DataType.BFLOAT16) {
        builder.wire(type);
      } else {
        IllegalArgumentException e =
            assertThrows(IllegalArgumentException.class, () -> builder.wire(type));
        assertTrue(e.getMessage().contains("wire=" + type), e.getMessage());
      }
    }
    assertThrows(NullPointerException.class, () -> builder.wire(null));
  }

  @Test
  void reducersGetTheWireType() {
    Settings settings = new Settings(Map.of("wire", "bfloat16"));
    try (ProcessGroup group = LocalWorld.single();
        HostDevice device = new HostDevice()) {
      SyncContext context =
          new SyncContext(group, new GroupCommunicator(group), device, settings, new OwnParts());
      assertEquals(Optional.of(DataType.BFLOAT16), context.settings().wire());
    }
  }
}
