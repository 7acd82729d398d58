package org.gradientsync.examples.doctor;

import java.time.Duration;

/**
 * One thing to find out.
 *
 * @param name as it is told where it does not finish
 * @param limit how long it may take
 * @param work what finds it out
 */
record Check(String name, Duration limit, Work work) {
  /** What has been found out is added as soon as it is known. */
  interface Work {
    void run(Facts facts) throws Exception;
  }
}
