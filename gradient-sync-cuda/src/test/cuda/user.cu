// A user's kernels: one parameter of every kind that CudaKernel passes, one that takes its time, and one of three
// dimensions with shared memory.

extern "C" __global__ void every(double* out, signed char b, short s, int i, float f, signed char b2, double d,
                                 long long l, const float* in, long long count) {
  long long index = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) {
    out[index] = b + 2.0 * s + 3.0 * i + 4.0 * f + 5.0 * b2 + 6.0 * d + 7.0 * l + in[index];
  }
}

// Adds one to each element, after having waited for some cycles of the GPU's clock.
extern "C" __global__ void slow(int* data, int count, long long cycles) {
  long long start = clock64();
  while (clock64() - start < cycles) {
  }
  int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) {
    data[index] += 1;
  }
}

// Every thread tells its place, by way of shared memory.
extern "C" __global__ void places(int* out) {
  extern __shared__ int shared[];
  int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  int threads = blockDim.x * blockDim.y * blockDim.z;
  shared[thread] = block * threads + thread;
  __syncthreads();
  out[block * threads + thread] = shared[threads - 1 - thread];
}

extern "C" __global__ void nothing() {}
