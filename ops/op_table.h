// Every operator and every kernel of this build. The implementation is generated from
// ops/op_list.bzl.
#pragma once

#include <vector>

#include "engine/ir/op_def.h"
#include "engine/kernel/kernel_row.h"

namespace capstan {

std::vector<const OpDef*> AllOps();
std::vector<KernelRow> AllKernels();

}  // namespace capstan
