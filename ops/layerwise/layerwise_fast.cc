// Vectorised kernels on all threads: segments are cut into blocks of a fixed size, whose sums of
// squares are added up in order, so that results do not depend on the number of threads.
#include "ops/layerwise/layerwise_step.h"

namespace capstan {
namespace {

constexpr int64_t kBlock = 8192;  // elements

// What the workspace holds of each block: its sums, then its segment's rate in the first of them.
struct Sums {
  double weights, steps;
};

struct Blocks {
  std::vector<SegmentBlock> all;
};

template <typename Attrs>
absl::StatusOr<std::shared_ptr<const void>> CutBlocks(const OpCall& call, DeviceLibraries*) {
  const auto blocks =
      std::make_shared<Blocks>(Blocks{CutSegments(call.Attrs<Attrs>().segment_ends, kBlock)});
  return std::shared_ptr<const void>(blocks);
}

int64_t SumsBytes(const OpCall&, const void* prepared) {
  const auto& blocks = *static_cast<const Blocks*>(prepared);
  return static_cast<int64_t>(blocks.all.size() * sizeof(Sums));
}

template <typename Step>
Sums SumBlock(const Step& step, const SegmentBlock& block) {
  double weights = 0, steps = 0;
#pragma omp simd reduction(+ : weights, steps)
  for (int64_t i = block.begin; i < block.end; ++i) step.Prepare(i, &weights, &steps);
  return {weights, steps};
}

template <typename Step>
void UpdateKernel(KernelContext& context, std::span<const TensorView> outputs,
                  std::span<const TensorView> inputs, const AnyStruct& any) {
  const Step step = StepOf<Step>(outputs, inputs, any.As<typename Step::Attrs>());
  const std::vector<SegmentBlock>& blocks = context.Prepared<Blocks>().all;
  const auto count = static_cast<int64_t>(blocks.size());
  const std::span<Sums> sums(static_cast<Sums*>(context.workspace), blocks.size());
  ParallelFor(context, count, 1, [&](int64_t begin, int64_t end) {
    for (auto b = static_cast<size_t>(begin); b < static_cast<size_t>(end); ++b) {
      sums[b] = SumBlock(step, blocks[b]);
    }
  });
  for (size_t first = 0; first < blocks.size();) {
    Sums total{0, 0};
    size_t last = first;
    for (; last < blocks.size() && blocks[last].segment == blocks[first].segment; ++last) {
      total.weights += sums[last].weights;
      total.steps += sums[last].steps;
    }
    const double rate = static_cast<double>(step.RateOf(total.weights, total.steps));
    for (; first < last; ++first) sums[first].weights = rate;
  }
  ParallelFor(context, count, 1, [&](int64_t begin, int64_t end) {
    for (auto b = static_cast<size_t>(begin); b < static_cast<size_t>(end); ++b) {
      const auto rate = static_cast<float>(sums[b].weights);
#pragma omp simd
      for (int64_t i = blocks[b].begin; i < blocks[b].end; ++i) step.Apply(i, rate);
    }
  });
}

template <typename Step>
KernelRow FastRow(const char* op) {
  return {.op = op,
          .impl = "fast",
          .priority = 10,
          .dtypes = {DType::kF32},
          .prepare = CutBlocks<typename Step::Attrs>,
          .workspace_bytes = SumsBytes,
          .fn = UpdateKernel<Step>};
}

}  // namespace

std::vector<KernelRow> LayerwiseFastKernels() {
  return {FastRow<LambStep<float>>("lamb_update"), FastRow<LarsStep<float>>("lars_update")};
}

}  // namespace capstan
