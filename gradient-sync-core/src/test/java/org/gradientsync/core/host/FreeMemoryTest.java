package org.gradientsync.core.host;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicLong;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.GradientSync;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The memory that the machine and control groups leave, in simulated file systems. */
class FreeMemoryTest {
  private static final long MB = 1 << 20;
  private static final String SECOND = "31 23 0:28 / /sys/fs/cgroup rw shared:4 - cgroup2 cg rw\n";
  private static final String FIRST =
      "34 31 0:31 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
          + "35 31 0:32 %s /sys/fs/cgroup/mem\\040ory rw - cgroup cgroup rw,memory\n";

  @TempDir Path root;

  @BeforeEach
  void setUp() throws IOException {
    write("proc/self/mountinfo", "23 1 0:1 / / rw,relatime - ext4 /dev/root rw\n");
    write("proc/self/cgroup", "0::/\n");
    machine(100_000, 0);
  }

  private void write(String file, String text) throws IOException {
    Path path = root.resolve(file);
    Files.createDirectories(path.getParent());
    Files.writeString(path, text);
  }

  private void machine(long available, long swap) throws IOException {
    write(
        "proc/meminfo",
        "MemTotal:       %d kB%nMemAvailable:   %d kB%nSwapFree:       %d kB%n"
            .formatted(available * 1024 * 2, available * 1024, swap * 1024));
  }

  /** In MB; the cached files are half active and half not. */
  private void second(String group, String limit, long used, long cached) throws IOException {
    String folder = "sys/fs/cgroup" + group + "/";
    write(folder + "memory.max", limit + "\n");
    write(folder + "memory.current", used * MB + "\n");
    String half = Long.toString(cached * MB / 2);
    write(
        folder + "memory.stat",
        "anon 1\nfile 2\nshmem 3\ninactive_file " + half + "\nactive_file " + half + "\n");
  }

  private void first(String group, long limit, long used, long cached) throws IOException {
    String folder = "sys/fs/cgroup/mem ory" + group + "/";
    write(folder + "memory.limit_in_bytes", limit + "\n");
    write(folder + "memory.usage_in_bytes", used * MB + "\n");
    write(
        folder + "memory.stat",
        "inactive_file 7\nactive_file 7\ntotal_inactive_file 0\ntotal_active_file "
            + cached * MB
            + "\n");
  }

  private void allows(long megabytes) {
    assertDoesNotThrow(() -> new FreeMemory(root).require(megabytes * MB, root));
  }

  private void refuses(long megabytes, String text) {
    IOException e =
        assertThrows(IOException.class, () -> new FreeMemory(root).require(megabytes * MB, root));
    assertTrue(e.getMessage().contains(text), e::getMessage);
  }

  private static String mb(long megabytes) {
    return Long.toString(megabytes * MB);
  }

  @Test
  void theMachineLimitsWhereNoGroupDoes() throws IOException {
    machine(1000, 100);
    allows(844); // spares 250 MB, an eighth of the total
    refuses(900, "the machine has too little memory left: bytes=" + mb(900));
    second("", "max", 5000, 0);
    allows(844);
    Files.delete(root.resolve("proc/meminfo"));
    allows(900);
  }

  @Test
  void version2LeavesLimitMinusUsage() throws IOException {
    write("proc/self/mountinfo", SECOND);
    second("", mb(700), 300, 0);
    allows(300);
    String limit = root.resolve("sys/fs/cgroup/memory.max").toString();
    refuses(
        350,
        "this process's control group has too little memory left: bytes="
            + mb(350)
            + ", available="
            + mb(400)
            + ", limit="
            + mb(700)
            + ", file="
            + limit);
    second("", mb(700), 500, 200); // which Linux can drop
    allows(300);
    refuses(350, "available=" + mb(400));
  }

  @Test
  void swapOfAGroupCounts() throws IOException {
    write("proc/self/mountinfo", SECOND);
    second("", mb(700), 300, 0);
    machine(100_000, 80);
    refuses(400, "available=" + mb(480));
    write("sys/fs/cgroup/memory.swap.max", mb(50));
    write("sys/fs/cgroup/memory.swap.current", mb(20));
    refuses(400, "available=" + mb(430));
  }

  @Test
  void unknownSwapIsUnlimited() throws IOException {
    write("proc/self/mountinfo", SECOND);
    second("", mb(700), 300, 0);
    Files.delete(root.resolve("proc/meminfo"));
    allows(300);
  }

  @Test
  void theAncestorsOfAGroupLimitIt() throws IOException {
    write("proc/self/mountinfo", SECOND);
    write("proc/self/cgroup", "0::/batch/job\n");
    second("/batch/job", mb(5000), 300, 0);
    second("/batch", mb(700), 300, 0);
    second("/other", mb(1), 1, 0);
    refuses(350, "sys/fs/cgroup/batch/memory.max");
    second("/batch", "max", 300, 0);
    allows(350);
  }

  @Test
  void fallsBackToTheMountedGroup() throws IOException {
    write("proc/self/mountinfo", SECOND);
    second("", mb(700), 300, 0);
    for (String path : new String[] {"/docker/abc", "/../../other", "/"}) {
      write("proc/self/cgroup", "0::" + path + "\n");
      refuses(350, "sys/fs/cgroup/memory.max");
    }
  }

