package org.gradientsync.tools.doctor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.jr.ob.JSON;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.gradientsync.cuda.SimulatedGpu;
import org.gradientsync.examples.Run;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.tools.links.LinkKind;
import org.gradientsync.tools.program.ChildProcess;
import org.gradientsync.tools.program.RankedProgram;
import org.gradientsync.tools.program.Scratch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the doctor's parts with given facts. */
class DoctorTest {
  /** The facts of a rank without a GPU and without problems. */
  private static final String SOUND =
      """
      JDK|version|17
      Machine|host name|here
      Machine|CPUs|0-7
      CPU binding|allowed CPUs|0-7
      CPU binding|CPUs that the JVM sees|8
      /dev/shm|usable|yes
      /dev/shm|size|23.5 GiB
      /dev/shm|free|12.0 GiB
      Settings|UCX_ERROR_SIGNALS|(empty)
      Open MPI|mpirun|mpirun (Open MPI) 4.1.4, /usr/bin/mpirun
      Open MPI|library version|Open MPI v4.1.4
      Open MPI|Java bindings|usable
      GPUs|NVIDIA driver|none is loaded
      GPUs|usable|no: there is none
      Reducer|ranks|2
      Reducer|device|host, host memory
      Reducer|chosen|shared
      """;

  @TempDir Path folder;

  // The command line

  @Test
  void helpTellsOptionsAndExitCodes() {
    Run run = Run.of(new Doctor(), "--help").exits(0);
    for (String part : new String[] {"--json", "--seconds=S", "  0   ", "  1   ", "  2   "}) {
      assertTrue(run.out().contains(part), run::toString);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"--seconds=9", "--seconds=56", "--seconds=soon", "--jason", "--local=2"})
  void impossibleOptionsAreBadUse(String option) {
    Run.of(new Doctor(), option).exits(2).complainsInOneLine(option.split("=")[0]);
  }

  // Facts

  @Test
  void factsSurviveBeingText() {
    Facts facts =
        new Facts()
            .add("JDK", "options", "-Da=\t\\tb\n-Dc=\\n")
            .add("JDK", "version", 17)
            .add("Settings", "X", "");
    Facts read = Facts.read("noise\n" + facts.text() + "a\tb\n");
    assertEquals(facts.copy(), read.copy());
    assertEquals("", read.get("Settings", "Y"));
    assertFalse(read.has("Settings", "Y"));
    assertEquals(List.of("Settings"), List.copyOf(read.without("JDK").copy().keySet()));
  }

  @Test
  void aRankKnowsItsPlaceWithoutMpi() {
    Place alone = Place.of(Map.of("PATH", "/bin"));
    assertEquals(new Place(false, 0, 1, 0, 1, null), alone);
    Place rank =
        Place.of(
            Map.of(
                "OMPI_COMM_WORLD_RANK", "5",
                "OMPI_COMM_WORLD_SIZE", "8",
                "OMPI_COMM_WORLD_LOCAL_RANK", "1",
                "OMPI_COMM_WORLD_LOCAL_SIZE", "4",
                "PMIX_NAMESPACE", "a/../b",
                "PMIX_SERVER_TMPDIR", "/tmp/session"));
    assertEquals(
        new Place(true, 5, 8, 1, 4, Path.of("/tmp/session/gradient-sync-doctor-a_.._b")), rank);
    Place other = Place.of(Map.of("PMIX_RANK", "2", "SLURM_NTASKS", "many"));
    assertEquals(new Place(true, 2, 0, 0, 1, null), other);
    Map<String, String> tcp =
        Map.of("RANK", "3", "WORLD_SIZE", "4", "LOCAL_RANK", "1", "LOCAL_WORLD_SIZE", "2");
    assertEquals(new Place(false, 3, 4, 1, 2, null), Place.of(tcp));
    assertEquals(alone, Place.of(Map.of("RANK", "3")));
  }

