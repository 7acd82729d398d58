// As stream, but of several buffers, which are reduced as one without being copied into one.
//
// Of Arguments, `local` is the table of the parts, which are `root`, and `count` is as if each part filled its last batch.

#pragma once

#include "chunks.cuh"

#define PARTS_KERNEL(type, format) \
  extern "C" __global__ void __launch_bounds__(512, 2) stream_parts_##type(const __grid_constant__ Arguments a) { \
    in_chunks<format, ADDING, false, STREAM_BATCH, false, false, true>(a); \
  }
