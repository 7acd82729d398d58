package org.gradientsync.cuda.compute;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A parameter of a kernel, as its PTX declares it. The library checks arguments because the driver
 * does not: it reads as many bytes as the kernel expects, whatever they are.
 *
 * @param kind f for floating-point, u or s for integers, b for anything of this size
 * @param bytes the size; 0 for a type that is not supported
 */
record KernelParameter(char kind, int bytes) {
  private static final Pattern COMMENT = Pattern.compile("//[^\n]*|/\\*.*?\\*/", Pattern.DOTALL);
  private static final Pattern ENTRY =
      Pattern.compile("\\.entry\\s+([\\w$%]+)\\s*(?:\\(([^)]*)\\))?");
  private static final Pattern TYPE = Pattern.compile("\\.([fusb])(8|16|32|64)\\b");
  private static final Pattern ARRAY = Pattern.compile("\\[\\s*(\\d+)\\s*\\]");

  /** The parameters of each kernel of a module, by the kernel's name, in the module's order. */
  static Map<String, List<KernelParameter>> ofKernels(String ptx) {
    Map<String, List<KernelParameter>> kernels = new LinkedHashMap<>();
    Matcher entry = ENTRY.matcher(COMMENT.matcher(ptx).replaceAll(" "));
    while (entry.find()) {
      List<KernelParameter> parameters = new ArrayList<>();
      String list = entry.group(2) == null ? "" : entry.group(2);
      for (String declaration : list.split(",")) {
        if (!declaration.isBlank()) {
          parameters.add(parse(declaration));
        }
      }
      kernels.put(entry.group(1), parameters);
    }
    return kernels;
  }

  private static KernelParameter parse(String declaration) {
    Matcher type = TYPE.matcher(declaration);
    if (!type.find()) {
      return new KernelParameter('b', 0); // for example a texture
    }
    Matcher array = ARRAY.matcher(declaration);
    int count = array.find() ? Integer.parseInt(array.group(1)) : 1;
    return new KernelParameter(
        type.group(1).charAt(0), Integer.parseInt(type.group(2)) / Byte.SIZE * count);
  }

  boolean takesInteger(int size) {
    return kind != 'f' && bytes == size;
  }

  boolean takesFloating(int size) {
    return (kind == 'f' || kind == 'b') && bytes == size;
  }

  @Override
  public String toString() {
    String what =
        switch (kind) {
          case 'f' -> " floating-point";
          case 'b' -> "";
          default -> " integer";
        };
    return bytes + (bytes == 1 ? " byte" : " bytes") + what;
  }
}
