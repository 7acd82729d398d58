package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.source.tree.BinaryTree;
import com.sun.source.tree.CompilationUnitTree;
import com.sun.source.tree.ConditionalExpressionTree;
import com.sun.source.tree.ExpressionTree;
import com.sun.source.tree.IdentifierTree;
import com.sun.source.tree.LiteralTree;
import com.sun.source.tree.MemberSelectTree;
import com.sun.source.tree.MethodInvocationTree;
import com.sun.source.tree.NewClassTree;
import com.sun.source.tree.ParenthesizedTree;
import com.sun.source.tree.Tree;
import com.sun.source.util.JavacTask;
import com.sun.source.util.TreeScanner;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;

/** Collects the texts of all exceptions from the sources, and checks how they begin and end. */
class ErrorTextsTest {
  private static final List<String> SOURCES =
      List.of(
          "gradient-sync-api/src/main/java",
          "gradient-sync-core/src/main/java",
          "gradient-sync-cuda/src/main/java",
          "gradient-sync-mpi/src/main/java",
          "gradient-sync-tcp/src/main/java",
          "gradient-sync-djl/src/main/java",
          "tools/run/src/main/java/org/gradientsync/tools/run");

  /** Methods that make an exception or a reason from a text. */
  private static final Set<String> MAKERS =
      Set.of("lost", "timedOut", "mismatched", "no", "failed", "badUse", "cannotRun");

  @Test
  void textsBeginSmallAndEndWithoutAFullStop() throws IOException {
    for (Set<String> texts : collect().values()) {
      for (String text : texts) {
        boolean name =
            text.matches("(MPI|CUDA|JCuda|Open MPI|NVRTC|NVIDIA|GPU|BLAS|CUcontext|PTX|JNA).*");
        char first = text.charAt(0);
        assertTrue(name || first == '{' || !Character.isUpperCase(first), text);
        assertTrue(!text.endsWith(".") && !text.endsWith("!"), text);
      }
    }
  }

  /** Collects the texts by package and class. */
  private static Map<String, Set<String>> collect() throws IOException {
    List<Path> sources = new ArrayList<>();
    for (String folder : SOURCES) {
      try (Stream<Path> files = Files.walk(Path.of("..", folder))) {
        files.filter(f -> f.toString().endsWith(".java")).sorted().forEach(sources::add);
      }
    }
    assertTrue(sources.size() > 50, sources.toString());
    Map<String, Set<String>> texts = new TreeMap<>();
    JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    try (StandardJavaFileManager files =
        compiler.getStandardFileManager(null, null, StandardCharsets.UTF_8)) {
      JavacTask task =
          (JavacTask)
              compiler.getTask(
                  null,
                  files,
                  null,
                  List.of("-proc:none"),
                  null,
                  files.getJavaFileObjectsFromPaths(sources));
      for (CompilationUnitTree unit : task.parse()) {
        String file = Path.of(unit.getSourceFile().getName()).getFileName().toString();
        Set<String> found = new TreeSet<>();
        new Texts().scan(unit, found);
        if (!found.isEmpty()) {
          texts.put(unit.getPackageName() + "." + file.replace(".java", ""), found);
        }
      }
    }
    return texts;
  }

  private static final class Texts extends TreeScanner<Void, Set<String>> {
    @Override
    public Void visitNewClass(NewClassTree tree, Set<String> found) {
      if (tree.getIdentifier().toString().endsWith("Exception")) {
        add(tree.getArguments(), found);
      }
      return super.visitNewClass(tree, found);
    }

    @Override
    public Void visitMethodInvocation(MethodInvocationTree tree, Set<String> found) {
      if (MAKERS.contains(lastName(tree.getMethodSelect()))) {
        add(tree.getArguments(), found);
      }
      return super.visitMethodInvocation(tree, found);
    }

    private static void add(List<? extends ExpressionTree> arguments, Set<String> found) {
      if (!arguments.isEmpty()) {
        String text = text(arguments.get(0));
        if (text.replaceAll("\\{[^}]*}", "").matches("(?s).*[a-z]{3}.*")) {
          found.add(text.replace("\n", "\\n"));
        }
      }
    }

    private static String text(ExpressionTree tree) {
      if (tree instanceof LiteralTree literal) {
        return String.valueOf(literal.getValue());
      } else if (tree instanceof BinaryTree binary && binary.getKind() == Tree.Kind.PLUS) {
        return text(binary.getLeftOperand()) + text(binary.getRightOperand());
      } else if (tree instanceof ParenthesizedTree parenthesized) {
        return text(parenthesized.getExpression());
      } else if (tree instanceof ConditionalExpressionTree either) {
        return "{"
            + text(either.getTrueExpression())
            + " or "
            + text(either.getFalseExpression())
            + "}";
      } else if (tree instanceof MethodInvocationTree call
          && call.getMethodSelect() instanceof MemberSelectTree select
          && select.getIdentifier().contentEquals("formatted")) {
        return text(select.getExpression()).replace("%s", "{}");
      }
      return "{" + lastName(tree) + "}";
    }

    private static String lastName(Tree tree) {
      if (tree instanceof IdentifierTree identifier) {
        return identifier.getName().toString();
      } else if (tree instanceof MemberSelectTree member) {
        return member.getIdentifier().toString();
      } else if (tree instanceof MethodInvocationTree call) {
        return lastName(call.getMethodSelect());
      }
      return "value";
    }
  }
}
