/** The environment variables that launchers set for the processes they start. */
package org.gradientsync.core.launch;
