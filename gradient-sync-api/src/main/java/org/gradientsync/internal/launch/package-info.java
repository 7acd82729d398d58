/** What launchers leave in the environment of the processes that they start. */
package org.gradientsync.internal.launch;
