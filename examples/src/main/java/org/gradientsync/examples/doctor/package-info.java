/**
 * The program {@code doctor}: what can be known about a machine and a job, what is wrong with it,
 * and what to do.
 *
 * <p>{@code Exam} runs the checks, each with its own limit of time, and they add {@code Facts}.
 * What loads natives, talks to a driver or waits for other ranks may crash or hang, and would take
 * the page that the user waits for with it. So it is tried in a process of its own ({@code Child}),
 * which prints each fact as soon as it knows it: {@code GpuList} loads the driver and the libraries
 * of CUDA, {@code GpuLinks} copies between GPUs, {@code GpuImport}, which that one starts, maps its
 * memory, since only another process can; {@code MpiTrial} of the module mpi loads Open MPI. What
 * such a process printed before it died still counts, and how it ended is a fact, too.
 *
 * <p>{@code Job} joins the job in the place of its rank: where Open MPI ends a process, or waits
 * for ever, the one that tells of it goes on. {@code Round} brings the ranks' facts together: on
 * one node through the files of {@code Node}, without MPI, and from other nodes through {@code
 * Job}. {@code Rules} turns facts into findings, and {@code Page} prints both.
 */
package org.gradientsync.examples.doctor;
