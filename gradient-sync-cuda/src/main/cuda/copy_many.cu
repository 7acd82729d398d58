// Copies many buffers in one launch, as packing small buffers into a large one takes it.

#include "copy.cuh"

constexpr int MAX_COPIES = 146; // what fits in the 4 KiB of a kernel's arguments
constexpr int TILE = 32 << 10;  // bytes that a block copies

// CopyKernel.java knows this layout. Addresses and sizes are even, as those of all elements are.
struct Copies {
  const char* sources[MAX_COPIES];
  char* targets[MAX_COPIES];
  long long bytes[MAX_COPIES];
  int first[MAX_COPIES]; // block of each copy
  int copies;
};
static_assert(sizeof(Copies) <= 4096, "");

// One block for each tile of each copy, so that all SMs have the same to do, whatever the sizes.
extern "C" __global__ void __launch_bounds__(256) copy_many(const __grid_constant__ Copies c) {
  int low = 0, high = c.copies; // of the copies that this block's may be
  while (high - low > 1) {
    int middle = (low + high) / 2;
    if (c.first[middle] <= (int)blockIdx.x) {
      low = middle;
    } else {
      high = middle;
    }
  }
  long long at = (long long)(blockIdx.x - c.first[low]) * TILE;
  copy_bytes(c.targets[low] + at, c.sources[low] + at, min(c.bytes[low] - at, (long long)TILE), threadIdx.x, blockDim.x);
}
