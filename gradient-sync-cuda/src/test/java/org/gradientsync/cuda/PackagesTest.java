package org.gradientsync.cuda;

import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import org.junit.jupiter.api.Test;

/** Tests which packages may depend on which. */
class PackagesTest {
  private static final JavaClasses CLASSES =
      new ClassFileImporter()
          .withImportOption(new ImportOption.DoNotIncludeTests())
          .importPackages("org.gradientsync.cuda");

  @Test
  void thereIsNoCircle() {
    slices().matching("org.gradientsync.(cuda..)").should().beFreeOfCycles().check(CLASSES);
  }
}
