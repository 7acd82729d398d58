package org.gradientsync.core.selection;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.LinkedHashMap;
import java.util.List;
import org.gradientsync.UnavailableException;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.Availability;
import org.junit.jupiter.api.Test;

class JointChoiceTest {
  private static final class Speechless {}

  @Test
  void aProviderWithoutAvailabilityIsNamed() {
    LocalRanks.run(
        2,
        sync -> {
          JointChoice choice = new JointChoice(sync.communicator(), "reducer", null);
          UnavailableException e =
              assertThrows(
                  UnavailableException.class,
                  () ->
                      choice.choose(
                          List.of(new Speechless()),
                          provider -> "speechless",
                          provider -> sync.rank() == 0 ? Availability.yes() : null,
                          new LinkedHashMap<>(),
                          new LinkedHashMap<>()));
          String why =
              "speechless: its provider returned null as its availability: provider="
                  + Speechless.class.getName()
                  + "; mend the provider (rank 1)";
          assertTrue(e.getMessage().contains(why), e.getMessage());
        });
  }
}
