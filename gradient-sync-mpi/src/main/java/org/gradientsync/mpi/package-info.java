/** Ranks that mpirun started. */
package org.gradientsync.mpi;
