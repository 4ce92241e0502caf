// The state arena: where every parameter and persistent value of a module lies.
#pragma once

#include <vector>

#include "engine/ir/module.h"
#include "engine/plan/plan.h"

namespace capstan {

// Entries of all programs' parameters and states, once each; those of buckets lie inside the flat
// entries. Sets *bytes to the size of the arena. CHECKs that programs agree on types.
std::vector<StateEntry> LayOutState(const Module& module, int64_t* bytes);

}  // namespace capstan
