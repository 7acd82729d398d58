// Copies of bytes between places that need not begin where vectors do.

#pragma once

#include "protocol.cuh"

// Loads never come from an L1 cache, which may have old lines of another GPU's memory.
template <class U> __device__ __forceinline__ U load_now(const U* from) { return *static_cast<const volatile U*>(from); }
template <> __device__ __forceinline__ uint4 load_now<uint4>(const uint4* from) { return receive(from); }

// Copies n units. Thread `i` of `threads` calls this; each has several loads in flight.
template <class U> __device__ __forceinline__ void copy_units(char* to, const char* from, long long n, long long i, long long threads) {
  constexpr int BATCH = 4;
  U* target = reinterpret_cast<U*>(to);
  const U* source = reinterpret_cast<const U*>(from);
  for (; i + (BATCH - 1) * threads < n; i += BATCH * threads) {
    U v[BATCH];
#pragma unroll
    for (int k = 0; k < BATCH; k++) v[k] = load_now(source + i + k * threads);
#pragma unroll
    for (int k = 0; k < BATCH; k++) target[i + k * threads] = v[k];
  }
  for (; i < n; i += threads) target[i] = load_now(source + i);
}

// As copy_units, where source and target begin equally far behind a multiple of the size of U.
template <class U> __device__ __forceinline__ void copy_alike(char* to, const char* from, long long bytes, long long i, long long threads) {
  long long head = -reinterpret_cast<long long>(to) & (long long)(sizeof(U) - 1);
  if (head > bytes) head = bytes;
  long long n = (bytes - head) / (long long)sizeof(U), done = head + n * (long long)sizeof(U);
  copy_units<uint16_t>(to, from, head / 2, i, threads);
  copy_units<U>(to + head, from + head, n, i, threads);
  copy_units<uint16_t>(to + done, from + done, (bytes - done) / 2, i, threads);
}

// Addresses and sizes are even.
__device__ __forceinline__ void copy_bytes(char* to, const char* from, long long bytes, long long i, long long threads) {
  unsigned difference = (unsigned)(reinterpret_cast<long long>(to) ^ reinterpret_cast<long long>(from));
  if ((difference & 15) == 0) {
    copy_alike<uint4>(to, from, bytes, i, threads);
  } else if ((difference & 7) == 0) {
    copy_alike<uint64_t>(to, from, bytes, i, threads);
  } else if ((difference & 3) == 0) {
    copy_alike<uint32_t>(to, from, bytes, i, threads);
  } else {
    copy_alike<uint16_t>(to, from, bytes, i, threads);
  }
}
