// What a call waits for before it moves data, and after.

#pragma once

#include "protocol.cuh"

// Nobody leaves before all others have come as far: neither this rank's buffer nor its staging is written any more.
template <bool CHECK_FINITE> __device__ __forceinline__ void leave_together(Call& call) {
  const Arguments& a = call.a;
  if (!__syncthreads_or(call.failed)) {
    if (threadIdx.x < a.ranks && threadIdx.x != a.rank) {
      unsigned long long flag = call.number << TAG_BITS;
      tell_after_all(&a.mailboxes[threadIdx.x]->flags[1][blockIdx.x][a.rank], flag);
      while (look_before_all(&call.own->flags[1][blockIdx.x][threadIdx.x]) < flag && !call.hopeless()) {
      }
    }
  }
  call.finish<CHECK_FINITE>();
}

// Does the work of a call when all ranks have come to it, and leaves when all others have done theirs.
template <class Work> __device__ __forceinline__ void between_barriers(const Arguments& a, Work work) {
  Call call(a);
  if (__syncthreads_or(call.broken)) return; // all or none: another block may just be setting it
  if (threadIdx.x < a.ranks && threadIdx.x != a.rank) {
    while (look_before_all(&call.own->headers[call.number & 1][threadIdx.x]) != call.header && !call.hopeless()) {
    }
  }
  call.failed = __syncthreads_or(call.failed);
  if (!call.failed) work(call);
  leave_together<false>(call);
}
