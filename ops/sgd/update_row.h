// What all optimizer rows share. Inputs: w, g, the row's slots, lr [], (iteration i64[]),
// grad_scale? []; outputs: the new w and the new slots. Everything but the scalars is a flat bucket
// of one length; outputs may be written over w and the slots.
//
//   absl::Status InferMomentum(OpCall& call) { return InferUpdate(call, /*slots=*/1); }
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/ir/op_def.h"
#include "engine/tensor/tensor_view.h"

namespace capstan {

absl::Status InferUpdate(OpCall& call, int slots);

// As InferUpdate for Adam's kind: w, g, mean, square, lr, iteration, grad_scale?.
absl::Status InferMomentsUpdate(OpCall& call, double beta1, double beta2);
// Example inputs of such a row, without grad_scale.
std::vector<ExampleInput> MomentsUpdateInputs(int64_t count, double iteration);

// That `ends`, where each tensor of a bucket ends, ascend to its number of elements.
absl::Status CheckSegments(const std::vector<int64_t>& ends, int64_t count);

// All buckets are split alike, scalars are whole.
std::string UpdateAxes(const OpCall& call);

// A float scalar; `absent` where the optional input is not given.
double ScalarOf(const TensorView& view, double absent = 1);

}  // namespace capstan
