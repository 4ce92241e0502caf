// The persistent tensors of a training run by logical name: first values, and the way to and from
// checkpoints. Nothing here knows of buckets or memory formats beyond StateEntry.
#pragma once

#include <string>
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
// ("optimizer"). Gradients are made anew in every update.
enum class StateGroup : uint8_t { kNone, kWeights, kOptimizer };
StateGroup GroupOf(const StateEntry& entry);

// A named tensor in host memory, row-major whatever the device's order.
struct HostState {
  std::string name;
  HostTensor tensor;
};

// False where a float tensor in host memory holds a NaN or an infinity.
bool IsFinite(const TensorView& host);

// Copies of all entries of a group.
absl::StatusOr<std::vector<HostState>> ReadState(Executor& executor, StateGroup group);

// Sets one entry from a row-major host tensor of its shape and type.
absl::Status WriteState(Executor& executor, const StateEntry& entry, const TensorView& host);

// Sets all entries of a group from a checkpoint. Errors name the tensor and the checkpoint.
absl::Status RestoreState(Executor& executor, StateGroup group, const CheckpointReader& reader);
// "weights", "optimizer": the group's name in a checkpoint.
const char* NameOf(StateGroup group);

// A digest of all entries of both groups, bit for bit.
absl::StatusOr<uint64_t> DigestState(Executor& executor);

}  // namespace capstan
