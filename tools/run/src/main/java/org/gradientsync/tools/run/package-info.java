/**
 * {@code gradient-sync run}: starts the ranks of a job.
 *
 * <p>{@link LauncherSearch} finds mpirun, mpiexec or srun, and asks which MPI it is of ({@link
 * MpiInstallation}). {@link ProgramFiles} checks the class path. {@link LaunchPlan} has the
 * command, its environment and the settings, and starts nothing. A {@link RankLaunch} runs a plan
 * once: {@link LauncherProcess} by a launcher, with {@link PrefixedOutput} for what the ranks print
 * and {@link ExitCode} for how they end, {@link RanksAsProcesses} without, and {@link RanksOverSsh}
 * without on several hosts, by a {@link RemoteNode} on each. {@link JobRunner} ends the job with
 * this process, and {@link Restarts} has it run again when a rank was lost.
 */
package org.gradientsync.tools.run;
