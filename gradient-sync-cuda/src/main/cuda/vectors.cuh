// Elements in vectors of 16 bytes.

#pragma once

#include "arithmetic.cuh"
#include "protocol.cuh"

template <int BYTES> struct Word;
template <> struct Word<2> { using Type = uint16_t; };
template <> struct Word<4> { using Type = uint32_t; };
template <> struct Word<8> { using Type = uint64_t; };

// Looks at this rank's elements, up to n vectors of them: i, i + step and so on, those below `last`. One finding is enough.
template <class F>
__device__ __noinline__ void inspect(const Arguments& a, long long i, long long last, int n, int step) {
  if constexpr (F::KEPT_EXPONENT != 0) {
    using Bits = typename Word<sizeof(typename F::Kept)>::Type;
    constexpr int SIZE = 16 / sizeof(typename F::Stored); // elements in a vector, which may take two as they lie in buffers
    constexpr int PARTS = SIZE * sizeof(Bits) / 16, PART = SIZE / PARTS;
    constexpr Bits MASK = (Bits)F::KEPT_EXPONENT;
    const Bits* elements = static_cast<const Bits*>(a.buffers[a.rank]);
    bool aligned = a.aligned >> a.rank & 1;
    long long bad = -1;
#pragma unroll 4
    for (int k = 0; k < n; k++, i += step) {
      if (i >= last) break;
      if (aligned && (i + 1) * SIZE <= a.count) {
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
          uint4 v = reinterpret_cast<const uint4*>(elements)[i * PARTS + part];
          const Bits* x = reinterpret_cast<const Bits*>(&v);
#pragma unroll
          for (int e = 0; e < PART; e++) {
            if ((x[e] & MASK) == MASK) bad = i * SIZE + part * PART + e;
          }
        }
      } else {
        for (long long e = i * SIZE; e < min(a.count, (i + 1) * SIZE); e++) {
          if ((elements[e] & MASK) == MASK) bad = e;
        }
      }
    }
    if (bad >= 0) not_finite(a, bad);
  }
}

// SUM and AVERAGE share their kernels, and so do the other operations.
enum Family { ADDING, OTHER };

