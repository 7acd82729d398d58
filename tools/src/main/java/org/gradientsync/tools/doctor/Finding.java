package org.gradientsync.tools.doctor;

import java.util.List;

/**
 * A verdict.
 *
 * @param isProblem false if everything works, but not as well as it could
 * @param what what is wrong
 * @param remedy what to do about it
 * @param ranks the affected ranks, ascending
 */
record Finding(boolean isProblem, String what, String remedy, List<Integer> ranks) {}
