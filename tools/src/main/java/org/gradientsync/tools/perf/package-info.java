/** The programs {@code allreduce-perf} and {@code collectives-perf}: they time collectives. */
package org.gradientsync.tools.perf;
