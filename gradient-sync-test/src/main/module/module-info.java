/**
 * Test support for programs that use org.gradientsync: fault injection, contract tests for
 * backends, and a small backend as an example.
 */
module org.gradientsync.test {
  requires transitive org.gradientsync.core;
  requires transitive org.junit.jupiter.api;
  requires transitive org.junit.jupiter.params;
  requires java.management;
  requires jdk.management;
  requires static org.junit.platform.launcher; // RankTests

  exports org.gradientsync.test.contract;
  exports org.gradientsync.test.example;
  exports org.gradientsync.test.faults;

  opens org.gradientsync.test.contract to
      org.junit.platform.commons;
}
