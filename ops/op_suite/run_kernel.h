// Runs one kernel on host tensors as the executor would, and looks for what it must not do.
//
// The kernel runs twice, over different bytes in its outputs and workspace. An element that it
// leaves unwritten, or makes from memory that it never set, differs between the runs.
#pragma once

#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/kernel/kernel_row.h"
#include "engine/runtime/device.h"

namespace capstan {

struct RunOptions {
  // Where the kernel runs; null: on the CPU, in host memory.
  Device* device = nullptr;
  int threads = 1;
  // Outputs that share memory with an input.
  std::vector<InPlacePair> in_place;
  std::span<const ArgumentPlace> input_places = {};
  std::span<const ArgumentPlace> output_places = {};
};

// The outputs; opaque ones have exactly the bytes that the row asks for. An absent input has no
// data. Errors: the row's own, unwritten elements, writes behind an output or the workspace,
// changed inputs.
absl::StatusOr<std::vector<HostTensor>> RunKernel(const KernelRow& row, const OpCall& call,
                                                  std::span<const TensorView> inputs,
                                                  const RunOptions& options = {});

// Views of tensors; one without memory is an absent argument.
std::vector<TensorView> ViewsOf(std::span<const HostTensor> tensors);
HostTensor CopyOf(const TensorView& view);

}  // namespace capstan
