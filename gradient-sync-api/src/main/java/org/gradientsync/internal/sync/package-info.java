/** One rank's sync: its calls, in one order. */
package org.gradientsync.internal.sync;
