package org.gradientsync.tools.doctor;

/**
 * One check.
 *
 * @param name the name to report if it does not finish
 * @param work runs the check
 */
record Check(String name, Work work) {
  /** Adds each fact as soon as it is known. */
  interface Work {
    void run(Facts facts) throws Exception;
  }
}
