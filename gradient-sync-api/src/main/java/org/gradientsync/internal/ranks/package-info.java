/**
 * Who takes part in a group: its ranks, where they run, which are still alive, and messages between
 * them.
 */
package org.gradientsync.internal.ranks;
