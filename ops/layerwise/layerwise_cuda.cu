// CUDA kernels: segments are cut into blocks of a fixed size; a first kernel writes the sums of
// squares of each, a second adds those of each segment up to its rate, a third makes the new
// weights. The blocks lie in device memory from planning on.
#include "engine/kernel/strided.h"
#include "ops/cuda/reduce.cuh"
#include "ops/cuda/update.cuh"
#include "ops/layerwise/layerwise_step.h"

namespace capstan {
namespace {

using Views = std::span<const TensorView>;

constexpr int64_t kBlockElements = 8192;

struct Sums {
  double weights, steps;
};

// In device memory: the blocks of all segments, and of each segment the number of its first block;
// the last one's end behind them.
class SegmentTable {
 public:
  ~SegmentTable() {
    cudaFree(blocks_);
    cudaFree(first_);
  }

  absl::Status Fill(const std::vector<int64_t>& segment_ends) {
    const std::vector<SegmentBlock> blocks = CutSegments(segment_ends, kBlockElements);
    std::vector<int64_t> first;
    for (size_t b = 0; b < blocks.size(); ++b) {
      if (b == 0 || blocks[b].segment != blocks[b - 1].segment) {
        first.push_back(static_cast<int64_t>(b));
      }
    }
    block_count_ = static_cast<int64_t>(blocks.size());
    segments_ = static_cast<int64_t>(first.size());
    first.push_back(block_count_);
    RETURN_IF_ERROR(Copy(blocks, &blocks_));
    return Copy(first, &first_);
  }

  int64_t block_count() const { return block_count_; }
  int64_t segments() const { return segments_; }
  const SegmentBlock* blocks() const { return blocks_; }
  const int64_t* first() const { return first_; }

 private:
  template <typename T>
  static absl::Status Copy(const std::vector<T>& from, T** to) {
    const size_t bytes = from.size() * sizeof(T);
    RETURN_IF_CUDA_ERROR(cudaMalloc(reinterpret_cast<void**>(to), bytes));
    RETURN_IF_CUDA_ERROR(cudaMemcpy(*to, from.data(), bytes, cudaMemcpyHostToDevice));
    return absl::OkStatus();
  }

  int64_t block_count_ = 0, segments_ = 0;
  SegmentBlock* blocks_ = nullptr;
  int64_t* first_ = nullptr;
};

template <typename Attrs>
absl::StatusOr<std::shared_ptr<const void>> MakeTable(const OpCall& call, DeviceLibraries*) {
  const auto table = std::make_shared<SegmentTable>();
  RETURN_IF_ERROR(table->Fill(call.Attrs<Attrs>().segment_ends));
  return std::shared_ptr<const void>(table);
}

// The sums of all blocks, then the rates of all segments.
int64_t Workspace(const OpCall&, const void* prepared) {
  const auto& table = *static_cast<const SegmentTable*>(prepared);
  return table.block_count() * static_cast<int64_t>(sizeof(Sums)) +
         table.segments() * static_cast<int64_t>(sizeof(double));
}

// What a step is made of; its scalars are read on the device.
template <typename Step>
struct StepParts {
  typename Step::Buckets buckets;
  typename Step::Factors factors;
  DeviceScalar lr, scale;
  const int64_t* iteration;

  StepParts(Views outputs, Views inputs, const typename Step::Attrs& attrs)
      : buckets(outputs, inputs),
        factors(attrs),
        lr(inputs[Step::kLr]),
        scale(inputs, Step::kScale),
        iteration(Step::kIteration > 0 ? CudaData<const int64_t>(inputs[Step::kIteration])
                                       : nullptr) {}

  __device__ Step Make() const {
    return Step(buckets, factors, lr.Read(), iteration == nullptr ? 0 : *iteration, scale.Read());
  }
};

// Grid: one block for each block of elements; it reads them once.
template <typename Step>
__global__ void SumSquares(StepParts<Step> parts, const SegmentBlock* blocks, Sums* sums) {
  __shared__ double of_weights[kWarp], of_steps[kWarp];
  const Step step = parts.Make();
  const SegmentBlock block = blocks[blockIdx.x];
  Sums sum = {0, 0};
  for (int64_t i = block.begin + threadIdx.x; i < block.end; i += blockDim.x) {
    step.Prepare(i, &sum.weights, &sum.steps);
  }
  sum = {BlockSum(sum.weights, of_weights), BlockSum(sum.steps, of_steps)};
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// Grid: one warp for each segment.
template <typename Step, typename T>
__global__ void SetRates(StepParts<Step> parts, int64_t segments, const int64_t* first,
                         const Sums* sums, T* rates) {
  const int64_t segment = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp;
  if (segment >= segments) return;
  const Step step = parts.Make();
  Sums sum = {0, 0};
  for (int64_t b = first[segment] + threadIdx.x % kWarp; b < first[segment + 1]; b += kWarp) {
    sum.weights += sums[b].weights;
    sum.steps += sums[b].steps;
  }
  sum = {WarpSum(sum.weights), WarpSum(sum.steps)};
  if (threadIdx.x % kWarp == 0) rates[segment] = step.RateOf(sum.weights, sum.steps);
}

// Grid: as SumSquares.
template <typename Step, typename T>
__global__ void ApplyRates(StepParts<Step> parts, const SegmentBlock* blocks, const T* rates) {
  const Step step = parts.Make();
  const SegmentBlock block = blocks[blockIdx.x];
  const T rate = rates[block.segment];
  for (int64_t i = block.begin + threadIdx.x; i < block.end; i += blockDim.x) step.Apply(i, rate);
}

template <template <typename> class Step>
void UpdateKernel(KernelContext& context, Views outputs, Views inputs, const AnyStruct& any) {
  const auto& table = context.Prepared<SegmentTable>();
  auto* sums = static_cast<Sums*>(context.workspace);
  const auto blocks = static_cast<unsigned>(table.block_count());
  if (blocks == 0) return;
  ForFloat(outputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    auto* rates = reinterpret_cast<T*>(sums + table.block_count());
    const StepParts<Step<T>> parts(outputs, inputs, any.As<typename Step<T>::Attrs>());
    Launch(context, blocks, kBlock, SumSquares<Step<T>>, parts, table.blocks(), sums);
    Launch(context, static_cast<unsigned>((table.segments() * kWarp + kBlock - 1) / kBlock), kBlock,
           SetRates<Step<T>, T>, parts, table.segments(), table.first(), sums, rates);
    Launch(context, blocks, kBlock, ApplyRates<Step<T>, T>, parts, table.blocks(), rates);
  });
}

template <template <typename> class Step>
KernelRow Row(const char* op) {
  KernelRow row = UpdateCudaRow(op, UpdateKernel<Step>);
  row.prepare = MakeTable<typename Step<float>::Attrs>;
  row.workspace_bytes = Workspace;
  return row;
}

}  // namespace

std::vector<KernelRow> LayerwiseCudaKernels() {
  return {Row<LambStep>("lamb_update"), Row<LarsStep>("lars_update")};
}

}  // namespace capstan