  @Test
  void otherContainersAreIgnored() throws IOException {
    write("proc/self/mountinfo", SECOND.replace("0:28 / ", "0:28 /docker/abc "));
    write("proc/self/cgroup", "0::/docker/abcd\n");
    second("", mb(700), 300, 0);
    allows(350);
    write("proc/self/cgroup", "0::/docker/abc\n");
    refuses(350, "sys/fs/cgroup/memory.max");
  }

  @Test
  void version1LeavesLimitMinusUsage() throws IOException {
    write("proc/self/mountinfo", FIRST.formatted("/"));
    write("proc/self/cgroup", "7:cpu,cpuacct:/job\n4:memory:/job\n0::/\n");
    first("", 9223372036854771712L, 50_000, 0); // none
    first("/job", 700 * MB, 500, 200);
    allows(300);
    refuses(350, "sys/fs/cgroup/mem ory/job/memory.limit_in_bytes");
    machine(100_000, 500);
    allows(350);
    write("sys/fs/cgroup/mem ory/job/memory.memsw.limit_in_bytes", mb(750));
    write("sys/fs/cgroup/mem ory/job/memory.memsw.usage_in_bytes", mb(510));
    refuses(390, "available=" + mb(440));
    write("sys/fs/cgroup/mem ory/job/memory.memsw.limit_in_bytes", "9223372036854771712");
    first("/job", 9223372036854771712L, 50_000, 0);
    allows(350);
  }

  @Test
  void aContainerOfVersionOneSeesItsOwnGroup() throws IOException {
    write("proc/self/mountinfo", FIRST.formatted("/docker/abc"));
    write("proc/self/cgroup", "4:memory:/docker/abc\n");
    first("", 700 * MB, 300, 0);
    refuses(350, "sys/fs/cgroup/mem ory/memory.limit_in_bytes");
  }

  @Test
  void unreadableFilesAreIgnored() throws IOException {
    write("proc/self/mountinfo", SECOND + FIRST.formatted("/") + "nonsense\n\n");
    write("proc/self/cgroup", "nonsense\n0::/\n");
    allows(350);
    second("", "nonsense", 1, 0);
    allows(350);
    second("", mb(700), 300, 0);
    Files.delete(root.resolve("sys/fs/cgroup/memory.stat"));
    allows(300);
  }

  @Test
  void manySmallPiecesAreChecked() throws IOException {
    write("proc/self/mountinfo", SECOND);
    FreeMemory memory = new FreeMemory(root);
    long taken = 0;
    for (boolean refused = false; !refused; ) {
      second("", mb(700), taken, 0);
      try {
        memory.require(5 * MB, root);
        taken += 5;
      } catch (IOException e) {
        refused = true;
      }
    }
    assertEquals(680, taken, 5);
    assertThrows(IOException.class, () -> memory.allocate(1024, 40 * MB));
  }

  private static Path left(long id) throws Exception {
    return SharedFiles.path(
        new SharedFiles.Owner(Processes.NAMESPACE, TemporaryFilesTest.ended(), 1), id);
  }

  @Test
  void staleFilesAreDeletedBeforeMemoryIsRefused() throws Exception {
    Path left = left(1);
    Files.write(left, new byte[4096]);
    write("proc/self/mountinfo", SECOND);
    second("", mb(700), 690, 0);
    refuses(200, "too little memory left");
    assertFalse(Files.exists(left));
  }

  /** Also if no memory is shared: it may be a container's, which has little. */
  @Test
  void staleFilesAreDeletedBeforeTheFirstBuffer() throws Exception {
    Path left = left(2);
    Files.write(left, new byte[4096]);
    try (GradientSync sync = GradientSync.create();
        DeviceBuffer buffer = sync.allocate(DataType.FLOAT32, 1)) {
      assertFalse(Files.exists(left));
      assertEquals(1, buffer.count());
    }
  }

  /** Counts allocated bytes, because a check reads files. */
  @Test
  void concurrentThreadsShareOneCheck() throws Exception {
    ThreadMXBean mx = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    new FreeMemory(root).allocate(8, 8); // loads classes
    long before = mx.getCurrentThreadAllocatedBytes();
    new FreeMemory(root).allocate(8, 8);
    long look = mx.getCurrentThreadAllocatedBytes() - before;
    FreeMemory memory = new FreeMemory(root);
    AtomicLong all = new AtomicLong();
    Thread[] threads = new Thread[8];
    synchronized (memory) {
      for (int i = 0; i < threads.length; i++) {
        threads[i] =
            new Thread(
                () -> {
                  assertDoesNotThrow(() -> memory.allocate(8, 8));
                  all.addAndGet(mx.getCurrentThreadAllocatedBytes());
                });
        threads[i].start();
      }
      for (Thread thread : threads) {
        while (thread.getState() != Thread.State.BLOCKED) {
          Thread.onSpinWait();
        }
      }
    }
    for (Thread thread : threads) {
      thread.join();
    }
    assertTrue(all.get() < 3 * look, "look: " + look + ", all: " + all);
  }
}
