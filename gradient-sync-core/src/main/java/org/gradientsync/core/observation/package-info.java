/** The times of reductions, for listeners and JDK Flight Recorder. */
package org.gradientsync.core.observation;
