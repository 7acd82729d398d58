// Reductions with an input and an output: each rank reads what it reduces from the others' inputs.
//
// A call has the two barriers of barriers.cuh. Nobody reads before all ranks have come to the same call, because only then are
// their inputs there. And nobody leaves before all others have read its input, so work enqueued behind may write over it. A rank
// without an output takes part in both.
//
// Of Arguments, `buffers` are the elements that this rank reads from each rank, 0 if it reads none.

#pragma once

#include "barriers.cuh"
#include "vectors.cuh"

// Vector i of another rank's elements.
template <class V> __device__ __forceinline__ uint4 pull_vector(const char* from, long long i, long long count, bool aligned) {
  if (!aligned || (i + 1) * V::SIZE > count) return V::read(from, i, count, false);
  const uint4* vectors = reinterpret_cast<const uint4*>(from) + i * V::KEPT;
  if constexpr (V::NARROWED) {
    uint4 first = receive(vectors), second = receive(vectors + 1);
    uint2 low = V::narrow(first), high = V::narrow(second);
    return make_uint4(low.x, low.y, high.x, high.y);
  } else {
    return receive(vectors);
  }
}

// Reduces `count` elements, which begin `skip` bytes behind the first ones, in rank order.
template <class F, int FAMILY>
__device__ __noinline__ void pull_and_reduce(const Arguments& a, long long skip, long long count, bool aligned) {
  using V = Vector<F, FAMILY>;
  constexpr int BATCH = 2, GROUP = 2; // vectors of a thread, and ranks, that are in flight at once
  char* output = a.local + skip;
  bool whole = aligned && (reinterpret_cast<long long>(output) & 15) == 0;
  long long vectors = (count + V::SIZE - 1) / V::SIZE, threads = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += BATCH * threads) {
    V sum[BATCH];
    for (int begin = 0; begin < a.ranks; begin += GROUP) {
      uint4 v[GROUP][BATCH];
#pragma unroll
      for (int k = 0; k < GROUP; k++) {
#pragma unroll
        for (int u = 0; u < BATCH; u++) {
          long long at = i + u * threads;
          v[k][u] = make_uint4(0, 0, 0, 0);
          if (begin + k < a.ranks && at < vectors) {
            v[k][u] = pull_vector<V>(static_cast<const char*>(a.buffers[begin + k]) + skip, at, count, aligned);
          }
        }
      }
#pragma unroll
      for (int k = 0; k < GROUP; k++) {
#pragma unroll
        for (int u = 0; u < BATCH; u++) {
          if (begin + k == 0) {
            sum[u].first(v[k][u]);
          } else if (begin + k < a.ranks) {
            sum[u].next(v[k][u], a.op);
          }
        }
      }
    }
#pragma unroll
    for (int u = 0; u < BATCH; u++) {
      long long at = i + u * threads;
      if (at < vectors) V::write(output, at, count, whole, sum[u].result(a.op, a.ranks));
    }
  }
}

// Inputs that begin equally far behind a multiple of 16 bytes are read in vectors, but for their first elements.
template <class F, int FAMILY> __device__ __forceinline__ void pull_reduction(const Arguments& a) {
  if (a.local == nullptr) return;
  constexpr int SIZE = sizeof(typename F::Kept);
  long long first = reinterpret_cast<long long>(a.buffers[0]), head = 0;
  bool alike = true;
  for (int rank = 1; rank < a.ranks; rank++) alike = alike && ((reinterpret_cast<long long>(a.buffers[rank]) ^ first) & 15) == 0;
  if (alike) head = min(a.count, (-first & 15) / SIZE);
  if (head > 0) pull_and_reduce<F, FAMILY>(a, 0, head, false);
  pull_and_reduce<F, FAMILY>(a, head * SIZE, a.count - head, alike);
}

#define PULL_KERNEL(type, format, family) \
  extern "C" __global__ void __launch_bounds__(512, 2) pull_##type##_##family(const __grid_constant__ Arguments a) { \
    between_barriers<true>(a, [&](Call&) { pull_reduction<format, family>(a); }); \
  }
#define PULL_ALL(type, format) PULL_KERNEL(type, format, ADDING) PULL_KERNEL(type, format, OTHER)
#define PULL_NARROWED(type, format) PULL_KERNEL(type, Narrowed<format>, ADDING)
