// Comm: how the ranks of a group talk to each other. Handed in; there is no global group.
//
// Every rank of the group makes the same calls in the same order. Errors name the rank and the
// call.
#pragma once

#include <memory>
#include <span>

#include "absl/status/status.h"

namespace capstan {

class Comm {
 public:
  virtual ~Comm() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Sums element by element over the ranks, in the order of the ranks; all get the result.
  virtual absl::Status AllReduceSum(std::span<double> values) = 0;
};

// The group of one rank.
std::unique_ptr<Comm> MakeSingleComm();

}  // namespace capstan
