/**
 * Calls: the rendezvous of the ranks, by messages or in shared memory; what each rank asks for; and
 * a flight recorder of recent calls.
 */
package org.gradientsync.core.rendezvous;
