// All-gather, reduce-scatter and all-to-all of small blocks: each rank sends a block to each other rank, in lines. That is one
// crossing of the links, where larger blocks take three.
//
// Of Arguments, `buffers` are this rank's blocks, one for each rank; `aligned` is about them. Staging as in one_shot: every rank
// waits for all others, so nobody is two calls ahead. A rank has read its input when it leaves.

#pragma once

#include "lines.cuh"

template <class V> struct Push {
  const Arguments& a;
  Call call;
  Lane lane;
  long long vectors, rounds, parity;

  __device__ __forceinline__ explicit Push(const Arguments& arguments) : a(arguments), call(arguments) {
    vectors = (a.count + V::SIZE - 1) / V::SIZE;
    rounds = (vectors + Lane::VECTORS - 1) / Lane::VECTORS;
    parity = (call.number & 1) * a.ranks * a.stride;
  }
  __device__ __forceinline__ bool has(long long round) const { return lane.data && at(round) < vectors; }
  __device__ __forceinline__ long long at(long long round) const { return round * Lane::VECTORS + lane.offset; }
  __device__ __forceinline__ uint4 read(int rank, long long round) const {
    uint4 v = lane.vector<V>(a.buffers[rank], round, vectors, a.count, a.aligned >> rank & 1);
    return lane.tagged(v, call.header);
  }
  __device__ __forceinline__ void write(char* output, long long round, const uint4& v) const {
    if (has(round)) V::write(output, at(round), a.count, (reinterpret_cast<long long>(output) & 15) == 0, v);
  }
  __device__ __forceinline__ const uint4* line(long long round) const { return a.staging[a.rank] + parity + round * 32 + lane.lane; }
  __device__ __forceinline__ void send() const {
    for (long long round = lane.warp; round < rounds; round += lane.warps) {
      for (int k = 1; k < a.ranks; k++) {
        int rank = after(a, k);
        send_line(a.staging[rank] + parity + a.rank * a.stride + round * 32 + lane.lane, read(rank, round));
      }
    }
  }
};

// Copies each rank's block to its place in the output.
template <class F> __device__ __forceinline__ void push_blocks(const Arguments& a) {
  Push<Vector<F, ADDING>> push(a);
  if (push.call.broken) return;
  push.send();
  for (int k = 0; k < a.ranks && !push.call.failed; k++) {
    int rank = after(a, k);
    char* output = a.local + rank * a.count * (long long)sizeof(typename F::Kept);
    if (output == a.buffers[rank]) continue; // in place
    for (long long round = push.lane.warp; round < push.rounds && !push.call.failed; round += push.lane.warps) {
      uint4 v;
      if (rank == a.rank) {
        push.write(output, round, push.read(rank, round));
      } else if (await(push.call, push.lane, push.line(round) + rank * a.stride, v)) {
        push.write(output, round, v);
      }
    }
  }
  push.call.finish();
}

// Reduces the blocks for this rank, in rank order.
template <class F, int FAMILY> __device__ __forceinline__ void push_and_reduce(const Arguments& a) {
  Push<Vector<F, FAMILY>> push(a);
  if (push.call.broken) return;
  push.send();
  for (long long round = push.lane.warp; round < push.rounds; round += push.lane.warps) {
    uint4 result;
    if (!gather<F, FAMILY>(push.call, push.lane, push.line(round), push.read(a.rank, round), result)) break;
    push.write(a.local, round, result);
  }
  push.call.finish();
}

#define PUSH_COPY \
  extern "C" __global__ void __launch_bounds__(256, 3) push_copy(const __grid_constant__ Arguments a) { push_blocks<Half>(a); }
#define PUSH_KERNEL(type, format, family) \
  extern "C" __global__ void __launch_bounds__(256, 3) push_##type##_##family(const __grid_constant__ Arguments a) { \
    push_and_reduce<format, family>(a); \
  }
#define PUSH_ALL(type, format) PUSH_KERNEL(type, format, ADDING) PUSH_KERNEL(type, format, OTHER)
#define PUSH_NARROWED(type, format) PUSH_KERNEL(type, Narrowed<format>, ADDING)
