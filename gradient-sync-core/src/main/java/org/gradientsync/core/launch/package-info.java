/** How the processes of a job start and end: launchers' variables, joining the job, its end. */
package org.gradientsync.core.launch;
