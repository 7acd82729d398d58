/**
 * How a job of processes begins and ends.
 *
 * <p>{@link LaunchedJob} lets a {@link org.gradientsync.spi.Launcher} join the job, and makes the
 * group of all ranks from its transport, once in a process.
 *
 * <p>{@link JobEnd} ends a process together with the others. After success it waits until all have
 * come to their end, because a backend may hang otherwise; it ends the job if some never come.
 * After an uncaught exception it sends the other ranks the reason, and aborts the job with an exit
 * code that says what happened. After a signal it lets calls go on while the program's own shutdown
 * hooks run. In each case it deletes the shared files, and one rank has the last line on the
 * screen.
 */
package org.gradientsync.core.launch;
