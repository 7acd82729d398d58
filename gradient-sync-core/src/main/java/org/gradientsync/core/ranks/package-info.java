/**
 * The ranks of a group: where they run, which of them are alive, and how they exchange messages.
 */
package org.gradientsync.core.ranks;
