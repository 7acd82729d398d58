// Reduces the ranks' contributions element by element, in rank order, with the bits that ReduceOp promises; converts; and
// adds up rows.

#include "arithmetic.cuh"

constexpr int MAX_RANKS = 256;

struct Arguments {
  const void* sources[MAX_RANKS];
  void* target;
  long long count;
  int ranks;         // of the sources
  int all;           // that AVERAGE divides by
  const void* running; // the reduction over the ranks before the sources, or null
};

// Goes on with the reduction over the ranks of other nodes, if there is one, which travels as it is accumulated.
template <class F, int OP> __device__ __forceinline__ typename F::Accumulated next(const Arguments& a, long long i) {
  using Stored = typename F::Stored;
  using Accumulated = typename F::Accumulated;
  Accumulated sum = F::load(static_cast<const Stored*>(a.sources[0])[i]);
  if (a.running) sum = combine<OP>(static_cast<const Accumulated*>(a.running)[i], sum);
  for (int rank = 1; rank < a.ranks; rank++) {
    sum = combine<OP>(sum, F::load(static_cast<const Stored*>(a.sources[rank])[i]));
  }
  return sum;
}

template <class F, int OP> __device__ __forceinline__ void accumulate(const Arguments& a) {
  long long stride = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < a.count; i += stride) {
    static_cast<typename F::Accumulated*>(a.target)[i] = next<F, OP>(a, i);
  }
}

template <class F, int OP> __device__ __forceinline__ void reduce(const Arguments& a) {
  long long stride = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < a.count; i += stride) {
    typename F::Accumulated sum = next<F, OP>(a, i);
    if (OP == AVERAGE) sum = divide(sum, a.all);
    static_cast<typename F::Stored*>(a.target)[i] = F::store(sum);
  }
}

// Between FLOAT32 and a 16-bit type, which is how gradients travel compressed.
template <class From, class To> __device__ __forceinline__ void convert(const Arguments& a) {
  const typename From::Stored* source = static_cast<const typename From::Stored*>(a.sources[0]);
  typename To::Stored* target = static_cast<typename To::Stored*>(a.target);
  long long stride = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < a.count; i += stride) {
    target[i] = To::store(From::load(source[i]));
  }
}

#define KERNEL(name, type, format, op) \
  extern "C" __global__ void __launch_bounds__(512) name##_##type##_##op(const __grid_constant__ Arguments a) { \
    name<format, op>(a); \
  }
#define ALL(type, format, op) \
  KERNEL(accumulate, type, format, op) KERNEL(reduce, type, format, op)
#define INTEGER(type, format) \
  ALL(type, format, SUM) ALL(type, format, MIN) ALL(type, format, MAX) ALL(type, format, PROD)
#define FLOATING(type, format) \
  INTEGER(type, format) KERNEL(reduce, type, format, AVERAGE)

FLOATING(FLOAT16, Half)
FLOATING(BFLOAT16, Brain)
FLOATING(FLOAT32, Plain<float>)
FLOATING(FLOAT64, Plain<double>)
INTEGER(INT32, Plain<int>)
INTEGER(INT64, Plain<long long>)

#define CONVERT(source, from, target, to) \
  extern "C" __global__ void __launch_bounds__(512) convert_##source##_##target(const __grid_constant__ Arguments a) { \
    convert<from, to>(a); \
  }
CONVERT(FLOAT32, Plain<float>, FLOAT16, Half)
CONVERT(FLOAT32, Plain<float>, BFLOAT16, Brain)
CONVERT(FLOAT16, Half, FLOAT32, Plain<float>)
CONVERT(BFLOAT16, Brain, FLOAT32, Plain<float>)

// Adds up rows. The sources are the rows, the numbers of those to add, and where each sum's begin; `ranks` is their width.
extern "C" __global__ void __launch_bounds__(512) sum_rows(const __grid_constant__ Arguments a) {
  const float* rows = static_cast<const float*>(a.sources[0]);
  const int* numbers = static_cast<const int*>(a.sources[1]);
  const int* starts = static_cast<const int*>(a.sources[2]);
  long long stride = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < a.count; i += stride) {
    long long row = i / a.ranks;
    long long column = i - row * a.ranks;
    float sum = 0;
    for (int k = starts[row]; k < starts[row + 1]; k++) {
      sum = add(sum, rows[(long long)numbers[k] * a.ranks + column]);
    }
    static_cast<float*>(a.target)[i] = sum;
  }
}
