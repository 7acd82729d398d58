// What a perceptron's training step computes beside its matrix products: GpuMlp.java launches these. Each thread has four
// neighbouring elements, which it reads at once where they are there and the addresses are multiples of 16 bytes; one in adam.

#include <cstdint>

__device__ __forceinline__ bool aligned(const void* p) { return ((uintptr_t)p & 15) == 0; }

__device__ __forceinline__ long long first() { return ((long long)blockIdx.x * blockDim.x + threadIdx.x) * 4; }

__device__ __forceinline__ long long end(long long from, long long count) { return from + 4 < count ? from + 4 : count; }

// Not a number stays what it is.
__device__ __forceinline__ float positive(float x) { return x < 0 ? 0 : x; }

extern "C" __global__ void relu(float* x, long long count) {
  long long from = first();
  if (from + 4 <= count && aligned(x)) {
    float4* place = (float4*)(x + from);
    float4 v = *place;
    v.x = positive(v.x);
    v.y = positive(v.y);
    v.z = positive(v.z);
    v.w = positive(v.w);
    *place = v;
    return;
  }
  for (long long i = from; i < end(from, count); i++) x[i] = positive(x[i]);
}

// The derivative of relu: what comes back goes on where the activation is more than zero.
extern "C" __global__ void mask(float* delta, const float* activation, long long count) {
  long long from = first();
  if (from + 4 <= count && aligned(delta) && aligned(activation)) {
    float4* place = (float4*)(delta + from);
    float4 d = *place;
    float4 a = *(const float4*)(activation + from);
    d.x = a.x > 0 ? d.x : 0;
    d.y = a.y > 0 ? d.y : 0;
    d.z = a.z > 0 ? d.z : 0;
    d.w = a.w > 0 ? d.w : 0;
    *place = d;
    return;
  }
  for (long long i = from; i < end(from, count); i++) delta[i] = activation[i] > 0 ? delta[i] : 0;
}

extern "C" __global__ void update(float* weights, const float* gradient, float rate, long long count) {
  long long from = first();
  if (from + 4 <= count && aligned(weights) && aligned(gradient)) {
    float4* place = (float4*)(weights + from);
    float4 w = *place;
    float4 g = *(const float4*)(gradient + from);
    w.x -= rate * g.x;
    w.y -= rate * g.y;
    w.z -= rate * g.z;
    w.w -= rate * g.w;
    *place = w;
    return;
  }
  for (long long i = from; i < end(from, count); i++) weights[i] -= rate * gradient[i];
}

// Products of the last layer become, in place, the loss's derivative by them, which is factor times the difference where
// relu lets it through. Returns the difference's square.
__device__ __forceinline__ double settle(float& product, float target, float factor) {
  float output = positive(product);
  float difference = output - target;
  product = output > 0 ? factor * difference : 0;
  return (double)difference * difference;
}

#define LOSS_THREADS 256

// Blocks of LOSS_THREADS threads, as many as there are sums: each block leaves its own, added in the same order each time.
extern "C" __global__ void __launch_bounds__(LOSS_THREADS)
    loss(float* products, const float* targets, double* sums, float factor, long long count) {
  __shared__ double own[LOSS_THREADS];
  bool whole = aligned(products) && aligned(targets);
  long long stride = (long long)gridDim.x * blockDim.x * 4;
  double sum = 0;
  for (long long from = first(); from < count; from += stride) {
    if (from + 4 <= count && whole) {
      float4* place = (float4*)(products + from);
      float4 p = *place;
      float4 t = *(const float4*)(targets + from);
      sum += settle(p.x, t.x, factor);
      sum += settle(p.y, t.y, factor);
      sum += settle(p.z, t.z, factor);
      sum += settle(p.w, t.w, factor);
      *place = p;
    } else {
      for (long long i = from; i < end(from, count); i++) sum += settle(products[i], targets[i], factor);
    }
  }
  own[threadIdx.x] = sum;
  __syncthreads();
  for (int half = LOSS_THREADS / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) own[threadIdx.x] += own[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = own[0];
}

// A step of Adam; see Adam.java for the numbers. Each thread has one element. Every operation is rounded by itself, so the
// bits depend neither on the compiler nor on where the elements lie.
extern "C" __global__ void adam(float* weights, const float* gradient, float* means, float* squares, float rate,
                                float correction, long long count) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float g = gradient[i];
  float mean = __fadd_rn(__fmul_rn(0.9f, means[i]), __fmul_rn(0.1f, g));
  float square = __fadd_rn(__fmul_rn(0.999f, squares[i]), __fmul_rn(__fmul_rn(0.001f, g), g));
  means[i] = mean;
  squares[i] = square;
  float divisor = __fadd_rn(__fmul_rn(__fsqrt_rn(square), correction), 1e-8f);
  weights[i] = __fsub_rn(weights[i], __fdiv_rn(__fmul_rn(rate, mean), divisor));
}
