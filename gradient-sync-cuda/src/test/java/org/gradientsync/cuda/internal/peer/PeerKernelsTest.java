package org.gradientsync.cuda.internal.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.IntStream;
import org.gradientsync.DataType;
import org.gradientsync.ReduceOp;
import org.gradientsync.cuda.internal.driver.KernelImages;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Compares the compiled kernels with those that the library uses. */
class PeerKernelsTest {
  /** Returns the modules that the library loads, with the kernels it uses from each. */
  private static Map<String, TreeSet<String>> used() {
    Map<String, TreeSet<String>> used = new TreeMap<>();
    used.put("peer_depart", new TreeSet<>(List.of("depart")));
    used.put("finite", new TreeSet<>(List.of("finite_2", "finite_4", "finite_8")));
    used.put("copy_many", new TreeSet<>(List.of("copy_many")));
    used.put("message", new TreeSet<>(List.of("message_send", "message_receive")));
    used.put("put", new TreeSet<>(List.of("put_copy", "put_broadcast")));
    used.put("push_copy", new TreeSet<>(List.of("push_copy")));
    TreeSet<String> reduce = new TreeSet<>();
    List<PeerFormat> formats = new ArrayList<>();
    for (DataType type : DataType.values()) {
      formats.add(PeerFormat.plain(type));
      for (ReduceOp op : ReduceOp.values()) {
        if (op.isDefinedFor(type)) {
          reduce.add("reduce_" + type + "_" + op);
          if (op != ReduceOp.AVERAGE) {
            reduce.add("accumulate_" + type + "_" + op); // averages are added up
          }
        }
      }
    }
    for (DataType wire : List.of(DataType.FLOAT16, DataType.BFLOAT16)) {
      formats.add(new PeerFormat(DataType.FLOAT32, wire));
      reduce.add("convert_FLOAT32_" + wire);
      reduce.add("convert_" + wire + "_FLOAT32");
    }
    reduce.add("sum_rows");
    used.put("reduce", reduce);
    for (PeerFormat format : formats) {
      for (ReduceOp op : ReduceOp.values()) {
        if (op.isDefinedFor(format.type()) && (op.adds() || !format.isNarrowed())) {
          for (String way : List.of("stream_blocks", "push")) {
            used.computeIfAbsent(way + "_" + format.text(), module -> new TreeSet<>())
                .add(PeerKernels.collectiveNameOf(way, format, op));
          }
        }
        for (boolean checkFinite : new boolean[] {false, true}) {
          for (PeerAlgorithm algorithm : PeerKernels.algorithms(format, op, checkFinite)) {
            used.computeIfAbsent(
                    PeerKernels.moduleOf(format, checkFinite), module -> new TreeSet<>())
                .add(PeerKernels.nameOf(algorithm, format, op));
          }
        }
      }
    }
    return used;
  }

  private static String read(String image) {
    return new String(KernelImages.read(image), StandardCharsets.ISO_8859_1);
  }

  /** Continuous integration has PTX only. */
  static IntStream capabilities() {
    return IntStream.of(75, 80, 90, 100)
        .filter(
            capability -> {
              String file = "reduce" + KernelImages.suffix(capability) + ".xz";
              return capability == 100 || KernelImages.class.getResource(file) != null;
            });
  }

  @ParameterizedTest
  @MethodSource("capabilities")
  void theKernelsOfTheTableAreThoseThatAreUsed(int capability) {
    for (Map.Entry<String, TreeSet<String>> module : used().entrySet()) {
      String image = module.getKey() + KernelImages.suffix(capability);
      String mark = image.endsWith(".ptx") ? ".entry " : "\0.text."; // a section of machine code
      TreeSet<String> kernels = new TreeSet<>();
      String[] parts = read(image).split(mark.replace(".", "\\."));
      for (int i = 1; i < parts.length; i++) {
        kernels.add(parts[i].split("[^A-Za-z0-9_]", 2)[0]);
      }
      assertEquals(module.getValue(), kernels, image);
    }
  }

  @Test
  void nothingIsFused() {
    for (String module : used().keySet()) {
      assertFalse(
          read(module + KernelImages.suffix(100)).contains("fma.rn"),
          "a fused multiply-add rounds once too little: " + module);
    }
  }
}