  @Test
  void mpirunsOwnVariablesAreNoSettings() {
    Facts facts = new Facts();
    Host.settings(
        Map.of(
            "OMPI_MCA_btl", "self",
            "OMPI_MCA_orte_hnp_uri", "tcp://somewhere",
            "OMPI_COMM_WORLD_RANK", "0",
            "UCX_TLS", "",
            "HOME", "/root"),
        facts);
    assertEquals(
        Map.of("UCX_ERROR_SIGNALS", "not set", "OMPI_MCA_btl", "self", "UCX_TLS", "(empty)"),
        facts.section("Settings"));
  }

  @Test
  void theSecretOfAJobIsNotShown() {
    Facts facts = new Facts();
    Host.properties(
        Map.of("gradientsync.tcp.secret", "abc", "gradientsync.timeout", "5", "user.secret", "abc"),
        facts);
    assertEquals(
        Map.of("-Dgradientsync.tcp.secret", "(secret)", "-Dgradientsync.timeout", "5"),
        facts.section("Settings"));
    assertEquals(
        "-Dgradientsync.tcp.secret=(not shown)", Host.shown("-Dgradientsync.tcp.secret=abc"));
    facts = new Facts();
    Host.settings(Map.of("GRADIENTSYNC_SECRET", "abc"), facts);
    assertEquals(Map.of("UCX_ERROR_SIGNALS", "not set"), facts.section("Settings"));
  }

  @Test
  void whatMayHoldASecretIsNotShown() {
    Facts facts = new Facts();
    Host.settings(
        Map.of(
            "JAVA_OPTS", "-Dapi.key=abc",
            "OMPI_MCA_btl", "tcp --password=abc",
            "CUDA_PATH", "/abc",
            "UCX_TLS", "self"),
        facts);
    String hidden = "(not shown: looks like a command)";
    assertEquals(
        Map.of(
            "UCX_ERROR_SIGNALS",
            "not set",
            "JAVA_OPTS",
            hidden,
            "OMPI_MCA_btl",
            hidden,
            "UCX_TLS",
            "self"),
        facts.section("Settings"));
    for (String option : List.of("-Xmx1g", "-XX:+UseSerialGC", "-Dgradientsync.timeout=5")) {
      assertEquals(option, Host.shown(option));
    }
    assertEquals("-Dapi.key=(not shown)", Host.shown("-Dapi.key=abc"));
    assertEquals(
        "-XX:OnOutOfMemoryError=(not shown)", Host.shown("-XX:OnOutOfMemoryError=mail -p abc"));
    assertEquals("-javaagent:a.jar=(not shown)", Host.shown("-javaagent:a.jar=abc"));
  }

  @Test
  void theHostIsDescribed() throws Exception {
    Facts facts = new Facts();
    Host.jdk(facts);
    Host.machine(facts);
    Host.cpus(facts);
    Host.sharedMemory(facts);
    Host.settings(facts);
    assertEquals(Runtime.version().toString(), facts.get("JDK", "version"));
    assertTrue(facts.get("JDK", "max heap").matches("[\\d.]+ [MG]iB"), facts::text);
    assertTrue(facts.get("Machine", "operating system").startsWith("Linux "), facts::text);
    assertTrue(facts.get("CPU binding", "allowed CPUs").matches("[-,\\d]+"), facts::text);
    assertTrue(facts.get("/dev/shm", "usable").matches("yes|no: .*"), facts::text);
  }

  @ParameterizedTest
  @CsvSource({"0, 0 MiB", "67108864, 64 MiB", "1073741824, 1.0 GiB", "25266143232, 23.5 GiB"})
  void bytesAreWrittenForPeople(long bytes, String text) {
    assertEquals(text, Host.bytes(bytes));
  }

  // The page

  @Test
  void whatIsEqualIsToldOnce() {
    Page page =
        new Page(
            4,
            "",
            List.of(
                report(0, "A|same|x", "A|other|1"),
                report(1, "A|same|x", "A|other|2"),
                report(2, "A|same|x", "A|other|2", "B|rare|one\ntwo"),
                report(3, "A|same|x", "A|other|2")),
            List.of());
    assertEquals(
        List.of(
            "gradient-sync doctor: 4 ranks",
            "",
            "A",
            "  same   x",
            "  other  rank 0: 1",
            "         ranks 1-3: 2",
            "",
            "B",
            "  rare  rank 2: one",
            "        two",
            "",
            "No problems found."),
        page.lines());
    assertFalse(page.hasProblems());
  }

