/** The collectives on host memory and by messages, for every backend. One algorithm per class. */
package org.gradientsync.core.collectives;
