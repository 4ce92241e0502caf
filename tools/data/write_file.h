// Writing files of generated data sets.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace capstan {

// Replaces the file as a whole: readers see the old content or the new one.
absl::Status WriteFile(const std::filesystem::path& path, std::string_view bytes);

// True when the file holds exactly `bytes`.
bool FileHolds(const std::filesystem::path& path, std::string_view bytes);

// Creates a folder and those above it.
absl::Status MakeFolder(const std::filesystem::path& path);

}  // namespace capstan
