// Reductions with an input and an output, of large blocks: every rank sends each owner its block, in chunks as in stream, and an
// owner writes the results into its output. Of a reduction to one rank that is the only owner.
//
// Of Arguments, `buffers` are this rank's blocks, one for each rank, 0 if that is no owner; `local` is the output, 0 if there is
// none.

#pragma once

#include "chunks.cuh"

template <class F, int FAMILY> __device__ __forceinline__ void stream_blocks(const Arguments& a) {
  in_chunks<F, FAMILY, false, STREAM_BATCH, false, true>(a);
}

#define BLOCKS_KERNEL(type, format, family) \
  extern "C" __global__ void __launch_bounds__(512, 2) stream_blocks_##type##_##family(const __grid_constant__ Arguments a) { \
    stream_blocks<format, family>(a); \
  }
#define BLOCKS_ALL(type, format) BLOCKS_KERNEL(type, format, ADDING) BLOCKS_KERNEL(type, format, OTHER)
#define BLOCKS_NARROWED(type, format) BLOCKS_KERNEL(type, Narrowed<format>, ADDING)
