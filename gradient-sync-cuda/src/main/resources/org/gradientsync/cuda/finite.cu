// Looks for NaN and infinities: elements whose exponents have all bits set. One of those that it finds is reported; in
// which buffer it was is for the host to know, by the number that it gave.

// As many as fit in 16 bytes are read at once where the buffer allows.
struct Report {
  unsigned long long found; // the host's number and the index, counted from 1, below it
  unsigned long long call;  // the host's number of the call; where it gave none, the time, which is larger than any
};

constexpr int INDEX_BITS = 43;

__device__ __forceinline__ void report(Report* to, unsigned long long number, unsigned long long call, long long index) {
  if (call == 0) asm volatile("mov.u64 %0, %globaltimer;" : "=l"(call));
  *reinterpret_cast<volatile unsigned long long*>(&to->found) = number << INDEX_BITS | (unsigned long long)(index + 1);
  __threadfence_system();
  *reinterpret_cast<volatile unsigned long long*>(&to->call) = call;
}

template <class Word>
__device__ __forceinline__ void look(const Word* x, long long count, Word mask, unsigned long long number, unsigned long long call,
                                     Report* to) {
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
      if ((word[k] & mask) == mask) report(to, number, call, head + i * SIZE + k);
    }
  }
  // What is left at both ends is less than a block.
  long long tail = head + vectors * SIZE;
  if (blockIdx.x == 0) {
    for (long long i = threadIdx.x; i < head; i += blockDim.x) {
      if ((x[i] & mask) == mask) report(to, number, call, i);
    }
    for (long long i = tail + threadIdx.x; i < count; i += blockDim.x) {
      if ((x[i] & mask) == mask) report(to, number, call, i);
    }
  }
}

struct Arguments {
  const void* elements;
  long long count;
  unsigned long long mask;
  unsigned long long number;
  unsigned long long call;
  Report* report;
};

extern "C" __global__ void finite_2(const __grid_constant__ Arguments a) {
  look(static_cast<const unsigned short*>(a.elements), a.count, (unsigned short)a.mask, a.number, a.call, a.report);
}
extern "C" __global__ void finite_4(const __grid_constant__ Arguments a) {
  look(static_cast<const unsigned*>(a.elements), a.count, (unsigned)a.mask, a.number, a.call, a.report);
}
extern "C" __global__ void finite_8(const __grid_constant__ Arguments a) {
  look(static_cast<const unsigned long long*>(a.elements), a.count, (unsigned long long)a.mask, a.number, a.call, a.report);
}
