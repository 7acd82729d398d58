package org.gradientsync.tools.links;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.gradientsync.tools.links.LinkKind.Link;
import org.junit.jupiter.api.Test;

class LinkKindTest {
  private static LinkKind bandwidth(Link... links) {
    return new LinkKind("one way", "GB/s", true, List.of(links));
  }

  private static Link link(int from, int to, double value) {
    return new Link("GPU " + from, "GPU " + to, value, false);
  }

  @Test
  void linksUnderFourFifthsOfTheMedianAreSlow() {
    LinkKind kind = bandwidth(link(0, 1, 100), link(0, 2, 79.9), link(1, 2, 80), link(2, 0, 300));
    assertEquals(90, kind.median());
    assertEquals(List.of(), kind.slow());
    kind =
        bandwidth(
            link(0, 1, 100), link(0, 2, 79.9), link(1, 2, 80), link(2, 0, 100), link(2, 1, 100));
    assertEquals(List.of(link(0, 2, 79.9)), kind.slow());
    assertEquals(
        List.of("slow: GPU 0 to GPU 2, kind=one way, GB/s=79.9, median=100.0"), kind.complaints());
  }

  @Test
  void oneOfTwoDirectionsCanBeSlow() {
    assertEquals(List.of(link(1, 0, 30)), bandwidth(link(0, 1, 60), link(1, 0, 30)).slow());
    assertEquals(List.of(), bandwidth(link(0, 1, 60), link(1, 0, 50)).slow());
  }

  @Test
  void longTimesAreSlow() {
    LinkKind kind =
        new LinkKind(
            "latency", "us", false, List.of(link(0, 1, 2), link(1, 0, 2), link(1, 2, 2.6)));
    assertEquals(List.of(link(1, 2, 2.6)), kind.slow());
    assertEquals(
        List.of("slow: GPU 1 to GPU 2, kind=latency, us=2.6, median=2.0"), kind.complaints());
  }

  @Test
  void oneLinkAloneIsNotSlow() {
    assertEquals(List.of(), bandwidth(link(0, 1, 5)).slow());
    assertEquals(List.of(), bandwidth().slow());
    assertEquals(List.of(), bandwidth().complaints());
  }

  @Test
  void theMatrixHasARowForEachSender() {
    LinkKind kind =
        bandwidth(
            link(0, 2, 1.25),
            link(0, 10, 394.04),
            link(10, 0, 5),
            new Link("GPU 2", "GPU 0", 7, true));
    assertEquals(
        List.of(
            "one way, GB/s",
            "from \\ to                 GPU 0  GPU 2  GPU 10",
            "GPU 0                         -    1.3   394.0",
            "GPU 2      7.0 (no peer access)      -       -",
            "GPU 10                      5.0      -       -"),
        kind.lines());
  }

  @Test
  void theHostIsAnEndLikeAnother() {
    LinkKind kind =
        bandwidth(new Link("host", "GPU 0", 55.5, false), new Link("host", "GPU 1", 9, false));
    assertEquals(
        List.of("one way, GB/s", "from \\ to  GPU 0  GPU 1", "host        55.5    9.0"),
        kind.lines());
  }
}
