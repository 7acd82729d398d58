// Collectives that only copy, for large blocks: each rank writes its blocks into the others' outputs. Writes cross NVLink faster
// than reads do.
//
// A call has the two barriers of barriers.cuh. Nobody writes before all ranks have come to the same call, because only then is
// their output free. And nobody leaves before all others have written, so its output is whole. A rank without an input or without
// an output takes part in both.
//
// Of Arguments, `buffers` is where this rank's block goes on each rank, 0 if it sends none there; `local` is this rank's input, and
// `stride` is from one of its blocks to the next, in bytes. In a broadcast `buffers` are all ranks' buffers.

#pragma once

#include "barriers.cuh"
#include "copy.cuh"

// Copies a block of `count` bytes to each rank. The warps begin with different ranks, so that all links are used, and so is this
// GPU's memory meanwhile.
__device__ __forceinline__ void put_blocks(const Arguments& a) {
  long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x, threads = (long long)gridDim.x * blockDim.x;
  for (int k = 0; k < a.ranks; k++) {
    int rank = after(a, (k + threadIdx.x / 32) % a.ranks);
    const char* from = a.local + rank * a.stride;
    char* to = static_cast<char*>(a.buffers[rank]);
    if (to != nullptr && to != from) copy_bytes(to, from, a.count, thread, threads);
  }
}

// The root sends each other rank a part of the elements, and that rank forwards it to the others, so no link carries more than the
// elements once. A block deals with the same block of the other ranks alone: it sends a tile of `batches` times 8 KiB, raises a
// flag, and goes on, while the receiver forwards.
__device__ __forceinline__ void broadcast_in_tiles(Call& call) {
  const Arguments& a = call.a;
  int receivers = a.ranks - 1;
  long long part = ((a.count + receivers - 1) / receivers + 15) / 16 * 16, size = a.batches * 8192LL, step = gridDim.x * size;
  unsigned long long flag = call.number << TAG_BITS;
  // The warps begin with different ranks, as in put_blocks.
  auto copy_tile = [&](int to, int owner, long long at) {
    long long begin = ((owner - a.root - 1 + a.ranks) % a.ranks) * part;
    long long bytes = min(min(begin + part, a.count) - begin - at, size);
    if (bytes <= 0 || to == a.root || to == a.rank) return;
    const char* from = static_cast<const char*>(a.buffers[a.rank]) + begin + at;
    copy_bytes(static_cast<char*>(a.buffers[to]) + begin + at, from, bytes, threadIdx.x, blockDim.x);
  };
  for (long long at = blockIdx.x * size; at < part; at += step, flag++) {
    if (a.rank != a.root && receivers > 1) {
      if (threadIdx.x == 0) {
        while (look_before_all(&call.own->flags[0][blockIdx.x][a.root]) < flag && !call.hopeless()) {
        }
      }
      call.failed = __syncthreads_or(call.failed);
      if (call.failed) return;
    }
    for (int k = 0; k < a.ranks && (a.rank == a.root || receivers > 1); k++) {
      int to = after(a, (k + threadIdx.x / 32) % a.ranks);
      copy_tile(to, a.rank == a.root ? to : a.rank, at);
    }
    if (a.rank == a.root && receivers > 1) {
      __syncthreads();
      if (threadIdx.x < a.ranks && threadIdx.x != a.rank) {
        tell_after_all(&a.mailboxes[threadIdx.x]->flags[0][blockIdx.x][a.rank], flag);
      }
    }
  }
}

#define PUT \
  extern "C" __global__ void __launch_bounds__(512, 2) put_copy(const __grid_constant__ Arguments a) { \
    between_barriers(a, [&](Call&) { put_blocks(a); }); \
  } \
  extern "C" __global__ void __launch_bounds__(512, 2) put_broadcast(const __grid_constant__ Arguments a) { \
    between_barriers(a, [&](Call& call) { broadcast_in_tiles(call); }); \
  }
