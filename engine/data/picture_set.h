// PictureSet: what the data sets of picture files share: a table of paths below a root folder.
#pragma once

#include <string>
#include <utility>

#include "engine/data/image_dataset.h"
#include "engine/data/picture_table.h"

namespace capstan {

class PictureSet : public ImageDataset {
 public:
  PictureSet(std::string root, PictureTable table)
      : root_(std::move(root)), table_(std::move(table)) {}

  int64_t size() const override { return table_.size(); }
  int64_t Label(int64_t index) const override { return table_.Label(index); }
  std::string Describe(int64_t index) const override { return std::string(table_.Path(index)); }
  absl::Status Load(int64_t index, std::string* bytes, Image* image) const override;

 protected:
  std::string root_;
  PictureTable table_;
};

}  // namespace capstan
