/** {@code gradient-sync links}: measures the links of GPUs. */
package org.gradientsync.tools.links;
