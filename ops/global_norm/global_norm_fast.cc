// Fast squared norm: blocks of a fixed size are summed on all threads, then the block sums in
// order, so that the result does not depend on the number of threads.
#include <algorithm>

#include "ops/global_norm/global_norm.h"

namespace capstan {
namespace {

constexpr int64_t kBlock = 8192;  // elements

int64_t Blocks(int64_t count) { return (count + kBlock - 1) / kBlock; }

// Room for the block sums of the largest input.
int64_t SquaredNormWorkspace(const OpCall& call, const void*) {
  int64_t most = 0;
  for (const auto& in : call.inputs) most = std::max(most, Blocks(in->count()));
  return most * static_cast<int64_t>(sizeof(double));
}

double BlockSum(const float* x, int64_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += double(x[i]) * double(x[i]);
  return sum;
}

void SquaredNormKernel(KernelContext& context, std::span<const TensorView> outputs,
                       std::span<const TensorView> inputs, const AnyStruct&) {
  auto* sums = static_cast<double*>(context.workspace);
  double total = 0;
  for (const TensorView& input : inputs) {
    const float* x = input.Data<float>();
    const int64_t count = input.type.count(), blocks = Blocks(count);
    ParallelFor(context, blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        sums[b] = BlockSum(x + b * kBlock, std::min(kBlock, count - b * kBlock));
      }
    });
    for (int64_t b = 0; b < blocks; ++b) total += sums[b];
  }
  *outputs[0].Data<float>() = static_cast<float>(total);
}

}  // namespace

std::vector<KernelRow> GlobalNormFastKernels() {
  return {{.op = "squared_norm",
           .impl = "fast",
           .priority = 10,
           .dtypes = {DType::kF32},
           .workspace_bytes = SquaredNormWorkspace,
           .fn = SquaredNormKernel}};
}

}  // namespace capstan
