package org.gradientsync;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Which packages may depend on which. */
class PackagesTest {
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
    slices().matching("(org.gradientsync..)").should().beFreeOfCycles().check(classes);
  }

  @Test
  void theRootPackageDependsOnNoOther() {
    noClasses()
        .that()
        .resideInAPackage("org.gradientsync")
        .should()
        .dependOnClassesThat(ofThisModule().and(not("org.gradientsync")))
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

  private static DescribedPredicate<JavaClass> ofThisModule() {
    return JavaClass.Predicates.resideInAPackage("org.gradientsync..");
  }

  private static DescribedPredicate<JavaClass> not(String packageName) {
    return DescribedPredicate.not(JavaClass.Predicates.resideInAPackage(packageName));
  }
}
