/** MPI by calls of its C library, without Java bindings. */
package org.gradientsync.mpi.direct;
