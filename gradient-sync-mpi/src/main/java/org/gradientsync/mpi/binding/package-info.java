/** The only package that uses Open MPI's Java bindings. */
package org.gradientsync.mpi.binding;
