package org.gradientsync.examples.doctor;

import java.util.List;

/**
 * A verdict.
 *
 * @param isProblem false if all works, but not as well as it might
 * @param what is wrong
 * @param remedy what to do about it
 * @param ranks of which it holds, ascending
 */
record Finding(boolean isProblem, String what, String remedy, List<Integer> ranks) {}
