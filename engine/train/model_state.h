// The persistent tensors of a training run by logical name: first values, and the way to and from
// checkpoints. Nothing here knows of buckets or memory formats beyond StateEntry.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "engine/checkpoint/checkpoint_reader.h"
#include "engine/runtime/executor.h"
#include "engine/tensor/tensor_view.h"

namespace capstan {

// Draws every parameter's first values, a function of (seed, name, logical index) only, and sets
// the other states to theirs.
absl::Status InitializeState(Executor& executor, uint64_t seed);

// Which entries a checkpoint holds: parameters and statistics ("weights"), optimizer state
// ("optimizer"), moving averages ("ema", under the names of what they follow). Gradients are made
// anew in every update.
enum class StateGroup : uint8_t { kNone, kWeights, kOptimizer, kEma };
inline constexpr std::array kSavedGroups = {StateGroup::kWeights, StateGroup::kOptimizer,
                                            StateGroup::kEma};
StateGroup GroupOf(const StateEntry& entry);

// Sets every moving average to what it follows: where a run begins to keep them.
absl::Status StartAverages(Executor& executor);

// A named tensor as the host sees it, in the device's order.
struct HostState {
  std::string name;  // in a checkpoint
  TensorView view;
  HostTensor copy;  // behind the view, where the device's memory is not the host's
};

// All entries of a group, valid until the next run: on the CPU nothing is copied.
absl::StatusOr<std::vector<HostState>> ReadState(Executor& executor, StateGroup group);

// The first of them that holds a NaN or an infinity, or null.
const HostState* FindNotFinite(const std::vector<HostState>& states);

// Sets one entry from a row-major host tensor of its shape and type.
absl::Status WriteState(Executor& executor, const StateEntry& entry, const TensorView& host);

// Sets all entries of a group from a checkpoint. Errors name the tensor and the checkpoint. With
// `absent`, slots of parameters that have none there keep their values, and are added to it.
absl::Status RestoreState(Executor& executor, StateGroup group, const CheckpointReader& reader,
                          std::vector<std::string>* absent = nullptr);
// "weights", "optimizer", "ema": the group's name in a checkpoint.
const char* NameOf(StateGroup group);

// The group that has the values of a weight that evaluation uses: "ema" where the checkpoint has
// an average of it, else "weights".
StateGroup EvaluatedGroup(const CheckpointReader& reader, std::string_view name);
// Sets parameters and statistics to these values.
absl::Status RestoreForEvaluation(Executor& executor, const CheckpointReader& reader);

// A digest of all entries of all groups, bit for bit; comparable between runs of one plan.
absl::StatusOr<uint64_t> DigestState(Executor& executor);

}  // namespace capstan
