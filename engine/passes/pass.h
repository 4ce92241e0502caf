// A pass: a named function over the module. The pipeline (pipeline.h) runs an array of them.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/module.h"
#include "engine/ir/verify.h"

namespace capstan {

// What the optimizer pass builds the update program from: an optimizer row and its settings. The
// row takes (weight, grad, slots..., lr, [iteration], [grad_scale]) and returns (weight, slots...).
struct UpdateRule {
  std::string row;                 // "momentum_update"
  std::string attrs;               // its attributes but weight_decay: "{momentum=0.9}"
  std::vector<std::string> slots;  // "momentum"; zero at first
  bool takes_iteration = false;    // an i64 input: the number of finished updates
  double weight_decay = 0;
  std::vector<Role> no_decay;  // roles that weight_decay leaves alone
  // The row works on whole tensors: it takes `segment_ends`, and `adapt`, which is false for the
  // roles of no_decay unless adapt_all is set.
  bool layerwise = false;
  bool adapt_all = false;
  std::optional<double> clip_global_norm;
  std::optional<double> clip_norm;  // of each tensor
  std::optional<double> clip_value;
  // Parameters with a rate of their own: the first name that a parameter is or begins with (up to a
  // point) gives the factor.
  std::vector<std::pair<std::string, double>> lr_factors;
  // Moving averages of the weights, which evaluation reads: the share kept at each update.
  std::optional<double> ema_decay;
};

struct PassContext {
  const OpTable* ops = nullptr;
  UpdateRule update;
  // Parameters that are not trained.
  std::vector<std::string> frozen;
  // Ranks that each see a part of every batch.
  int64_t data_ranks = 1;
};

struct Pass {
  const char* name;
  Stage stage_in;
  Stage stage_out;
  // Returns whether the module changed; "unchanged" is checked by hash.
  absl::StatusOr<bool> (*fn)(Module& module, const PassContext& context);
};

// One file each, see there.
absl::StatusOr<bool> Simplify(Module& module, const PassContext& context);
absl::StatusOr<bool> Differentiate(Module& module, const PassContext& context);
absl::StatusOr<bool> DecomposeBatchNorm(Module& module, const PassContext& context);
absl::StatusOr<bool> AddOptimizer(Module& module, const PassContext& context);
absl::StatusOr<bool> AddAverages(Module& module, const PassContext& context);
absl::StatusOr<bool> ChooseLayout(Module& module, const PassContext& context);
absl::StatusOr<bool> Fuse(Module& module, const PassContext& context);

}  // namespace capstan
