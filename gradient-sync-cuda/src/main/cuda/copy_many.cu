// Copies many buffers in one launch, as packing small buffers into a large one takes it.

#include "copy.cuh"

constexpr int MAX_COPIES = 170; // what fits in the 4 KiB of a kernel's arguments

// CopyKernel.java knows this layout. Addresses and sizes are even, as those of all elements are.
struct Copies {
  const char* sources[MAX_COPIES];
  char* targets[MAX_COPIES];
  long long bytes[MAX_COPIES];
};
static_assert(sizeof(Copies) <= 4096, "");

// One row of blocks for each copy.
extern "C" __global__ void __launch_bounds__(256) copy_many(const __grid_constant__ Copies c) {
  long long thread = blockIdx.x * (long long)blockDim.x + threadIdx.x, threads = (long long)gridDim.x * blockDim.x;
  copy_bytes(c.targets[blockIdx.y], c.sources[blockIdx.y], c.bytes[blockIdx.y], thread, threads);
}
