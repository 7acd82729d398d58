/**
 * The collectives, written once for every backend: rendezvous, waiting, and one class for each way
 * to reduce.
 */
package org.gradientsync.collective;
