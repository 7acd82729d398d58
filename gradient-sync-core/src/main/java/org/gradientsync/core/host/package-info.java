/** Host memory as a device, and arithmetic on it with the promised bits. */
package org.gradientsync.core.host;
