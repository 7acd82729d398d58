/**
 * Calls: how ranks meet for them by messages or in shared memory, what each asks for, and a flight
 * recorder of the last ones.
 */
package org.gradientsync.internal.matching;
