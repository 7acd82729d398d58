/**
 * {@code gradient-sync run}: starts the ranks of a job.
 *
 * <p>{@code LauncherSearch} finds mpirun, mpiexec or srun, and asks which MPI it is of ({@code
 * MpiInstallation}). {@code ProgramFiles} checks the class path. {@code LaunchPlan} has the
 * command, its environment and the settings, and starts nothing. A {@code RankLaunch} runs a plan
 * once: {@code LauncherProcess} by a launcher, with {@code PrefixedOutput} for what the ranks print
 * and {@code ExitCode} for how they end, {@code RanksAsProcesses} without, and {@code RanksOverSsh}
 * without on several hosts, by a {@code RemoteNode} on each. {@code JobRunner} ends the job with
 * this process, and {@code Restarts} has it run again when a rank was lost.
 */
package org.gradientsync.tools.run;
