// Looks for NaN and infinities: elements whose exponents have all bits set. The index of one of those that it finds,
// counted from 1, is reported in page-locked memory.

// As many as fit in 16 bytes are read at once where the buffer allows.
template <class Word>
__device__ __forceinline__ void look(const Word* x, long long count, Word mask, volatile long long* found) {
  constexpr int SIZE = 16 / sizeof(Word);
  long long thread = blockIdx.x * (long long)blockDim.x + threadIdx.x, threads = (long long)gridDim.x * blockDim.x;
  long long head = (16 - (unsigned long long)x % 16) % 16 / sizeof(Word);
  if (head > count) head = count;
  long long vectors = (count - head) / SIZE;
  const uint4* whole = reinterpret_cast<const uint4*>(x + head);
  for (long long i = thread; i < vectors; i += threads) {
    uint4 v = whole[i];
    const Word* word = reinterpret_cast<const Word*>(&v);
#pragma unroll
    for (int k = 0; k < SIZE; k++) {
      if ((word[k] & mask) == mask) {
        *found = head + i * SIZE + k + 1;
        return;
      }
    }
  }
  // What is left at both ends is less than a block.
  long long tail = head + vectors * SIZE;
  if (blockIdx.x == 0) {
    for (long long i = threadIdx.x; i < head; i += blockDim.x) {
      if ((x[i] & mask) == mask) *found = i + 1;
    }
    for (long long i = tail + threadIdx.x; i < count; i += blockDim.x) {
      if ((x[i] & mask) == mask) *found = i + 1;
    }
  }
}

struct Arguments {
  const void* elements;
  long long count;
  unsigned long long mask;
  long long* found;
};

extern "C" __global__ void finite_2(const __grid_constant__ Arguments a) {
  look(static_cast<const unsigned short*>(a.elements), a.count, (unsigned short)a.mask, a.found);
}
extern "C" __global__ void finite_4(const __grid_constant__ Arguments a) {
  look(static_cast<const unsigned*>(a.elements), a.count, (unsigned)a.mask, a.found);
}
extern "C" __global__ void finite_8(const __grid_constant__ Arguments a) {
  look(static_cast<const unsigned long long*>(a.elements), a.count, (unsigned long long)a.mask, a.found);
}
