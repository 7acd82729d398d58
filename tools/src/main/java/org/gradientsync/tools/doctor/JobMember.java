package org.gradientsync.tools.doctor;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.gradientsync.Device;
import org.gradientsync.GradientSync;
import org.gradientsync.cuda.CudaDevice;
import org.gradientsync.tools.program.Program;
import org.gradientsync.tools.program.RankedProgram;

/**
 * The process that joins the job in place of the process that started it. It creates a sync, prints
 * what was chosen, and sends all ranks' facts to rank 0.
 */
final class JobMember {
  static final String JOB = "Job";
  static final String REDUCER = "Reducer";
  static final String CHOSEN = "chosen";
  static final String RANKS = "ranks";
  static final String LOCAL_RANK = "local rank";
  static final String DEVICE = "device";
  static final String NOT = "not ";

  /** The output line after rank 0 has the facts of all ranks. */
  static final String GATHERED = "gathered";

  /** The start of the line that says why it could not join. */
  static final String FAILED = "failed: ";

  private static final String BETWEEN = "\f";

  private JobMember() {}

  /**
   * Prints facts.
   *
   * @param args the file with this rank's facts; the file for all ranks' facts, which rank 0
   *     writes; and how many seconds to wait for the others
   */
  public static void main(String[] args) {
    try (GradientSync sync =
        GradientSync.builder().timeout(Duration.ofSeconds(Long.parseLong(args[2]))).create()) {
      Facts facts = facts(sync);
      System.out.print(facts.text());
      System.out.flush();
      Facts own = Facts.read(Files.readString(Path.of(args[0])));
      own.addAll(facts);
      List<String> all = RankedProgram.gatherTexts(sync, own.text());
      if (sync.rank() == 0) {
        Files.writeString(Path.of(args[1]), String.join(BETWEEN, all));
      }
      sync.barrier();
      System.out.println(GATHERED);
      System.out.flush();
    } catch (RuntimeException | LinkageError | IOException e) {
      System.out.println(FAILED + oneLine(e));
      System.out.flush();
      // Do not throw: that would end the whole job, with the processes that print the page.
      Runtime.getRuntime().halt(Program.CANNOT_RUN);
    }
  }

  private static String oneLine(Throwable e) {
    String message = e.getMessage() == null ? e.toString() : e.getMessage();
    return message.replaceAll("\\s*\\R\\s*", " ");
  }

  static Facts facts(GradientSync sync) {
    Facts facts = new Facts();
    facts.add(REDUCER, "launcher", sync.launcher());
    facts.add(REDUCER, RANKS, sync.size());
    facts.add(REDUCER, LOCAL_RANK, sync.localRank() + " of " + sync.localSize());
    facts.add(REDUCER, DEVICE, text(sync.device()));
    facts.add(REDUCER, CHOSEN, sync.reducer());
    sync.alternatives().forEach((name, reason) -> facts.add(REDUCER, NOT + name, reason));
    return facts;
  }

  static String text(Device device) {
    String where =
        device instanceof CudaDevice gpu
            ? ", GPU " + gpu.ordinal() + " (" + gpu.pciAddress() + ")"
            : "";
    return device.kind() + ", " + device.name() + where;
  }

  /** Reads the file that rank 0 has written. */
  static List<Facts> read(Path file) throws IOException {
    List<Facts> all = new ArrayList<>();
    if (Files.exists(file)) {
      for (String text : Files.readString(file).split(BETWEEN)) {
        all.add(Facts.read(text));
      }
    }
    return all;
  }
}
