// Blocks that hold a processor each for some time, and copy memory meanwhile if told to, as an average beside a backward pass.
// nvcc -O2 -arch=sm_90 -shared -Xcompiler -fPIC -o libheld.so 2026-11-22-held-processors.cu; then 2026-11-22-held-processors.py
#include <cstdio>
#include <cuda_runtime.h>
__device__ long long now() {
  long long t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
  return t;
}
__global__ void __launch_bounds__(512) held(long long ns, int traffic, const float4* from, float4* to, long long n) {
  extern __shared__ char s[];
  long long t = now();
  if (!traffic) {
    if (threadIdx.x == 0) {
      s[0] = 1;
      while (now() - t < ns);
    }
    __syncthreads();
    return;
  }
  long long i = (long long)blockIdx.x * 512 + threadIdx.x, step = (long long)gridDim.x * 512;
  do {
    float4 v[4];
    for (int r = 0; r < 8; r++) {
#pragma unroll
      for (int u = 0; u < 4; u++) v[u] = from[(i + u * step) % n];
#pragma unroll
      for (int u = 0; u < 4; u++) to[(i + u * step) % n] = v[u];
      i += 4 * step;
    }
  } while (now() - t < ns);
}
// looks at a number, in the host's memory or the device's, every ns nanoseconds until it is not 0
__global__ void __launch_bounds__(256) looks(volatile int* go, long long ns) {
  extern __shared__ char s[];
  if (threadIdx.x == 0) {
    s[0] = 1;
    while (!*go) __nanosleep(ns);
  }
  __syncthreads();
}
static int launched(cudaError_t e) {
  if (e) fprintf(stderr, "held: %s\n", cudaGetErrorString(e));
  return e;
}
extern "C" int hold(int blocks, int cluster, int smem, long long ns, int traffic, void* from, void* to, long long n, cudaStream_t st) {
  cudaFuncSetAttribute(held, cudaFuncAttributeMaxDynamicSharedMemorySize, smem);
  cudaLaunchConfig_t c = {};
  c.gridDim = blocks;
  c.blockDim = 512;
  c.dynamicSmemBytes = smem;
  c.stream = st;
  cudaLaunchAttribute a[1];
  a[0].id = cudaLaunchAttributeClusterDimension;
  a[0].val.clusterDim = {(unsigned)cluster, 1, 1};
  c.attrs = a;
  c.numAttrs = cluster > 1 ? 1 : 0;
  return launched(cudaLaunchKernelEx(&c, held, ns, traffic, (const float4*)from, (float4*)to, n));
}
extern "C" int look(int blocks, int smem, int* go, long long ns, cudaStream_t st) {
  cudaFuncSetAttribute(looks, cudaFuncAttributeMaxDynamicSharedMemorySize, smem);
  looks<<<blocks, 256, smem, st>>>(go, ns);
  return launched(cudaGetLastError());
}
