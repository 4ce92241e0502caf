// Sums over all elements of one or several tensors, in double: blocks write parts, which a last one
// adds up in one order.
//
//   auto* parts = static_cast<double*>(context.workspace);        // kTotalParts for each AddTerms
//   AddTerms(context, n, Square<T>{x}, parts);                    // double operator()(int64_t i)
//   WriteTotal(context, kTotalParts, parts, y);
#pragma once

#include "ops/cuda/reduce.cuh"

namespace capstan {

inline constexpr int64_t kTotalParts = 264;

// Grid: kTotalParts blocks; block p writes the sum of its terms.
template <typename F>
__global__ void AddTermsOfBlocks(int64_t n, F f, double* parts) {
  __shared__ double shared[kWarp];
  double sum = 0;
  ForEachOnGrid(n, [&](int64_t i) { sum += f(i); });
  sum = BlockSum(sum, shared);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

// Grid: one block.
template <typename T>
__global__ void AddParts(int64_t n, const double* parts, T* y) {
  __shared__ double shared[kWarp];
  double sum = 0;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += parts[i];
  sum = BlockSum(sum, shared);
  if (threadIdx.x == 0) *y = static_cast<T>(sum);
}

// Writes kTotalParts sums of f(0), ..., f(n - 1).
template <typename F>
void AddTerms(KernelContext& context, int64_t n, const F& f, double* parts) {
  Launch(context, static_cast<unsigned>(kTotalParts), kBlock, AddTermsOfBlocks<F>, n, f, parts);
}

// *y = the sum of the parts.
template <typename T>
void WriteTotal(KernelContext& context, int64_t count, const double* parts, T* y) {
  Launch(context, 1, kBlock, AddParts<T>, count, parts, y);
}

// Workspace for that many tensors.
inline int64_t TotalBytes(size_t tensors) {
  return static_cast<int64_t>(tensors) * kTotalParts * static_cast<int64_t>(sizeof(double));
}

}  // namespace capstan
