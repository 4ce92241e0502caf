// Cuts host tensors into parts and puts parts together, along the ranges that a factor rule gives
// (factor_rule.h). Any element type and memory format; part and whole may differ in format.
//
//   CopyPart(whole, {.dim = 1, .ranges = {{0, 2}, {4, 2}}}, part);   // part has 4 there
#pragma once

#include "engine/shard/factor_rule.h"
#include "engine/tensor/tensor_view.h"

namespace capstan {

// Copies the elements of `whole` that the part has.
void CopyPart(const TensorView& whole, const ArgPart& which, const TensorView& part);
// Copies the part to its place in `whole`.
void PlacePart(const TensorView& part, const ArgPart& which, const TensorView& whole);
// total = combine(total, part), element by element; equal types.
void CombinePart(const TensorView& part, Combine combine, const TensorView& total);

}  // namespace capstan
