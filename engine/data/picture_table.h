// PictureTable: the paths and class ids of a large set of picture files, held compactly: one text
// with all paths and 16 bytes a sample.
//
// Filled by one thread, then read from any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/check.h"

namespace capstan {

class PictureTable {
 public:
  // Adds a path that is a part of the text, which may be set later.
  void AddPart(size_t begin, size_t length, int32_t label) {
    rows_.push_back({begin, static_cast<uint32_t>(length), label});
  }
  // Adds a path, which is copied to the end of the text.
  void AddCopy(std::string_view path, int32_t label) {
    AddPart(text_.size(), path.size(), label);
    text_ += path;
  }
  void SetText(std::string text) { text_ = std::move(text); }
  void Reserve(size_t rows) { rows_.reserve(rows); }

  int64_t size() const { return static_cast<int64_t>(rows_.size()); }
  std::string_view Path(int64_t i) const {
    return std::string_view(text_).substr(At(i).begin, At(i).length);
  }
  int64_t Label(int64_t i) const { return At(i).label; }
  // Where the path of a row begins in the text.
  size_t Begin(int64_t i) const { return At(i).begin; }
  const std::string& text() const { return text_; }

 private:
  struct Row {
    uint64_t begin;
    uint32_t length;
    int32_t label;
  };

  const Row& At(int64_t i) const {
    CHECK(i >= 0 && i < size()) << "sample " << i << " of " << size();
    return rows_[static_cast<size_t>(i)];
  }

  std::string text_;
  std::vector<Row> rows_;
};

}  // namespace capstan
