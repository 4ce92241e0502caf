// Batch normalisation over all dimensions but 1 (the channels): y = (x - mean) * invstd * scale +
// bias, invstd = 1 / sqrt(variance + epsilon). Source: Ioffe & Szegedy, ICML 2015.
//
// Training uses the batch's mean and biased variance and moves the running statistics: new =
// momentum * old + (1 - momentum) * batch, there with the unbiased variance. Evaluation uses the
// running statistics. `stats: local` means those of the rank's own samples, `global` those of the
// whole batch, for which batch_norm is written as stats + moments + apply before sharding (below).
//
//   {
//     auto scope = b.Enter("bn1");           // bn1.weight, .bias, .running_mean, .running_var
//     x = BatchNorm(b, x, {.momentum = 0.9});
//   }
#pragma once

#include <vector>

#include "engine/ir/builder.h"
#include "engine/kernel/kernel_row.h"

namespace capstan {

// Whose samples the statistics are over when a batch is split between ranks.
enum class BatchStats : uint8_t { kLocal, kGlobal };
constexpr std::array<const char*, 2> EnumNamesOf(BatchStats) { return {"local", "global"}; }

struct BatchNormAttrs {
  double momentum = 0.9;
  double epsilon = 1e-5;
  BatchStats stats = BatchStats::kLocal;
  bool relu = false;

  static constexpr auto Fields() {
    return std::array{
        Field<&BatchNormAttrs::momentum>("momentum", "share of the running statistics kept",
                                         Bounds{.min = 0, .max = 1}),
        Field<&BatchNormAttrs::epsilon>("epsilon", "added to the variance", kNonNegative),
        Field<&BatchNormAttrs::stats>("stats", "statistics of a rank's samples or of all ranks'"),
        Field<&BatchNormAttrs::relu>("relu", "max(y, 0) at the end (made by fusion)")};
  }
};

struct BatchNormGradAttrs {
  double epsilon = BatchNormAttrs{}.epsilon;
  BatchStats stats = BatchStats::kLocal;
  bool relu = false;

  static constexpr auto Fields() {
    return std::array{
        Field<&BatchNormGradAttrs::epsilon>("epsilon", "that of the forward row", kNonNegative),
        Field<&BatchNormGradAttrs::stats>("stats", "that of the forward row"),
        Field<&BatchNormGradAttrs::relu>("relu", "dy is set to zero first where y is not > 0")};
  }
};

struct BatchNormInferenceAttrs {
  double epsilon = BatchNormAttrs{}.epsilon;
  bool relu = false;

  static constexpr auto Fields() {
    return std::array{
        Field<&BatchNormInferenceAttrs::epsilon>("epsilon", "added to the variance", kNonNegative),
        Field<&BatchNormInferenceAttrs::relu>("relu", "max(y, 0) at the end (made by fusion)")};
  }
};

struct BatchNormInferenceGradAttrs {
  double epsilon = BatchNormAttrs{}.epsilon;

  static constexpr auto Fields() {
    return std::array{Field<&BatchNormInferenceGradAttrs::epsilon>(
        "epsilon", "that of the forward row", kNonNegative)};
  }
};

struct BatchNormMomentsAttrs {
  double momentum = BatchNormAttrs{}.momentum;
  double epsilon = BatchNormAttrs{}.epsilon;

  static constexpr auto Fields() {
    return std::array{
        Field<&BatchNormMomentsAttrs::momentum>("momentum", "share of the running statistics kept",
                                                Bounds{.min = 0, .max = 1}),
        Field<&BatchNormMomentsAttrs::epsilon>("epsilon", "added to the variance", kNonNegative)};
  }
};

// Of the parts that `stats: global` is written in.
struct BatchNormPartAttrs {
  bool relu = false;

  static constexpr auto Fields() {
    return std::array{Field<&BatchNormPartAttrs::relu>("relu", "that of the row it came from")};
  }
};

// (x, scale, bias, running_mean, running_var, residual?) -> y, mean, invstd, new_running_mean,
// new_running_var. The gradient of batch_norm takes (dy, x, scale, mean, invstd, y?).
extern const OpDef kBatchNorm;
extern const OpDef kBatchNormGrad;
// (x, scale, bias, running_mean, running_var, residual?) -> y; (dy, x, scale, running_mean,
// running_var) -> dx, dscale, dbias.
extern const OpDef kBatchNormInference;
extern const OpDef kBatchNormInferenceGrad;

// batch_norm{stats=global}(x, scale, bias, rm, rv, residual) is the same as
//   count, sum, squares = batch_norm_stats(x)                        summed over n: f64[c] each
//   mean, invstd, new_rm, new_rv = batch_norm_moments(rm, rv, count, sum, squares)
//   y = batch_norm_apply(x, scale, bias, mean, invstd, residual)
// and batch_norm_grad{stats=global}(dy, x, scale, mean, invstd, y) is the same as
//   dbias, dscale = batch_norm_grad_stats(dy, x, mean, invstd, y)     summed over n
//   dx = batch_norm_grad_apply(dy, x, scale, mean, invstd, count, dbias, dscale, y)
extern const OpDef kBatchNormStats;
extern const OpDef kBatchNormMoments;
extern const OpDef kBatchNormApply;
extern const OpDef kBatchNormGradStats;
extern const OpDef kBatchNormGradApply;

struct BatchNormOptions {
  double momentum = BatchNormAttrs{}.momentum;
  double epsilon = BatchNormAttrs{}.epsilon;
  BatchStats stats = BatchStats::kLocal;
  // First value of the weight; 0 makes a residual branch start as nothing.
  Init scale = Constant(1);
};

// x: [n, c, ...] -> the same shape. Makes the parameters `weight` and `bias` and the states
// `running_mean` and `running_var` in the current scope; in training also their updates.
ValueId BatchNorm(Builder& b, ValueId x, const BatchNormOptions& options = {});

std::vector<const OpDef*> BatchNormRows();
std::vector<KernelRow> BatchNormReferenceKernels();
std::vector<KernelRow> BatchNormFastKernels();
std::vector<KernelRow> BatchNormCudaKernels();  // in builds with CUDA

}  // namespace capstan
