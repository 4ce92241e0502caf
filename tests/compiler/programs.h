// For tests of passes and plans: graphs from text, and what they compute.
//
//   Module m = ParseModule({{ProgramKind::kMicro, kText}});
//   const Results before = RunAll(m);
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/ir/module.h"
#include "engine/kernel/kernel_row.h"
#include "engine/plan/plan.h"

namespace capstan {

const OpTable& TestOps();
const KernelTable& TestKernels();

// Programs of these kinds from graph text; failures end the test.
Module ParseModule(const std::vector<std::pair<ProgramKind, std::string>>& programs);

// Values by name in logical order: outputs as "program/output", and states after the run.
using Results = std::map<std::string, std::vector<double>>;

// Plans the module, fills states and data inputs with numbers that depend on their names only, and
// runs every program once, in order. `impl`: kernels of that implementation only.
Results RunAll(const Module& module, const std::string& impl = "");

// Every name of `want` has near the same numbers in `got`.
void ExpectNear(const Results& want, const Results& got, double tolerance);

Plan PlanOf(const Module& module, const std::string& impl = "");

}  // namespace capstan
