// Checks that a graph is one, and that it has the invariants of its stage. Run after every pass.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "engine/ir/graph.h"

namespace capstan {

// Stages in the order in which compilation reaches them.
enum class Stage : uint8_t {
  kLogical,         // as the model wrote it
  kDifferentiated,  // gradients are there
  kOptimized,       // the update program is there
  kLowered,         // memory formats are chosen and rows are fused: ready to plan
};

const char* NameOf(Stage stage);

// InternalError naming the node where: an argument is made after its use or not at all; types
// differ from what infer gives; an update's types differ or its state is not persistent or is
// updated twice; two inputs share a name; a random stream serves two forward nodes; a memory format
// is chosen before kLowered, or a 4-d value of an image row is not channels_last from then on.
absl::Status VerifyGraph(const Graph& graph, Stage stage);

}  // namespace capstan
