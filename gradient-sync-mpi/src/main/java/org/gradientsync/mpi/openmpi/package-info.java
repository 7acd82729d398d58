/** MPI through Open MPI's Java bindings. No other package uses them. */
package org.gradientsync.mpi.openmpi;
