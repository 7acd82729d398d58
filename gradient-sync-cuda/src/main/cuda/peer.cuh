// All-reduce among GPUs that reach each other's memory: each rank runs the same kernel on its GPU at the same time.
//
// What one rank writes for another goes into that rank's mailbox, a piece of its memory that all have mapped. The ways:
//
//   one_shot           every rank sends all its elements to all others, and each reduces everything. One crossing of the links.
//   two_shot           each rank owns a shard: it gets that shard from all, reduces it, and sends the result to all.
//   two_shot_unrolled  as two_shot, but a warp has several lines on their way at once, for which it takes more registers.
//   stream             as two_shot, in chunks through a bounded part of the mailbox; results go straight into the buffers.
//   stream_few_ctas    as stream, with fewer blocks that have more in flight each: leaves more of the GPU to other work.
//   staged             as stream_few_ctas, but results go through the staging, too: for elements that travel in another type
//                      than they lie in.
//
// And broadcast, in which one rank sends all its elements to all others.
//
// In kernels with CHECK_FINITE each thread looks for NaN and infinities among this rank's elements before it sends them. So
// what a rank has found lies in the host's memory when the others have its elements. These kernels are compiled apart: even
// a branch that is not taken costs the others registers.

#include "lines.cuh"

#include "chunks.cuh"

#define KERNEL(way, threads, blocks, type, format, family, check_finite) \
  extern "C" __global__ void __launch_bounds__(threads, blocks) way##_##type##_##family(const __grid_constant__ Arguments a) { \
    way<format, family, check_finite>(a); \
  }
// Every type and operation goes one way; PeerAlgorithm.java knows what has others, too.
#define ONE_WAY(type, format, family, check_finite) KERNEL(two_shot, 256, 3, type, format, family, check_finite)
#define ALL_WAYS(type, format, check_finite) \
  KERNEL(one_shot, 256, 3, type, format, ADDING, check_finite) \
  KERNEL(two_shot, 256, 3, type, format, ADDING, check_finite) \
  KERNEL(two_shot_unrolled, 256, 2, type, format, ADDING, check_finite) \
  KERNEL(stream, 512, 2, type, format, ADDING, check_finite) \
  KERNEL(stream_few_ctas, 512, 1, type, format, ADDING, check_finite)
#define NARROWED(type, format, check_finite) \
  KERNEL(one_shot, 256, 3, type, Narrowed<format>, ADDING, check_finite) \
  KERNEL(two_shot, 256, 3, type, Narrowed<format>, ADDING, check_finite) \
  KERNEL(two_shot_unrolled, 256, 2, type, Narrowed<format>, ADDING, check_finite) \
  KERNEL(staged, 512, 1, type, Narrowed<format>, ADDING, check_finite)
#define BROADCAST(type, format) \
  extern "C" __global__ void __launch_bounds__(256, 3) broadcast_##type(const __grid_constant__ Arguments a) { \
    broadcast<format>(a); \
  }
