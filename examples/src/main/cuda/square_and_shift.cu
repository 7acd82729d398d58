// One GPU's part of an array: each element is squared, and its place in the whole array is added.

extern "C" __global__ void square_and_shift(const double* in, double* out, long long first, long long count) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    out[i] = in[i] * in[i] + (double)(first + i);
  }
}
