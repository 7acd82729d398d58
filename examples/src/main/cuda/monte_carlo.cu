// Counts random points of the unit square that lie in the circle. Each thread has a stream of random numbers of its own
// (SplitMix64, started at a place that seed and stream decide) and a counter of its own.

__device__ __forceinline__ unsigned long long mix(unsigned long long z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

__device__ __forceinline__ double next(unsigned long long& state) {
  state += 0x9e3779b97f4a7c15ULL;
  return (mix(state) >> 11) * 0x1.0p-53;
}

extern "C" __global__ void count_hits(long long* hits, int streams, long long points, long long seed, int rank) {
  int stream = blockIdx.x * blockDim.x + threadIdx.x;
  if (stream >= streams) return;
  unsigned long long number = (unsigned long long)rank * streams + stream;
  unsigned long long state = mix(mix((unsigned long long)seed + 0x9e3779b97f4a7c15ULL) ^ mix(number + 1));
  long long own = points / streams + (stream < points % streams ? 1 : 0);
  long long count = 0;
  for (long long i = 0; i < own; i++) {
    double x = next(state);
    double y = next(state);
    if (x * x + y * y <= 1) count++;
  }
  hits[stream] = count;
}
