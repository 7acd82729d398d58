/**
 * A group of ranks at work: meeting for calls, waiting with a deadline, breaking, and splitting.
 */
package org.gradientsync.internal.group;
