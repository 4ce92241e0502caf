// Where a piece of a job was written, and the list of everything wrong with a job.
//
// Readers add what they find and carry on, so that one run shows all mistakes; ToStatus() orders
// them by place. One thread at a time.
//
//   Diagnostics diagnostics;
//   diagnostics.Add(node.at, "train.epochs", "0 is out of range; it must be at least 1");
//   diagnostics.ToStatus();   // "job.yaml:7:11: train.epochs: 0 is out of range; it must ..."
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace capstan {

// Line and column count from 1, columns in characters (not bytes). Line 0 is a place without
// lines: `file` alone says it ("-o train.epochs=3").
struct Position {
  std::string file;
  int line = 0;
  int column = 0;

  // "job.yaml:3:5", or `file` alone.
  std::string ToString() const;
  friend bool operator==(const Position&, const Position&) = default;
};

class Diagnostics {
 public:
  // `path` is the dotted path of the key, empty where the file itself is at fault.
  void Add(Position at, std::string path, std::string problem);
  bool empty() const { return items_.empty(); }

  // OK when empty. Else one line for each mistake, files before overrides, by line and column.
  absl::Status ToStatus() const;

 private:
  struct Item {
    Position at;
    std::string path;
    std::string problem;
  };
  std::vector<Item> items_;
};

// "a.b", or `key` alone below the root.
std::string JoinPath(std::string_view path, std::string_view key);

}  // namespace capstan
