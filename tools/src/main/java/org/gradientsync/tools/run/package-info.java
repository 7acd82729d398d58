/**
 * {@code gradient-sync run}: starts the ranks of a job.
 *
 * <p>{@code LauncherSearch} finds mpirun, mpiexec or srun, and asks which MPI it is of ({@code
 * MpiInstallation}). {@code ProgramFiles} checks the class path. {@code LaunchPlan} has the
 * command, its environment and the settings, and starts nothing. {@code LauncherProcess} runs a
 * plan to its end, with {@code PrefixedOutput} for what the ranks print and {@code ExitCode} for
 * how they end, and {@code Restarts} runs it again when a rank was lost.
 */
package org.gradientsync.tools.run;
