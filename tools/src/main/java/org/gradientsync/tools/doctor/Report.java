package org.gradientsync.tools.doctor;

/**
 * The facts from one rank.
 *
 * @param rank the rank's number
 * @param facts the rank's facts, or none if it never reported
 */
record Report(int rank, Facts facts) {
  String get(String section, String name) {
    return facts.get(section, name);
  }

  boolean has(String section, String name) {
    return facts.has(section, name);
  }
}
