/** x. */
package org.gradientsync.core.collectives.messages;
