package org.gradientsync.cuda.internal.driver;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import jcuda.Pointer;
import jcuda.driver.CUcontext;
import jcuda.driver.CUevent;
import jcuda.driver.CUfunction;
import jcuda.driver.CUgraphExec;
import jcuda.driver.CUstream;
import jcuda.driver.JCudaDriver;
import org.gradientsync.DeviceException;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests which exceptions JCuda's error codes become, also in programs that let JCuda throw. Runs in
 * its own process, with a fake driver library that returns the codes below.
 */
class JCudaApiTest {
  /** The result of each driver call. */
  private static final Map<String, Integer> DRIVER =
      new TreeMap<>(
          Map.ofEntries(
              Map.entry("cuInit", 0),
              Map.entry("cuStreamQuery", CudaApi.NOT_READY),
              Map.entry("cuEventQuery", CudaApi.NOT_READY),
              Map.entry("cuPointerGetAttribute", 1), // invalid value
              Map.entry("cuCtxEnablePeerAccess", 704), // already enabled
              Map.entry("cuMemAlloc_v2", CudaApi.OUT_OF_MEMORY),
              Map.entry("cuCtxSetCurrent", 700),
              Map.entry("cuGraphLaunch", 719),
              Map.entry("cuLaunchKernel", 701),
              Map.entry("cuStreamSynchronize", 999),
              Map.entry("cuEventSynchronize", 715),
              Map.entry("cuEventRecord", 400),
              Map.entry("cuStreamWaitEvent", 400),
              Map.entry("cuStreamIsCapturing", 901),
              Map.entry("cuMemcpyHtoDAsync_v2", 702),
              Map.entry("cuMemcpyDtoHAsync_v2", 702),
              Map.entry("cuModuleLoadDataEx", 218)));

  private static final List<String> EXPECTED =
      List.of(
          "isDone(stream): false",
          "isDone(event): false",
          "deviceOf: -1",
          "enablePeerAccess: null",
          "allocate: 2, cuMemAlloc failed: CUDA_ERROR_OUT_OF_MEMORY (2), bytes=10",
          "useContext: 700, cuCtxSetCurrent failed: CUDA_ERROR_ILLEGAL_ADDRESS (700)",
          "launch(graph): 719, cuGraphLaunch failed: CUDA_ERROR_LAUNCH_FAILED (719)",
          "launch(kernel): 701, cuLaunchKernel failed: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701)",
          "awaitStream: 999, cuStreamSynchronize failed: CUDA_ERROR_UNKNOWN (999)",
          "awaitEvent: 715, cuEventSynchronize failed: CUDA_ERROR_ILLEGAL_INSTRUCTION (715)",
          "record: 400, cuEventRecord failed: CUDA_ERROR_INVALID_HANDLE (400)",
          "streamWaitsFor(event): 400, cuStreamWaitEvent failed: CUDA_ERROR_INVALID_HANDLE (400)",
          "isCapturing: 901, cuStreamIsCapturing failed: CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"
              + " (901)",
          "copyToDevice: 702, cuMemcpyHtoDAsync failed: CUDA_ERROR_LAUNCH_TIMEOUT (702), bytes=8",
          "copyToHost: 702, cuMemcpyDtoHAsync failed: CUDA_ERROR_LAUNCH_TIMEOUT (702), bytes=8",
          "loadModule: 218, cuModuleLoadDataEx failed: CUDA_ERROR_INVALID_PTX (218), log=",
          "loadImage: 218, cuModuleLoadDataEx failed: CUDA_ERROR_INVALID_PTX (218),"
              + " image=kernels.ptx, log=");

  @TempDir Path folder;

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void everyCodeIsKnown(boolean throwsExceptions) throws Exception {
    compileDriver();
    ProcessBuilder builder =
        new ProcessBuilder(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-Djava.io.tmpdir=" + folder, // JCuda unpacks its natives there
            "-cp",
            System.getProperty("java.class.path"),
            Program.class.getName(),
            "" + throwsExceptions);
    builder.environment().put("LD_LIBRARY_PATH", folder.toString());
    assertEquals(String.join("\n", EXPECTED), output(builder));
  }

