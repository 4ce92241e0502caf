// `_base_: other.yaml`: a job that starts from another file. Maps are merged key by key, at any
// depth; anything else of the job replaces what the base has, and an empty value removes it.
// The base itself may have no base. Every value keeps the file and line it was written at.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/config/diagnostics.h"
#include "engine/config/yaml_tree.h"

namespace capstan {

// Merges the file that `_base_` names, relative to the folder of `file`, below the root and removes
// the key. Does nothing where there is no such key.
void MergeBase(const std::string& file, YamlNode* root, Diagnostics* diagnostics);

// The bytes of a file. NotFound or FailedPrecondition name it.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

}  // namespace capstan
