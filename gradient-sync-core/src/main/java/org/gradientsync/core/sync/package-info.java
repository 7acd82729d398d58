/** The implementation of the sync. */
package org.gradientsync.core.sync;
