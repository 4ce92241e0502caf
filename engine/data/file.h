// Reading a whole file into memory.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace capstan {

// Replaces *bytes by the content of the file `path`, keeping the memory of *bytes where it
// suffices. Errors name the path and the system's reason.
absl::Status ReadFile(const std::string& path, std::string* bytes);

// `path` itself where it is absolute, else `path` below `root`.
std::string JoinPath(const std::string& root, const std::string& path);

}  // namespace capstan
