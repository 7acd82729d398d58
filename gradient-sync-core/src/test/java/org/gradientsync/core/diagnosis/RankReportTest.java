package org.gradientsync.core.diagnosis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import org.gradientsync.core.local.LocalWorld;
import org.gradientsync.core.rendezvous.GroupParts;
import org.gradientsync.local.LocalRanks;
import org.junit.jupiter.api.Test;

/** What a report shows, and what it hides from strangers. */
class RankReportTest {
  @Test
  void unknownVariablesAndCommandsAreHidden() {
    Map<String, String> variables =
        Map.ofEntries(
            Map.entry("OMPI_ARGV", "-Dapi.key=abc Train --password=abc"),
            Map.entry("OMPI_COMMAND", "java"),
            Map.entry("OMPI_MCA_orte_hnp_uri", "tcp://10.0.0.1:4711"),
            Map.entry("OMPI_MCA_btl", "tcp,self"),
            Map.entry("OMPI_COMM_WORLD_RANK", "3"),
            Map.entry("SLURM_STEP_LAUNCHER_PORT", "4711"),
            Map.entry("SLURM_PROCID", "3"),
            Map.entry("SLURM_JOB_COMMENT", "abc"),
            Map.entry("UCX_TLS", "^cma"),
            Map.entry("UCX_NET_DEVICES", "--password=abc"),
            Map.entry("CUDA_VISIBLE_DEVICES", "0,1"),
            Map.entry("CUDA_PATH", "java -Dapi.key=abc"),
            Map.entry("LD_LIBRARY_PATH", "/a:/b --password abc"),
            Map.entry("HOME", "/root"));
    String hidden = "(not shown: looks like a command)";
    assertEquals(
        List.of(
            "CUDA_VISIBLE_DEVICES=0,1",
            "LD_LIBRARY_PATH=" + hidden,
            "OMPI_COMM_WORLD_RANK=3",
            "OMPI_MCA_btl=tcp,self",
            "SLURM_PROCID=3",
            "UCX_NET_DEVICES=" + hidden,
            "UCX_TLS=^cma"),
        RankReport.environment(variables));
  }

  @Test
  void reportsShowTheVersion() {
    String version = RankReport.properties().get(0);
    assertTrue(version.matches("gradient-sync=(unpackaged|\\d.*)"), version);
  }

  @Test
  void threadNamesStayOnOneLine() throws Exception {
    Thread waiting = new Thread(RankReportTest::sleep, "a\nb");
    waiting.setDaemon(true);
    waiting.start();
    LocalRanks.run(
        1,
        sync -> {
          Thread.currentThread().setName("a\nb\u2028c");
          GroupParts group = LocalWorld.current().orElseThrow().parts();
          List<String> report = new RankReport(group, () -> "").of("");
          assertTrue(report.get(0).contains("thread \"a b c\""), report::toString);
          assertTrue(
              report.stream().anyMatch(line -> line.startsWith("  \"a b\" ")), report::toString);
          assertFalse(report.stream().anyMatch(line -> line.contains("\n")), report::toString);
        });
    waiting.interrupt();
    waiting.join();
  }

  private static void sleep() {
    try {
      Thread.sleep(600_000);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
