/**
 * A group of ranks in operation: rendezvous for calls, waiting with a deadline, failure, and
 * splitting.
 */
package org.gradientsync.core.group;
