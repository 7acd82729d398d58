/** Times of reductions, for listeners and for Flight Recorder. */
package org.gradientsync.internal.observation;
