/**
 * The program {@code doctor} checks a machine and a job, and reports what is wrong and what to do.
 *
 * <p>{@link Exam} runs the checks, each for a part of the time, and they add {@link Facts}. Code
 * that loads natives, talks to a driver or waits for other ranks may crash or hang, and must not
 * take the user's page with it. So it runs in a separate process ({@code ChildProcess}), which
 * prints each fact as soon as it knows it. {@link Gpus} loads the driver and the CUDA libraries.
 * {@link GpuLinks} copies between GPUs, and starts itself again to map its memory, which only
 * another process can do. {@code MpiTrial} of the module mpi loads Open MPI. Facts that a process
 * printed before it died still count, and how it ended is a fact, too.
 *
 * <p>{@link JobMember} joins the job in place of its rank, so that the rank can go on and report if
 * Open MPI ends or blocks that process. {@link Round} collects the ranks' facts: on one node
 * through the files of {@link Node}, without MPI, and from other nodes through {@link JobMember}.
 * {@link Rules} derives findings from the facts, and {@link Page} prints both.
 */
package org.gradientsync.tools.doctor;
