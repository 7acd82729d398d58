package org.gradientsync.examples.doctor;

/**
 * What one rank has found out.
 *
 * @param rank its number
 * @param facts what it has found out, or nothing if it never told
 */
record Report(int rank, Facts facts) {
  String get(String section, String name) {
    return facts.get(section, name);
  }

  boolean has(String section, String name) {
    return facts.has(section, name);
  }
}