  @Test
  void problemsComeLastWithWhatToDo() throws IOException {
    Page page =
        new Page(
            3,
            "A note.",
            List.of(report(0), report(2)),
            List.of(
                new Finding(true, "it burns", "call the fire brigade", List.of(2)),
                new Finding(false, "it is warm", "open a window", List.of(0, 2))));
    assertEquals(
        List.of(
            "gradient-sync doctor: facts of ranks 0, 2, of 3 ranks",
            "A note.",
            "",
            "Worth knowing",
            "  1. it is warm",
            "     open a window",
            "",
            "Problems",
            "  1. it burns (rank 2)",
            "     call the fire brigade"),
        page.lines());
    assertTrue(page.hasProblems());
    String json = page.json(Instant.parse("2026-01-02T03:04:05.6Z"));
    JSON.std.mapFrom(json);
    for (String part :
        List.of(
            "{\"program\": \"doctor\", \"date\": \"2026-01-02T03:04:05Z\", \"size\": 3, ",
            "{\"what\": \"it burns\", \"remedy\": \"call the fire brigade\", \"ranks\": [2]}")) {
      assertTrue(json.contains(part), json);
    }
  }

  @Test
  void jsonHasEveryFact() throws IOException {
    Page page = new Page(1, "", List.of(report(0, "JDK|vendor|\"A\\B\"\n")), List.of());
    String json = page.json(Instant.EPOCH);
    JSON.std.mapFrom(json);
    assertTrue(json.contains("{\"rank\": 0, \"facts\": {\"JDK\": {\"vendor\": \"\\\"A"), json);
    assertTrue(json.contains("\"problems\": [], \"worthKnowing\": []}"), json);
  }

  @Test
  void ranksAreWrittenForPeople() {
    assertEquals("rank 3", Ranks.text(List.of(3)));
    assertEquals("ranks 0-2, 5, 7-8", Ranks.text(List.of(0, 1, 2, 5, 7, 8)));
  }

  // Verdicts

  @Test
  void aSoundJobHasNoProblems() {
    String[] withGpu = {
      "GPUs|NVIDIA driver|NVIDIA UNIX x86_64 Kernel Module 570.1",
      "GPUs|usable|yes",
      "GPUs|cuBLAS|usable",
      "Reducer|chosen|peer"
    };
    Report first = with(sound(0, withGpu), "Reducer|device|cuda, H200, GPU 0 (0000:00:00.0)");
    Report other = with(sound(1, withGpu), "Reducer|device|cuda, H200, GPU 1 (0000:01:00.0)");
    with(
        first,
        "GPU to GPU|GPU 0 copies to|GPU 1: straight",
        "GPU to GPU|GPU 0 is mapped by|GPU 1: yes",
        "GPU to GPU|host to GPU|median 50.0 GB/s, slowest 49.0 (host to GPU 1)");
    assertEquals(List.of(), Rules.of(2, true, List.of(first, other)));
  }

  @Test
  void onlyTextsOfThePageAreLookedForThere() throws IOException {
    String page = Files.readString(Path.of("../docs/troubleshooting.md"));
    for (String text : Rules.EXPLAINED) {
      assertTrue(page.contains(text), text);
      assertTrue(remedy("none: rank 1 " + text).contains("docs/troubleshooting.md"), text);
    }
    String secret =
        "none: no secret, and the job's port can be reached: master=a; set GRADIENTSYNC_";
    assertEquals("see what the reason says", remedy(secret));
  }

