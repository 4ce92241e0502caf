// For kernels that walk through memory instead of logical indices: whether a call's arguments lie
// in one order, or images in channels_last, and the smallest part worth a thread.
//
//   {.op = "add", .impl = "fast", ..., .supports = InOneOrder, .fn = AddKernel}
//
//   ParallelFor(context, n, kFlatGrain, [&](int64_t begin, int64_t end) { ... });
#pragma once

#include "engine/ir/op_def.h"

namespace capstan {

inline constexpr int64_t kFlatGrain = 16384;  // elements; about 10 us of work

// True where every argument of output 0's shape also has its order in memory. Arguments of other
// shapes (scalars) are not looked at.
bool InOneOrder(const OpCall& call);

// True where the elements lie as channels_last has them.
bool IsChannelsLast(const TensorType& type);
// True where those of every 4-d argument do.
bool ImagesAreChannelsLast(const OpCall& call);

}  // namespace capstan
