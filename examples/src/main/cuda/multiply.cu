// Rows of C = rows of A times B, all row by row. One thread for each element, which adds in the order in which the
// program's Java adds, so that the bits are the same.

extern "C" __global__ void multiply(const float* a, const float* b, float* c, int rows, int n) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= rows || column >= n) return;
  float sum = 0;
  for (int k = 0; k < n; k++) {
    sum += a[(long long)row * n + k] * b[(long long)k * n + column];
  }
  c[(long long)row * n + column] = sum;
}
