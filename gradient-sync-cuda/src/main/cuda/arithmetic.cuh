// The arithmetic that ReduceOp promises, bit by bit, for all types: what the reducing kernels share.
// Compiled with -fmad=false: a fused multiply-add would round once where Java rounds twice. Division is IEEE
// (-prec-div=true) and denormals are kept (-ftz=false).

#pragma once

#include <cstdint>

enum Op { SUM, AVERAGE, MIN, MAX, PROD };

__device__ __forceinline__ float canonical(float x) { return x != x ? __int_as_float(0x7fc00000) : x; }
__device__ __forceinline__ double canonical(double x) {
  return x != x ? __longlong_as_double(0x7ff8000000000000LL) : x;
}
__device__ __forceinline__ int canonical(int x) { return x; }
__device__ __forceinline__ long long canonical(long long x) { return x; }

// Java's Math.min and Math.max: NaN wins, and -0 is less than +0.
__device__ __forceinline__ bool negative(float x) { return __float_as_int(x) < 0; }
__device__ __forceinline__ bool negative(double x) { return __double_as_longlong(x) < 0; }
template <class T> __device__ __forceinline__ T least(T a, T b) {
  if (a != a) return a;
  if (b != b) return b;
  if (a == b) return negative(a) ? a : b;
  return a < b ? a : b;
}
template <class T> __device__ __forceinline__ T greatest(T a, T b) {
  if (a != a) return a;
  if (b != b) return b;
  if (a == b) return negative(a) ? b : a;
  return a > b ? a : b;
}
__device__ __forceinline__ int least(int a, int b) { return a < b ? a : b; }
__device__ __forceinline__ int greatest(int a, int b) { return a > b ? a : b; }
__device__ __forceinline__ long long least(long long a, long long b) { return a < b ? a : b; }
__device__ __forceinline__ long long greatest(long long a, long long b) { return a > b ? a : b; }

__device__ __forceinline__ int add(int a, int b) { return (int)((unsigned)a + (unsigned)b); }
__device__ __forceinline__ int multiply(int a, int b) { return (int)((unsigned)a * (unsigned)b); }
__device__ __forceinline__ long long add(long long a, long long b) {
  return (long long)((unsigned long long)a + (unsigned long long)b);
}
__device__ __forceinline__ long long multiply(long long a, long long b) {
  return (long long)((unsigned long long)a * (unsigned long long)b);
}
__device__ __forceinline__ float add(float a, float b) { return __fadd_rn(a, b); }
__device__ __forceinline__ float multiply(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ double add(double a, double b) { return __dadd_rn(a, b); }
__device__ __forceinline__ double multiply(double a, double b) { return __dmul_rn(a, b); }
// For a power of two, 1 / n is exact, so the product is rounded once and has the bits of the quotient.
__device__ __forceinline__ float divide(float a, int n) {
  if ((n & (n - 1)) == 0) return __fmul_rn(a, __int_as_float((127 - __popc(n - 1)) << 23));
  return __fdiv_rn(a, (float)n);
}
__device__ __forceinline__ double divide(double a, int n) { return __ddiv_rn(a, (double)n); }
__device__ __forceinline__ int divide(int a, int) { return a; }
__device__ __forceinline__ long long divide(long long a, int) { return a; }

template <int OP, class T> __device__ __forceinline__ T combine(T a, T b) {
  if (OP == MIN) return least(a, b);
  if (OP == MAX) return greatest(a, b);
  if (OP == PROD) return multiply(a, b);
  return add(a, b);
}

// An exponent's bits, which are all set in NaN and infinities.
template <class T> constexpr uint64_t EXPONENT = 0; // integers have none
template <> constexpr uint64_t EXPONENT<float> = 0x7f800000;
template <> constexpr uint64_t EXPONENT<double> = 0x7ff0000000000000;

// How a type travels (Stored), how it lies in buffers (Kept, whose exponent's bits are KEPT_EXPONENT), and what it is
// accumulated in.
template <class T> struct Plain {
  using Stored = T;
  using Kept = T;
  using Accumulated = T;
  static constexpr uint64_t KEPT_EXPONENT = EXPONENT<T>;
  static __device__ __forceinline__ T load(T x) { return x; }
  static __device__ __forceinline__ T store(T x) { return canonical(x); }
};

// Types of 16 bits pack two floats at once, with any NaN where there was one, if PACKS says that GPUs this is compiled for
// have an instruction for that.
#if __CUDA_ARCH__ >= 800
constexpr bool PACKS = true;
#else
constexpr bool PACKS = false;
#endif

struct Half {
  using Stored = uint16_t;
  using Kept = uint16_t;
  using Accumulated = float;
  static constexpr uint64_t KEPT_EXPONENT = 0x7c00;
  static __device__ __forceinline__ float load(uint16_t bits) {
    float x;
    asm("{ .reg .b16 h; mov.b16 h, %1; cvt.f32.f16 %0, h; }" : "=f"(x) : "h"(bits));
    return x;
  }
  static __device__ __forceinline__ float widen(uint16_t bits) { return canonical(load(bits)); }
  static __device__ __forceinline__ uint16_t store(float x) {
    if (x != x) return 0x7e00;
    uint16_t bits;
    asm("{ .reg .b16 h; cvt.rn.f16.f32 h, %1; mov.b16 %0, h; }" : "=h"(bits) : "f"(x));
    return bits;
  }
  static __device__ __forceinline__ unsigned pack(float low, float high) {
    unsigned bits = 0;
    if constexpr (PACKS) asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
    return bits;
  }
};

struct Brain {
  using Stored = uint16_t;
  using Kept = uint16_t;
  using Accumulated = float;
  static constexpr uint64_t KEPT_EXPONENT = 0x7f80;
  static __device__ __forceinline__ float load(uint16_t bits) { return __uint_as_float((unsigned)bits << 16); }
  // Every NaN is 0x7fc0, from store, and becomes 0x7fc00000, which is canonical.
  static __device__ __forceinline__ float widen(uint16_t bits) { return load(bits); }
  static __device__ __forceinline__ uint16_t store(float x) {
    if (x != x) return 0x7fc0;
    unsigned bits = __float_as_uint(x);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
  static __device__ __forceinline__ unsigned pack(float low, float high) {
    unsigned bits = 0;
    if constexpr (PACKS) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
    return bits;
  }
};

// float32 in buffers, 16 bits on the way.
template <class F> struct Narrowed : F {
  using Kept = float;
  static constexpr uint64_t KEPT_EXPONENT = EXPONENT<float>;
};
