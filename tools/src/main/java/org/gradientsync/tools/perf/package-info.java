/** {@code gradient-sync perf} and {@code perf collectives}: they time collectives. */
package org.gradientsync.tools.perf;
