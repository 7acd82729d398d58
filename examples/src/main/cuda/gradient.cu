// A rank's gradient: element i is rank + i / 1000, worked out in double and rounded to the type, as Gradients.java does.
// The 16-bit types are rounded to float first, because Java has no conversion from double to them.

#include <cstdint>

__device__ __forceinline__ double element(int rank, long long i) { return rank + i / 1000.0; }

struct Half {
  using Stored = uint16_t;
  static __device__ __forceinline__ uint16_t of(double x) {
    uint16_t bits;
    asm("{ .reg .b16 h; cvt.rn.f16.f32 h, %1; mov.b16 %0, h; }" : "=h"(bits) : "f"((float)x));
    return bits;
  }
};

struct Brain {
  using Stored = uint16_t;
  static __device__ __forceinline__ uint16_t of(double x) {
    unsigned bits = __float_as_uint((float)x);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
};

struct Single {
  using Stored = float;
  static __device__ __forceinline__ float of(double x) { return (float)x; }
};

struct Double {
  using Stored = double;
  static __device__ __forceinline__ double of(double x) { return x; }
};

#define KERNEL(type, format) \
  extern "C" __global__ void gradient_##type(format::Stored* gradient, int rank, long long count) { \
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; \
    if (i < count) gradient[i] = format::of(element(rank, i)); \
  }

KERNEL(FLOAT16, Half)
KERNEL(BFLOAT16, Brain)
KERNEL(FLOAT32, Single)
KERNEL(FLOAT64, Double)