  private static String remedy(String chosen) {
    Report bad = sound(0);
    bad.facts().add(JobMember.REDUCER, JobMember.CHOSEN, chosen);
    return only(Rules.of(1, false, List.of(bad)), "a sync could not be created").remedy();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "Open MPI|Java bindings|mpi.jar is gone|Java bindings cannot be used: mpi.jar is gone",
        "Open MPI|library version|Open MPI v5.0.1|mpirun=4.1.4, library=5.0.1",
        "JDK|JNA|no: class=a.B, reason=c; start java so|JNA cannot be used: class=a.B, reason=c",
        "Settings|UCX_ERROR_SIGNALS|not set|UCX_ERROR_SIGNALS=not set",
        "Settings|UCX_ERROR_SIGNALS|ILL,SEGV,BUS|UCX_ERROR_SIGNALS=ILL,SEGV,BUS",
        "CPU binding|CPUs that the JVM sees|1|only one of this machine's CPUs",
        "/dev/shm|usable|no: not writable|/dev/shm cannot be used: not writable",
        "/dev/shm|size|64 MiB|/dev/shm is small: size=64 MiB",
        "/dev/shm|free|3 MiB|/dev/shm is nearly full",
        "GPUs|usable|no: a trial process ended with code 134: SIGSEGV|GPUs cannot be used",
        "GPUs|usable|no: no temporary folder can be made: /tmp/d-1234567890: Read-only|"
            + "nothing can be tried: no temporary folder can be made: /tmp/d-*: Read-only",
        "GPU to GPU|slow links|slow: GPU 0 to GPU 1|links are slow: slow: GPU 0",
        "GPU to GPU|GPU 0 copies to|GPU 1: wrong data|give wrong data",
        "GPU to GPU|GPU 0 copies to|GPU 1: failed: x|a trial between GPUs failed",
        "GPU to GPU|GPU 0 is mapped by|GPU 1: failed: x|(CUDA IPC): GPU 0 is mapped by GPU 1",
        "GPU to GPU|trial|a trial process did not end within 15 s|a trial between GPUs failed",
        "Reducer|chosen|none: timed out|a sync could not be created: timed out",
        "Reducer|ranks|1|each rank takes itself for the only one",
        "Checks|doctor itself|was ended from outside|doctor was ended from outside, so",
        "Checks|GPUs|did not finish within 18 s|the check of GPUs did not finish within 18 s"
      })
  void whatIsWrongIsFound(String section, String name, String value, String expected) {
    Report bad = sound(1);
    bad.facts().add(section, name, value);
    if (name.equals("library version")) { // also differs from the other rank's version
      Finding finding = only(Rules.of(2, true, List.of(sound(0), bad)), expected);
      assertTrue(finding.isProblem());
      return;
    }
    List<Finding> findings = Rules.of(2, true, List.of(sound(0), bad));
    assertEquals(1, findings.size(), findings::toString);
    Finding finding = only(findings, expected);
    assertTrue(finding.isProblem());
    assertEquals(List.of(1), finding.ranks());
    assertFalse(finding.remedy().isEmpty());
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "GPUs|NVRTC|no: libnvrtc.so.12 is missing|NVRTC cannot be used: libnvrtc.so.12",
        "Open MPI|CUDA-aware|no, tried: SIGSEGV|does not take device memory: SIGSEGV",
        "GPU to GPU|GPU 0 copies to|GPU 1: through the host|there is no peer access"
      })
  void whatCouldBeBetterIsNoProblem(String section, String name, String value, String expected) {
    Report other = sound(0);
    other.facts().add(section, name, value);
    assertFalse(only(Rules.of(1, true, List.of(other)), expected).isProblem());
  }

  @Test
  void aloneMpiMayBeMissing() {
    Report report =
        sound(
            0,
            "Open MPI|mpirun|not found",
            "Open MPI|Java bindings|mpi.jar is not on the class path",
            "Settings|UCX_ERROR_SIGNALS|not set");
    assertFalse(only(Rules.of(1, false, List.of(report)), "mpi.jar is not on").isProblem());
    assertTrue(only(Rules.of(1, true, List.of(report)), "mpi.jar is not on").isProblem());
    report.facts().add("Open MPI", "ranks call", "the C library");
    assertFalse(only(Rules.of(1, true, List.of(report)), "mpi.jar is not on").isProblem());
  }

  @Test
  void missingRanksAreNamed() {
    Finding finding =
        only(Rules.of(5, true, List.of(sound(0), sound(3))), "no facts came from ranks 1-2, 4");
    assertTrue(finding.isProblem());
  }

  @Test
  void equalProblemsOfRanksAreOne() {
    String small = "/dev/shm|size|64 MiB";
    List<Report> reports = List.of(sound(0), sound(1, small), sound(2, small));
    assertEquals(List.of(1, 2), only(Rules.of(3, true, reports), "small").ranks());
  }

  @Test
  void ranksThatDifferAndShareAGpuAreFound() {
    String device = "Reducer|device|cuda, H200, GPU 0 (0000:1b:00.0)";
    List<Report> reports = List.of(sound(0, device), sound(1, device, "JDK|version|21"));
    List<Finding> findings = Rules.of(2, true, reports);
    assertEquals(List.of(0, 1), only(findings, "ranks share a GPU").ranks());
    assertTrue(only(findings, "the ranks differ: JDK version=[17, 21]").isProblem());
    with(reports.get(1), "Machine|host name|elsewhere");
    assertFalse(Rules.of(2, true, reports).toString().contains("share"));
  }

  @Test
  void hiddenGpusAreNoProblem() {
    Report report =
        sound(
            0,
            "GPUs|NVIDIA driver|NVIDIA UNIX 570",
            "GPUs|usable|no: there is no NVIDIA GPU, or CUDA_VISIBLE_DEVICES hides it");
    assertTrue(only(Rules.of(1, true, List.of(report)), "GPUs cannot").isProblem());
    with(report, "Settings|CUDA_VISIBLE_DEVICES|-1");
    assertEquals(List.of(), Rules.of(1, true, List.of(report)));
  }

  // Time

  @Test
  void aCheckThatNeverEndsIsNamed() {
    CountDownLatch never = new CountDownLatch(1);
    Clock clock = new Clock(Duration.ofSeconds(20), Duration.ofSeconds(8)); // 2 s are left
    Check waiting =
        new Check(
            "waiting",
            into -> {
              into.add("A", "before", "known");
              never.await();
            });
    Check quick = new Check("quick", into -> into.add("B", "b", "c"));
    Facts facts = clock.run(List.of(waiting, quick), 0.5);
    never.countDown();
    assertTrue(facts.get("Checks", "waiting").startsWith("did not finish within "), facts::text);
    assertEquals("known", facts.get("A", "before"));
    assertEquals("c", facts.get("B", "b"));
  }

  @Test
  void whatACheckThrowsIsAFact() {
    Check natives =
        new Check(
            "natives",
            into -> {
              throw new UnsatisfiedLinkError("no libx");
            });
    Facts facts = new Clock(Duration.ofSeconds(50), Duration.ZERO).run(List.of(natives), 0.9);
    assertEquals("failed: java.lang.UnsatisfiedLinkError: no libx", facts.get("Checks", "natives"));
  }

  @Test
  void theWatchdogComesWhenTheTimeIsOver() throws Exception {
    CountDownLatch came = new CountDownLatch(1);
    new Clock(Duration.ofSeconds(10), Duration.ofSeconds(9)).guard(came::countDown);
    assertTrue(came.await(30, TimeUnit.SECONDS));
  }

  // Processes

  @Test
  void aProcessThatDoesNotEndIsEnded() {
    ChildProcess.Result result =
        ChildProcess.command("bash", "-c", "echo a; sleep 100").run(Duration.ofSeconds(1));
    assertEquals("a trial process did not end within 1 s", result.failure());
    ChildProcess.Result none = ChildProcess.command("/no/such/program").run(Duration.ofSeconds(5));
    assertTrue(none.failure().startsWith("a trial process cannot be started: "), none::toString);
    ChildProcess.Result bad =
        ChildProcess.command("bash", "-c", "echo x=1; echo why >&2; exit 7")
            .run(Duration.ofSeconds(30));
    assertEquals("a trial process ended with code 7: why", bad.failure());
    assertEquals("1", bad.after("x="));
  }

  @Test
  void theLineThatSaysMostIsTold() {
    assertEquals("(no output)", ChildProcess.meaningOf("\n"));
    assertEquals(
        "java.lang.UnsatisfiedLinkError: no mpi_java",
        ChildProcess.meaningOf(
            "Exception in thread \"main\" java.lang.UnsatisfiedLinkError: no mpi_java\n"
                + "\tat mpi.MPI.main(MPI.java:1)\n"));
    assertEquals(
        "SIGSEGV (0xb) at pc=0x7f",
        ChildProcess.meaningOf("#\n# A fatal error\n#\n#  SIGSEGV (0xb) at pc=0x7f\n#\nAborted"));
    String dashes = "-".repeat(74);
    assertEquals(
        "No components were able to be opened in the pml framework.",
        ChildProcess.meaningOf(
            dashes
                + "\nNo components were able to be opened\nin the pml framework.\n\nThis means\n"
                + dashes
                + "\n[vm:1] *** and potentially your job)\n"));
    assertEquals("last", ChildProcess.meaningOf("first\nlast\n\tat x\n"));
  }

  @Test
  void temporaryFoldersDoNotStayBehind() throws Exception {
    Path one = Scratch.open();
    Path other = Scratch.open();
    Files.writeString(other.resolve("file"), "text");
    Scratch.close(one);
    Scratch.close(null);
    assertFalse(Files.exists(one));
    Scratch.closeAll();
    assertFalse(Files.exists(other));
  }

  // Ranks

  @Test
  void ranksOfANodeLeaveTextsForEachOther() throws Exception {
    Path session = folder.resolve("job");
    Node one = Node.in(session).orElseThrow();
    Node other = Node.in(session).orElseThrow();
    assertTrue(one.get("0.1", Duration.ofMillis(50)).isEmpty());
    other.put("0.1", "text");
    other.put("0.1", "text\nagain");
    assertEquals("text\nagain", one.get("0.1", Duration.ZERO).orElseThrow());
    try (var files = Files.list(session)) {
      assertEquals(1, files.count());
    }
    assertTrue(Node.in(null).isEmpty());
    assertTrue(Node.in(Path.of("/no/such/folder/job")).isEmpty());
  }

  @Test
  void theJobSaysWhatWasChosenAndGathers() {
    LocalRanks.run(
        3,
        sync -> {
          Facts facts = JobMember.facts(sync);
          assertEquals("3", facts.get("Reducer", "ranks"));
          assertEquals("local", facts.get("Reducer", "chosen"));
          assertEquals("host, host memory", facts.get("Reducer", "device"));
          assertTrue(facts.get("Reducer", "not mpi").contains("not started by mpirun"));
          List<String> all = RankedProgram.gatherTexts(sync, "x".repeat(1 + sync.rank()));
          assertEquals(sync.rank() == 0 ? List.of("x", "xx", "xxx") : List.of(), all);
        });
  }

  // GPUs

  @Test
  void aGpuIsNamedWithItsAddress() {
    try (SimulatedGpu gpu = new SimulatedGpu()) {
      String text = JobMember.text(gpu.device());
      assertTrue(
          text.startsWith("cuda, ") && text.endsWith(", GPU 0 (" + gpu.device().pciAddress() + ")"),
          text);
    }
  }

  @Test
  void speedsAreToldInBrief() {
    LinkKind kind =
        new LinkKind(
            "host to GPU",
            "GB/s",
            true,
            List.of(
                new LinkKind.Link("host", "GPU 0", 50, false),
                new LinkKind.Link("host", "GPU 1", 48.04, false)));
    assertEquals("median 49.0 GB/s, slowest 48.0 (host to GPU 1)", GpuLinks.inBrief(kind));
  }

  private static Report sound(int rank, String... more) {
    return with(report(rank, SOUND.lines().toArray(String[]::new)), more);
  }

  private static Report report(int rank, String... facts) {
    return with(new Report(rank, new Facts()), facts);
  }

  /** Adds facts, each given as section, name and value separated by bars. */
  private static Report with(Report report, String... facts) {
    for (String fact : facts) {
      String[] parts = fact.split("\\|");
      report.facts().add(parts[0], parts[1], parts[2]);
    }
    return report;
  }

  private static Finding only(List<Finding> findings, String part) {
    List<Finding> those = findings.stream().filter(f -> f.what().contains(part)).toList();
    assertEquals(1, those.size(), () -> "not once: " + part + " in " + findings);
    return those.get(0);
  }
}
