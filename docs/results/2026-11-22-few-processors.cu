// What bulk copies (TMA) and plain loads of few processors carry: nvcc -O3 -std=c++17 -arch=sm_90 -o few-processors FILE
#include <cstdio>
#include <cstdlib>
#include <cstdint>
#include <cuda_runtime.h>
#define CK(x) do { cudaError_t e = (x); if (e) { printf("%s: %s line %d\n", #x, cudaGetErrorString(e), __LINE__); exit(1);} } while (0)

__device__ __forceinline__ uint32_t sm(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void mb_init(uint64_t* b, int n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(sm(b)), "r"(n)); }
__device__ __forceinline__ void mb_expect(uint64_t* b, uint32_t n) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(sm(b)), "r"(n) : "memory"); }
__device__ __forceinline__ void mb_wait(uint64_t* b, uint32_t ph) {
  asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra D; bra L; D: }" ::"r"(sm(b)), "r"(ph) : "memory");
}
__device__ __forceinline__ void ld(void* s, const void* g, uint32_t n, uint64_t* b) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(sm(s)), "l"(g), "r"(n), "r"(sm(b)) : "memory");
}
__device__ __forceinline__ void st(void* g, const void* s, uint32_t n) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(g), "r"(sm(s)), "r"(n) : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int N> __device__ __forceinline__ void wait_read() { asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory"); }
__device__ __forceinline__ void wait_all() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// push: one thread per block; STAGES of SZ bytes, half ahead
template <int STAGES> __global__ void push(char* to, const char* from, long long n, int SZ) {
  extern __shared__ __align__(128) char buf[];
  __shared__ uint64_t full[STAGES];
  if (threadIdx.x != 0) return;
  for (int i = 0; i < STAGES; i++) mb_init(&full[i], 1);
  asm volatile("fence.mbarrier_init.release.cluster;");
  long long tiles = n / SZ, mine = (tiles - blockIdx.x + gridDim.x - 1) / gridDim.x;
  constexpr int AHEAD = STAGES / 2;
  for (long long i = 0; i < mine + AHEAD; i++) {
    if (i < mine) {
      if (i >= STAGES) wait_read<STAGES - AHEAD - 1>(); // store of i - STAGES is read: groups committed so far i-AHEAD
      int s = i % STAGES;
      mb_expect(&full[s], SZ);
      ld(buf + (size_t)s * SZ, from + (blockIdx.x + i * gridDim.x) * SZ, SZ, &full[s]);
    }
    long long k = i - AHEAD;
    if (k >= 0) {
      int s = k % STAGES;
      mb_wait(&full[s], (k / STAGES) & 1);
      st(to + (blockIdx.x + k * gridDim.x) * SZ, buf + (size_t)s * SZ, SZ);
      commit();
    }
  }
  wait_all();
}
// reduce: a += b, result to own (a) and, if remote, there. 
template <int STAGES> __global__ void __launch_bounds__(512) reduce(char* a, const char* b, char* remote, long long n, int SZ) {
  extern __shared__ __align__(128) char buf[]; // STAGES * 2 * SZ
  __shared__ uint64_t full[STAGES];
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; i++) mb_init(&full[i], 1);
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  __syncthreads();
  long long tiles = n / SZ, mine = (tiles - blockIdx.x + gridDim.x - 1) / gridDim.x;
  constexpr int AHEAD = STAGES - 1;
  for (long long i = 0; i < mine + AHEAD; i++) {
    if (i < mine && threadIdx.x == 0) {
      wait_read<0>(); // of tile i - AHEAD - 1 and before
      int s = i % STAGES;
      mb_expect(&full[s], 2 * SZ);
      long long at = (blockIdx.x + i * gridDim.x) * SZ;
      ld(buf + (size_t)s * 2 * SZ, a + at, SZ, &full[s]);
      ld(buf + (size_t)s * 2 * SZ + SZ, b + at, SZ, &full[s]);
    }
    long long k = i - AHEAD;
    if (k >= 0) {
      int s = k % STAGES;
      mb_wait(&full[s], (k / STAGES) & 1);
      float4* x = (float4*)(buf + (size_t)s * 2 * SZ);
      const float4* y = (const float4*)(buf + (size_t)s * 2 * SZ + SZ);
      for (int j = threadIdx.x; j < SZ / 16; j += blockDim.x) {
        float4 p = x[j], q = y[j];
        p.x = (p.x + q.x) * .5f; p.y = (p.y + q.y) * .5f; p.z = (p.z + q.z) * .5f; p.w = (p.w + q.w) * .5f;
        x[j] = p;
      }
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      __syncthreads();
      if (threadIdx.x == 0) {
        long long at = (blockIdx.x + k * gridDim.x) * SZ;
        if (remote) st(remote + at, x, SZ);
        st(a + at, x, SZ);
        commit();
      }
    }
  }
  if (threadIdx.x == 0) wait_all();
}
// the same by plain loads
template <int U> __global__ void __launch_bounds__(512) plain(float4* a, const float4* b, float4* remote, long long n) {
  long long vec = n / 16, step = (long long)gridDim.x * blockDim.x;
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i + (U - 1) * step < vec; i += U * step) {
    float4 p[U], q[U];
#pragma unroll
    for (int u = 0; u < U; u++) { p[u] = __ldcs(a + i + u * step); q[u] = __ldcs(b + i + u * step); }
#pragma unroll
    for (int u = 0; u < U; u++) {
      p[u].x = (p[u].x + q[u].x) * .5f; p[u].y = (p[u].y + q[u].y) * .5f; p[u].z = (p[u].z + q[u].z) * .5f; p[u].w = (p[u].w + q[u].w) * .5f;
      if (remote) remote[i + u * step] = p[u];
      a[i + u * step] = p[u];
    }
  }
}
template <int U> __global__ void __launch_bounds__(512) plain_push(float4* to, const float4* from, long long n) {
  long long vec = n / 16, step = (long long)gridDim.x * blockDim.x;
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i + (U - 1) * step < vec; i += U * step) {
    float4 p[U];
#pragma unroll
    for (int u = 0; u < U; u++) p[u] = from[i + u * step];
#pragma unroll
    for (int u = 0; u < U; u++) to[i + u * step] = p[u];
  }
}

