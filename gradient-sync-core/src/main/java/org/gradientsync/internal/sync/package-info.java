/** The implementation of the sync. */
package org.gradientsync.internal.sync;
