// Elements of host tensors as doubles in logical order, whatever their type and memory format.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/tensor/tensor_view.h"

namespace capstan {

std::vector<double> ValuesOf(const TensorView& view);
void SetValues(const TensorView& view, std::span<const double> values);

// A tensor with the same elements under another type or format of the same shape.
HostTensor Converted(const TensorView& from, const TensorType& type);

// Fails where |got - want| > tolerance * (largest |want| + 0.01), or at all for integers; NaN
// equals NaN. `name` says what is compared.
absl::Status CompareValues(const std::string& name, const TensorView& got, const TensorView& want,
                           double tolerance);

}  // namespace capstan