int main() {
  int gpus; CK(cudaGetDeviceCount(&gpus));
  if (gpus > 2) gpus = 2;
  const long long N = 256LL << 20;
  char *a[2], *b[2], *r[2]; cudaStream_t s[2]; cudaEvent_t e0[2], e1[2];
  for (int g = 0; g < gpus; g++) {
    CK(cudaSetDevice(g)); if (gpus > 1) CK(cudaDeviceEnablePeerAccess(1 - g, 0));
    CK(cudaMalloc(&a[g], N)); CK(cudaMalloc(&b[g], N)); CK(cudaMalloc(&r[g], N));
    CK(cudaMemset(a[g], 0, N)); CK(cudaMemset(b[g], 0, N)); CK(cudaMemset(r[g], 0, N));
    CK(cudaStreamCreate(&s[g])); CK(cudaEventCreate(&e0[g])); CK(cudaEventCreate(&e1[g]));
    for (auto f : {(const void*)push<12>, (const void*)push<6>, (const void*)reduce<3>, (const void*)reduce<6>}) CK(cudaFuncSetAttribute(f, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10));
  }
  int p = gpus - 1;
  auto timed = [&](const char* name, int blocks, auto f) {
    float best = 1e9;
    for (int rep = 0; rep < 4; rep++) {
      for (int g = 0; g < gpus; g++) { CK(cudaSetDevice(g)); CK(cudaDeviceSynchronize()); }
      for (int g = 0; g < gpus; g++) { CK(cudaSetDevice(g)); CK(cudaEventRecord(e0[g], s[g])); f(g); CK(cudaGetLastError()); CK(cudaEventRecord(e1[g], s[g])); }
      float worst = 0;
      for (int g = 0; g < gpus; g++) { CK(cudaSetDevice(g)); CK(cudaEventSynchronize(e1[g])); float t; CK(cudaEventElapsedTime(&t, e0[g], e1[g])); if (t > worst) worst = t; }
      if (rep && worst < best) best = worst;
    }
    printf("%-34s blocks %3d: %8.1f us per 32 MiB, %6.1f GB/s\n", name, blocks, best * 1e3 / 8, N / best / 1e6);
    fflush(stdout);
  };
  for (int blocks : {1, 2, 4, 8, 16, 24, 32, 64, 132}) {
    timed("push tma 12x16K", blocks, [&](int g) { push<12><<<blocks, 32, 192 << 10, s[g]>>>(r[p - g * p], a[g], N, 16 << 10); });
    timed("push tma 6x32K", blocks, [&](int g) { push<6><<<blocks, 32, 192 << 10, s[g]>>>(r[p - g * p], a[g], N, 32 << 10); });
    timed("push tma 12x4K", blocks, [&](int g) { push<12><<<blocks, 32, 48 << 10, s[g]>>>(r[p - g * p], a[g], N, 4 << 10); });
    timed("push plain 8", blocks, [&](int g) { plain_push<8><<<blocks, 512, 0, s[g]>>>((float4*)r[p - g * p], (float4*)a[g], N); });
  }
  for (int blocks : {1, 2, 4, 8, 16, 24, 32}) {
    timed("reduce tma 6x16K own", blocks, [&](int g) { reduce<6><<<blocks, 512, 192 << 10, s[g]>>>(a[g], b[g], nullptr, N, 16 << 10); });
    timed("reduce tma 3x32K own", blocks, [&](int g) { reduce<3><<<blocks, 512, 192 << 10, s[g]>>>(a[g], b[g], nullptr, N, 32 << 10); });
    timed("reduce tma 6x16K own+remote", blocks, [&](int g) { reduce<6><<<blocks, 512, 192 << 10, s[g]>>>(a[g], b[g], r[p - g * p], N, 16 << 10); });
    timed("reduce plain 4 own", blocks, [&](int g) { plain<4><<<blocks, 512, 0, s[g]>>>((float4*)a[g], (float4*)b[g], nullptr, N); });
    timed("reduce plain 8 own", blocks, [&](int g) { plain<8><<<blocks, 512, 0, s[g]>>>((float4*)a[g], (float4*)b[g], nullptr, N); });
    timed("reduce plain 4 own+remote", blocks, [&](int g) { plain<4><<<blocks, 512, 0, s[g]>>>((float4*)a[g], (float4*)b[g], (float4*)r[p - g * p], N); });
    timed("copy engine beside reduce tma", blocks, [&](int g) { reduce<6><<<blocks, 512, 192 << 10, s[g]>>>(a[g], b[g], nullptr, N, 16 << 10); });
  }
  for (int g = 0; g < gpus; g++) { CK(cudaSetDevice(g)); CK(cudaDeviceSynchronize()); }
  timed("copy engine", 0, [&](int g) { CK(cudaMemcpyAsync(r[p - g * p], a[g], N, cudaMemcpyDeviceToDevice, s[g])); });
}
