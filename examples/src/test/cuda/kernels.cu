__device__ long long place() { return (long long)blockIdx.x * blockDim.x + threadIdx.x; }

extern "C" __global__ void activate(float* x, long long count) {
  long long i = place();
  if (i < count) x[i] = tanhf(x[i]);
}

// Outputs become the loss's derivatives by them. The loss is half the squared error, summed over a row's outputs and
// averaged over the rows.
extern "C" __global__ void derive(float* output, const float* target, float factor, long long count) {
  long long i = place();
  if (i < count) output[i] = factor * (output[i] - target[i]);
}

// What comes back goes on through tanh, whose derivative is 1 - tanh * tanh.
extern "C" __global__ void back(float* delta, const float* activated, long long count) {
  long long i = place();
  if (i < count) delta[i] *= 1 - activated[i] * activated[i];
}

extern "C" __global__ void update(float* weight, const float* gradient, float rate, long long count) {
  long long i = place();
  if (i < count) weight[i] -= rate * gradient[i];
}
