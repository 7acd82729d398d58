/** The reducer {@code nccl}: NCCL's own collectives, through a libnccl that the machine has. */
package org.gradientsync.cuda.internal.nccl;
