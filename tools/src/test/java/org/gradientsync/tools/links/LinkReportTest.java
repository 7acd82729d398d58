package org.gradientsync.tools.links;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Instant;
import java.util.List;
import org.gradientsync.tools.links.LinkKind.Link;
import org.junit.jupiter.api.Test;

class LinkReportTest {
  private static LinkReport report(double first, double second) {
    Link to = new Link("host", "GPU 0", first, false);
    Link also = new Link("host", "GPU 1", second, true);
    LinkKind kind = new LinkKind("host to GPU", "GB/s", true, List.of(to, also));
    return new LinkReport(List.of("GPU 0, \"H\" (0)", "GPU 1, H (1)"), 1024, 3, List.of(kind));
  }

  @Test
  void theTextNamesSlowLinksAtItsEnd() {
    assertEquals(
        List.of(
            "GPUs: 2, bytes: 1024, repeats: 3",
            "  GPU 0, \"H\" (0)",
            "  GPU 1, H (1)",
            "",
            "host to GPU, GB/s",
            "from \\ to  GPU 0                  GPU 1",
            "host        50.0  10.0 (no peer access)",
            "",
            "slow: host to GPU 1, kind=host to GPU, GB/s=10.0, median=30.0"),
        report(50, 10).lines());
  }

  @Test
  void theTextSaysThatNoneIsSlow() {
    List<String> lines = report(50, 49).lines();
    assertEquals(
        "No link is slow: each reaches 80 % of its kind's median.", lines.get(lines.size() - 1));
  }

  @Test
  void theJsonHasNullForInfinity() {
    String json = report(Double.POSITIVE_INFINITY, 10).json(Instant.EPOCH);
    assertTrue(json.contains("\"to\": \"GPU 0\", \"value\": null, "), json);
  }

  @Test
  void theJsonHasAllFigures() {
    assertEquals(
        """
        {"program": "link-perf", "date": "2026-11-21T04:00:00Z", \
        "gpus": ["GPU 0, \\"H\\" (0)", "GPU 1, H (1)"], "bytes": 1024, "repeats": 3, "kinds": [
          {"name": "host to GPU", "unit": "GB/s", "links": [
          {"from": "host", "to": "GPU 0", "value": 50.125, "throughHost": false, "slow": false}, \

          {"from": "host", "to": "GPU 1", "value": 10.0, "throughHost": true, "slow": true}]}]}
        """,
        report(50.125, 10).json(Instant.parse("2026-11-21T04:00:00.5Z")));
  }
}