  private void compileDriver() throws Exception {
    requireCompiler();
    Path source = folder.resolve("driver.c");
    Files.writeString(
        source,
        DRIVER.entrySet().stream()
            .map(call -> "int " + call.getKey() + "() { return " + call.getValue() + "; }\n")
            .collect(Collectors.joining()));
    assertEquals(
        "",
        output(
            new ProcessBuilder(
                "gcc",
                "-shared",
                "-fPIC",
                "-Wl,-soname,libcuda.so.1",
                "-o",
                folder.resolve("libcuda.so.1").toString(),
                source.toString())));
  }

  private static void requireCompiler() {
    boolean found =
        Arrays.stream(System.getenv("PATH").split(File.pathSeparator))
            .anyMatch(place -> Files.isExecutable(Path.of(place, "gcc")));
    if (!found) {
      String reason = "SKIPPED: there is no gcc on the PATH";
      System.out.println(reason);
      Assumptions.abort(reason);
    }
  }

  /** Returns the program's output, without the JVM's own warnings. */
  private String output(ProcessBuilder builder) throws IOException, InterruptedException {
    Path errors = folder.resolve("errors");
    Process process = builder.redirectError(errors.toFile()).start();
    String all = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertEquals(0, process.waitFor(), () -> all + read(errors));
    return all.strip();
  }

  private static String read(Path file) {
    try {
      return Files.readString(file);
    } catch (IOException e) {
      return e.toString();
    }
  }

  static final class Program {
    private static final List<String> lines = new ArrayList<>();

    private Program() {}

    public static void main(String[] arguments) {
      CudaApi api = new JCudaApi();
      JCudaDriver.setExceptionsEnabled(Boolean.parseBoolean(arguments[0]));
      CUstream stream = new CUstream();
      CUevent event = new CUevent();
      Pointer host = Pointer.to(ByteBuffer.allocateDirect(8));
      int[] one = {1, 1, 1};
      add("isDone(stream)", () -> api.isDone(stream));
      add("isDone(event)", () -> api.isDone(event));
      add("deviceOf", () -> api.deviceOf(1234));
      add("enablePeerAccess", () -> api.enablePeerAccess(new CUcontext()));
      add("allocate", () -> api.allocate(10));
      add("useContext", () -> api.useContext(new CUcontext()));
      add("launch(graph)", () -> api.launch(new CUgraphExec(), stream));
      add("launch(kernel)", () -> api.launch(new CUfunction(), one, one, 0, stream, new Pointer()));
      add("awaitStream", () -> api.awaitStream(stream));
      add("awaitEvent", () -> api.awaitEvent(event));
      add("record", () -> api.record(event, stream));
      add("streamWaitsFor(event)", () -> api.streamWaitsFor(stream, event));
      add("isCapturing", () -> api.isCapturing(stream));
      add("copyToDevice", () -> api.copyToDevice(api.pointer(64), host, 8, stream));
      add("copyToHost", () -> api.copyToHost(host, api.pointer(64), 8, stream));
      add("loadModule", () -> api.loadModule("not PTX"));
      add("loadImage", () -> api.loadImage("kernels.ptx", new byte[] {'x'}));
      lines.forEach(System.out::println);
    }

    private static void add(String what, Runnable call) {
      add(
          what,
          () -> {
            call.run();
            return null;
          });
    }

    private static void add(String what, Callable<Object> call) {
      try {
        lines.add(what + ": " + call.call());
      } catch (DeviceException e) {
        lines.add(what + ": " + e.code() + ", " + e.getMessage());
      } catch (Exception e) {
        lines.add(what + ": " + e);
      }
    }
  }
}
