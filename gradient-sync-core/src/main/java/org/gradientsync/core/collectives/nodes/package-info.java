/** x. */
package org.gradientsync.core.collectives.nodes;
