// The losses that `loss: {name: ...}` may name, and their options.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "engine/base/reflect.h"

namespace capstan {

struct CrossEntropyOptions {
  double label_smoothing = 0;
  int64_t ignore_index = -100;
  double weight = 1;

  static constexpr auto Fields() {
    return std::array{
        Field<&CrossEntropyOptions::label_smoothing>(
            "label_smoothing", "share of each target spread evenly over all classes",
            Bounds{.min = 0, .max = 1}),
        Field<&CrossEntropyOptions::ignore_index>(
            "ignore_index", "targets of this value count neither in the sum nor in the divisor"),
        Field<&CrossEntropyOptions::weight>("weight", "factor of the loss in training", kPositive)};
  }
};

struct LossRow {
  const char* name;
  const TypeInfo* options;
  const char* doc;
};

std::span<const LossRow> LossRows();

// Plain cross-entropy: what evaluation measures where a job names no loss.
Section DefaultLoss();

}  // namespace capstan
