/**
 * The times of reductions.
 *
 * <p>An {@link Observer} takes the time at which a reduction is called, at which the device begins
 * and at which it ends, and hands them as a {@link org.gradientsync.Synchronization} to the
 * program's listener, and as an event to JDK Flight Recorder. Without a listener or a recording it
 * does nothing.
 *
 * <p>Times of a device come from its events, which are reused. A reduction is reported when its end
 * is known, by the thread of a later call or of the wait for it, so observing does not block.
 */
package org.gradientsync.core.observation;
