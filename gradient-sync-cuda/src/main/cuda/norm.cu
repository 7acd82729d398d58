// Sums of squares, and scaling, in double, for elements of all floating-point types. Which thread adds what, and in which
// order, depends on the number of elements only: NormKernel.java chooses the blocks, and adds their sums.

#include "arithmetic.cuh"

constexpr int THREADS = 512; // as in FlatLaunch.java

struct Arguments {
  void* elements;
  long long count;
  double factor;
  double* sums; // one for each block
};

template <class F> __device__ __forceinline__ void squares(const Arguments& a) {
  __shared__ double sums[THREADS];
  const typename F::Stored* elements = static_cast<const typename F::Stored*>(a.elements);
  long long stride = (long long)gridDim.x * THREADS;
  double sum = 0;
  for (long long i = (long long)blockIdx.x * THREADS + threadIdx.x; i < a.count; i += stride) {
    double x = F::load(elements[i]);
    sum = add(sum, multiply(x, x));
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = THREADS / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] = add(sums[threadIdx.x], sums[threadIdx.x + half]);
    __syncthreads();
  }
  if (threadIdx.x == 0) a.sums[blockIdx.x] = sums[0];
}

template <class F> __device__ __forceinline__ void scale(const Arguments& a) {
  typename F::Stored* elements = static_cast<typename F::Stored*>(a.elements);
  long long stride = (long long)gridDim.x * THREADS;
  for (long long i = (long long)blockIdx.x * THREADS + threadIdx.x; i < a.count; i += stride) {
    double product = multiply((double)F::load(elements[i]), a.factor);
    elements[i] = F::store((typename F::Accumulated)product);
  }
}

#define KERNELS(type, format) \
  extern "C" __global__ void __launch_bounds__(THREADS) squares_##type(const __grid_constant__ Arguments a) { \
    squares<format>(a); \
  } \
  extern "C" __global__ void __launch_bounds__(THREADS) scale_##type(const __grid_constant__ Arguments a) { \
    scale<format>(a); \
  }

KERNELS(FLOAT16, Half)
KERNELS(BFLOAT16, Brain)
KERNELS(FLOAT32, Plain<float>)
KERNELS(FLOAT64, Plain<double>)
