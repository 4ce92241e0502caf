// Files of class names: `0 tench, Tinca tinca` a line, an id and a name after the first blank.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace capstan {

// Names by class id. Every id from 0 to the largest must be there once; errors name file and line.
absl::StatusOr<std::vector<std::string>> ReadClassNames(const std::string& path);

}  // namespace capstan
