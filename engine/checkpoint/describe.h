// What a checkpoint or a weights file holds, as text for people: names, shapes, dtypes, bytes,
// and whether the checksums hold. Reads only; safe from any thread.
//
//   ASSIGN_OR_RETURN(std::string text, DescribeCheckpoint("output/resnet50/checkpoints/latest"));
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace capstan {

// `path` is a checkpoint folder (or a link to one), a safetensors file or index, or an output
// folder, whose checkpoints are then listed. A damaged checkpoint is described as far as it can be
// read, and named damaged; only a path that is nothing of these is an error.
absl::StatusOr<std::string> DescribeCheckpoint(const std::string& path);

}  // namespace capstan
