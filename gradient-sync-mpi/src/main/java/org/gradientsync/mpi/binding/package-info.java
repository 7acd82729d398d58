/** A job's use of MPI, and the functions of MPI that it calls. */
package org.gradientsync.mpi.binding;
