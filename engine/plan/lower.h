// Lowering: from the module to the plan. Chooses a kernel for every node, decides which values
// share memory, and places everything.
#pragma once

#include "absl/status/statusor.h"
#include "engine/ir/module.h"
#include "engine/kernel/kernel_row.h"
#include "engine/plan/plan.h"

namespace capstan {

struct LowerOptions {
  DeviceKind device = DeviceKind::kCpu;
  // Only kernels of this implementation ("reference"); empty: the best.
  std::string impl;
  // The device's, for KernelRow::prepare; the CPU has none.
  DeviceLibraries* libraries = nullptr;
};

// `kernels` must outlive the plan. NotFound where no kernel serves a node: it names the node and
// lists the kernels that exist.
absl::StatusOr<Plan> BuildPlan(const Module& module, const KernelTable& kernels,
                               const LowerOptions& options);

}  // namespace capstan
