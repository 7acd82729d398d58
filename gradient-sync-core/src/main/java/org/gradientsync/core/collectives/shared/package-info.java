/** x. */
package org.gradientsync.core.collectives.shared;
