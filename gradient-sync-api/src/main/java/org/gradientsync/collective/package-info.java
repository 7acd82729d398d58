/**
 * The collectives, written once for every backend: meeting, waiting, and one class for each way to
 * reduce.
 */
package org.gradientsync.collective;
