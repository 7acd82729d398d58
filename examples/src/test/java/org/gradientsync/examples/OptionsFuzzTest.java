package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertNotNull;

import com.code_intelligence.jazzer.api.FuzzedDataProvider;
import com.code_intelligence.jazzer.junit.FuzzTest;
import java.io.PrintWriter;
import java.io.Writer;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.gradientsync.tools.links.LinkPerf;
import org.gradientsync.tools.perf.AllReducePerf;
import org.gradientsync.tools.perf.CollectivesPerf;
import org.gradientsync.tools.program.Program;
import picocli.CommandLine;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.ParameterException;

/**
 * Parses arbitrary command lines. Each must be accepted, or refused with one sentence. Does not run
 * the programs.
 */
class OptionsFuzzTest {
  private static final List<Supplier<Program>> PROGRAMS =
      List.of(
          AllReducePerf::new,
          CollectivesPerf::new,
          DeviceSelection::new,
          GradientAverage::new,
          HaloExchange::new,
          LinearRegression::new,
          LinkPerf::new,
          MatrixMultiply::new,
          MonteCarloPi::new,
          PartitionedKernel::new,
          TrainHybrid::new,
          TrainMlp::new);

  @FuzzTest
  void anyCommandLineIsUnderstoodOrRefused(FuzzedDataProvider data) {
    Program program = PROGRAMS.get(data.consumeInt(0, PROGRAMS.size() - 1)).get();
    PrintWriter nowhere = new PrintWriter(Writer.nullWriter());
    CommandLine command = Program.commandLine(program).setOut(nowhere).setErr(nowhere);
    List<OptionSpec> options = command.getCommandSpec().options();
    List<String> arguments = new ArrayList<>();
    for (int i = data.consumeInt(0, 6); i > 0; i--) {
      if (data.consumeBoolean()) {
        arguments.add(options.get(data.consumeInt(0, options.size() - 1)).longestName());
      }
      arguments.add(
          data.consumeBoolean() ? Long.toString(data.consumeLong()) : data.consumeString(10));
    }
    try {
      command.parseArgs(arguments.toArray(String[]::new));
      program.checkCommandLine();
    } catch (ParameterException e) {
      assertNotNull(e.getMessage());
    }
  }
}
