package org.gradientsync.mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import java.util.Map;
import org.gradientsync.Communicator;
import org.gradientsync.core.selection.OwnParts;
import org.gradientsync.spi.Availability;
import org.gradientsync.spi.BackendDevice;
import org.gradientsync.spi.RankGroup;
import org.gradientsync.spi.Settings;
import org.gradientsync.spi.SyncContext;
import org.gradientsync.spi.Transport;
import org.junit.jupiter.api.Test;

/** Tests when {@code cuda-aware} is not available, and the reasons given. */
class CudaAwareReducerProviderTest {
  private final Transport transport = mock(Transport.class);
  private final BackendDevice device = mock(BackendDevice.class);
  private Availability mpi = Availability.yes();

  @Test
  void withoutMpirunItCannotBe() {
    when(transport.name()).thenReturn("local");
    when(device.kind()).thenReturn("cuda");
    assertEquals("the ranks were not started by mpirun: launcher=local", availability().reason());
  }

  @Test
  void anMpiThatSaysNoIsBelieved() {
    when(transport.name()).thenReturn("mpi");
    when(device.kind()).thenReturn("cuda");
    mpi = Availability.no("this Open MPI does not");
    assertEquals("this Open MPI does not", availability().reason());
    mpi = Availability.yes();
    assertTrue(availability().usable());
  }

  @Test
  void hostMemoryIsNotItsBusiness() {
    when(device.kind()).thenReturn("host");
    assertFalse(availability().usable());
  }

  private Availability availability() {
    RankGroup group = mock(RankGroup.class);
    when(group.transport()).thenReturn(transport);
    return new CudaAwareReducerProvider(() -> mpi, timeout -> Availability.yes())
        .availability(
            new SyncContext(
                group, mock(Communicator.class), device, new Settings(Map.of()), new OwnParts()));
  }
}
