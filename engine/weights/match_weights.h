// Which tensor of a weights file is which of a model: by name, through the model's tables, and by
// shape. Pure functions of names and shapes; nothing is read.
//
//   ASSIGN_OR_RETURN(const WeightMatch match, MatchWeights(file, wanted, row->weight_names()));
//   match.matched[0].entry;                                  // of file.entries()
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/tensor/tensor_type.h"
#include "engine/weights/weight_names.h"
#include "engine/weights/weights_file.h"

namespace capstan {

// Below this share of a model's tensors, or of the file's, the file is another network's.
inline constexpr double kLeastMatched = 0.9;

struct WantedWeight {
  std::string name;
  Shape shape;
};

struct MatchedWeight {
  size_t wanted = 0;  // index
  size_t entry = 0;   // index
  bool transposed = false;
  Shape stored;  // as in the file
};

struct WeightMatch {
  std::string family;                    // whose names they are
  std::vector<MatchedWeight> matched;    // to be loaded
  std::vector<MatchedWeight> differing;  // names match and shapes do not: left as they are
  std::vector<size_t> missing;           // wanted, not in the file
  std::vector<size_t> unexpected;        // in the file, not wanted
};

// Matches under each of `families` (one whose names are the model's own, where there is none) and
// takes the one with most matches, the first of equals. Prefixes that wrappers put before every
// name ("module.", "_orig_mod.") are dropped.
// InvalidArgument below kLeastMatched, with what is missing and superfluous; for a tensor that is
// wanted and unreadable; for two tensors with one name of ours.
absl::StatusOr<WeightMatch> MatchWeights(const WeightsFile& file,
                                         std::span<const WantedWeight> wanted,
                                         const std::vector<WeightNames>& families);

// What was not loaded, a line each: skipped tensors with both shapes, missing and unused names.
std::vector<std::string> ProblemsOf(const WeightMatch& match, const WeightsFile& file,
                                    std::span<const WantedWeight> wanted);

}  // namespace capstan
