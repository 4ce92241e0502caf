// The command line of the data makers: one output folder and `--name=value` options.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace capstan {

struct Arguments {
  std::string output;
  std::map<std::string, std::string, std::less<>> options;

  // The option, which must be one of the defaults given to ParseArguments, as a number of at least
  // `min`.
  absl::StatusOr<int64_t> Number(std::string_view name, int64_t min) const;
};

// `defaults` lists all options. InvalidArgument for unknown ones and for a missing output folder.
absl::StatusOr<Arguments> ParseArguments(
    int argc, char** argv, const std::map<std::string, std::string, std::less<>>& defaults);

}  // namespace capstan