// Vectors of 16 bytes, as they are stored and as they are added up.
template <class F, int FAMILY> struct Vector {
  using Stored = typename F::Stored;
  using Kept = typename F::Kept;
  static constexpr bool NARROWED = sizeof(Kept) != sizeof(Stored);
  static constexpr int KEPT = sizeof(Kept) / sizeof(Stored); // vectors in a buffer for one that travels
  static constexpr int SIZE = 16 / sizeof(Stored);
  static_assert(!NARROWED || KEPT == 2, "");
  typename F::Accumulated sum[SIZE];

  __device__ __forceinline__ void first(const uint4& v) {
    const Stored* x = reinterpret_cast<const Stored*>(&v);
#pragma unroll
    for (int i = 0; i < SIZE; i++) sum[i] = F::load(x[i]);
  }
  template <int OP> __device__ __forceinline__ void combine_all(const Stored* x) {
#pragma unroll
    for (int i = 0; i < SIZE; i++) sum[i] = combine<OP>(sum[i], F::load(x[i]));
  }
  __device__ __forceinline__ void next(const uint4& v, int op) {
    const Stored* x = reinterpret_cast<const Stored*>(&v);
    if (FAMILY == ADDING) {
      combine_all<SUM>(x);
    } else if (op == MIN) {
      combine_all<MIN>(x);
    } else if (op == MAX) {
      combine_all<MAX>(x);
    } else {
      combine_all<PROD>(x);
    }
  }
  __device__ __forceinline__ uint4 result(int op, int ranks) const {
    uint4 v;
    Stored* x = reinterpret_cast<Stored*>(&v);
    typename F::Accumulated y[SIZE];
    bool nan = false;
#pragma unroll
    for (int i = 0; i < SIZE; i++) {
      y[i] = FAMILY == ADDING && op == AVERAGE ? divide(sum[i], ranks) : sum[i];
      nan |= y[i] != y[i];
    }
    if constexpr (PACKS && sizeof(Stored) == 2) {
      if (!nan) return make_uint4(F::pack(y[0], y[1]), F::pack(y[2], y[3]), F::pack(y[4], y[5]), F::pack(y[6], y[7]));
    }
#pragma unroll
    for (int i = 0; i < SIZE; i++) x[i] = F::store(y[i]);
    return v;
  }
  // What travels of an element, and what becomes of a result.
  static __device__ __forceinline__ Stored narrow(Kept x) {
    if constexpr (NARROWED) {
      return F::store(x);
    } else {
      return x;
    }
  }
  static __device__ __forceinline__ Kept widen(Stored x) {
    if constexpr (NARROWED) {
      return F::widen(x);
    } else {
      return x;
    }
  }
  // A whole vector that begins where vectors do.
  static __device__ __forceinline__ uint4 read(const void* buffer, long long i) {
    if constexpr (NARROWED) {
      const uint4* from = static_cast<const uint4*>(buffer) + i * KEPT;
      uint4 first = from[0], second = from[1];
      uint2 low = narrow(first), high = narrow(second);
      return make_uint4(low.x, low.y, high.x, high.y);
    } else {
      return static_cast<const uint4*>(buffer)[i];
    }
  }
  static __device__ __forceinline__ void write(void* buffer, long long i, const uint4& v) {
    if constexpr (NARROWED) {
      uint4* to = static_cast<uint4*>(buffer) + i * KEPT;
      store(to, widen(make_uint2(v.x, v.y)));
      store(to + 1, widen(make_uint2(v.z, v.w)));
    } else {
      store(static_cast<uint4*>(buffer) + i, v);
    }
  }
  // Which of a warp's 32 vectors a lane handles. Where a vector is two in the buffer, two lanes that are neighbors share
  // four of those: the two lie 8 apart that a lane reads or writes, so that each access of eight lanes is to 128 bytes in a
  // row, in the buffer and where vectors travel.
  static __device__ __forceinline__ int place(int lane) {
    return NARROWED ? (lane & 24) | (lane & 1) << 2 | (lane & 7) >> 1 : lane;
  }
  // The first of the two in the buffer that a lane accesses, if i is the vector of its place.
  static __device__ __forceinline__ long long first_of(long long i, int lane) {
    return (i - place(lane)) * KEPT + (lane & 24) * KEPT + (lane & 7);
  }
  // By all of a warp, each lane for the vector of its place: as read and write.
  static __device__ __forceinline__ uint4 read_together(const void* buffer, long long i) {
    if constexpr (NARROWED) {
      int lane = threadIdx.x & 31;
      const uint4* from = static_cast<const uint4*>(buffer) + first_of(i, lane);
      uint2 low = narrow(from[0]), high = narrow(from[8]);
      uint2 other = exchange(lane & 1 ? low : high);
      return lane & 1 ? make_uint4(other.x, other.y, high.x, high.y) : make_uint4(low.x, low.y, other.x, other.y);
    } else {
      return read(buffer, i);
    }
  }
  static __device__ __forceinline__ void write_together(void* buffer, long long i, const uint4& v) {
    if constexpr (NARROWED) {
      int lane = threadIdx.x & 31;
      uint4* to = static_cast<uint4*>(buffer) + first_of(i, lane);
      uint2 first = make_uint2(v.x, v.y), second = make_uint2(v.z, v.w);
      uint2 other = exchange(lane & 1 ? first : second);
      store(to, widen(lane & 1 ? other : first));
      store(to + 8, widen(lane & 1 ? second : other));
    } else {
      write(buffer, i, v);
    }
  }
  static __device__ __forceinline__ uint2 exchange(uint2 v) {
    return make_uint2(__shfl_xor_sync(~0u, v.x, 1), __shfl_xor_sync(~0u, v.y, 1));
  }
  // Half a vector that travels, and one in a buffer.
  static __device__ __forceinline__ uint2 narrow(const uint4& kept) {
    const Kept* from = reinterpret_cast<const Kept*>(&kept);
    if constexpr (PACKS) {
      return make_uint2(F::pack(from[0], from[1]), F::pack(from[2], from[3]));
    }
    uint2 v;
    Stored* x = reinterpret_cast<Stored*>(&v);
#pragma unroll
    for (int k = 0; k < SIZE / 2; k++) x[k] = narrow(from[k]);
    return v;
  }
  static __device__ __forceinline__ uint4 widen(const uint2& v) {
    uint4 kept;
    const Stored* from = reinterpret_cast<const Stored*>(&v);
    Kept* x = reinterpret_cast<Kept*>(&kept);
#pragma unroll
    for (int k = 0; k < SIZE / 2; k++) x[k] = widen(from[k]);
    return kept;
  }
  // Vector i of a buffer. The last may be a part, and slices need not begin where vectors do.
  static __device__ __forceinline__ uint4 read(const void* buffer, long long i, long long count, bool aligned) {
    if (aligned && (i + 1) * SIZE <= count) return read(buffer, i);
    uint4 v = make_uint4(0, 0, 0, 0);
    Stored* x = reinterpret_cast<Stored*>(&v);
#pragma unroll
    for (int k = 0; k < SIZE; k++) {
      if (i * SIZE + k < count) x[k] = narrow(static_cast<const volatile Kept*>(buffer)[i * SIZE + k]);
    }
    return v;
  }
  static __device__ __forceinline__ void write(void* buffer, long long i, long long count, bool aligned, const uint4& v) {
    if (aligned && (i + 1) * SIZE <= count) {
      write(buffer, i, v);
      return;
    }
    const Stored* x = reinterpret_cast<const Stored*>(&v);
#pragma unroll
    for (int k = 0; k < SIZE; k++) {
      if (i * SIZE + k < count) static_cast<volatile Kept*>(buffer)[i * SIZE + k] = widen(x[k]);
    }
  }
};
