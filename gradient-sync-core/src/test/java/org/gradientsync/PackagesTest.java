package org.gradientsync;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.gradientsync.spi.SyncProvider;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Which packages may depend on which. */
class PackagesTest {
  private static final Pattern IMPORT =
      Pattern.compile("(?m)^import (?:static )?(org\\.gradientsync\\.core\\.[a-z]+)\\.");
  private static final Pattern EXPORT =
      Pattern.compile("exports (org\\.gradientsync\\.core\\.[a-z]+) to([^;]*);");

  private static JavaClasses classes;

  @BeforeAll
  static void read() {
    classes =
        new ClassFileImporter()
            .withImportOption(new ImportOption.DoNotIncludeTests())
            .importPackages("org.gradientsync");
  }

  @Test
  void packagesHaveNoCycles() {
    slices()
        .matching("(org.gradientsync..)")
        .should()
        .beFreeOfCycles()
        .ignoreDependency(GradientSync.class, SyncProvider.class)
        .check(classes);
  }

  @Test
  void theRootPackageDependsOnNoOther() {
    noClasses()
        .that()
        .resideInAPackage("org.gradientsync")
        .should()
        .dependOnClassesThat(
            ofThisModule()
                .and(not("org.gradientsync"))
                .and(DescribedPredicate.not(JavaClass.Predicates.type(SyncProvider.class))))
        .check(classes);
  }

  @Test
  void spiDependsOnTheRootPackageOnly() {
    noClasses()
        .that()
        .resideInAPackage("org.gradientsync.spi")
        .should()
        .dependOnClassesThat(
            ofThisModule().and(not("org.gradientsync")).and(not("org.gradientsync.spi")))
        .check(classes);
  }

  /** A modular program fails at run time where an export is missing. */
  @ParameterizedTest
  @ValueSource(strings = {"cuda", "mpi"})
  void internalPackagesAreExportedToTheModulesThatImportThem(String module) throws IOException {
    Set<String> imported = new TreeSet<>();
    try (Stream<Path> files =
        Files.walk(Path.of("../gradient-sync-" + module + "/src/main/java"))) {
      for (Path file : files.filter(f -> f.toString().endsWith(".java")).toList()) {
        IMPORT.matcher(Files.readString(file)).results().forEach(m -> imported.add(m.group(1)));
      }
    }
    Set<String> exported = new TreeSet<>();
    EXPORT
        .matcher(Files.readString(Path.of("src/main/module/module-info.java")))
        .results()
        .filter(m -> m.group(2).matches("(?s).*\\borg\\.gradientsync\\." + module + "\\b.*"))
        .forEach(m -> exported.add(m.group(1)));
    assertEquals(imported, exported);
  }

  private static DescribedPredicate<JavaClass> ofThisModule() {
    return JavaClass.Predicates.resideInAPackage("org.gradientsync..");
  }

  private static DescribedPredicate<JavaClass> not(String packageName) {
    return DescribedPredicate.not(JavaClass.Predicates.resideInAPackage(packageName));
  }
}
