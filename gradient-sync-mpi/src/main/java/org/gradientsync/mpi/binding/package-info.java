/** The one door to Open MPI's Java bindings. */
package org.gradientsync.mpi.binding;
