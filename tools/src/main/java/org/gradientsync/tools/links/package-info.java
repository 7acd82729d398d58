/** The program {@code link-perf}: it measures the links of GPUs. */
package org.gradientsync.tools.links;
