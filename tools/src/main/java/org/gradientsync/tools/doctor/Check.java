package org.gradientsync.tools.doctor;

import java.time.Duration;

/**
 * One check.
 *
 * @param name the name to report if it does not finish
 * @param limit how long it may take
 * @param work runs the check
 */
record Check(String name, Duration limit, Work work) {
  /** Adds each fact as soon as it is known. */
  interface Work {
    void run(Facts facts) throws Exception;
  }
}
