// `type: image_folder`: one folder a class below `root`. Class ids follow the folder names sorted
// by bytes; hidden and empty folders are ignored; files may lie in folders below.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/base/reflect.h"
#include "engine/data/image_dataset.h"

namespace capstan {

struct ImageFolderOptions {
  std::string root;

  static constexpr auto Fields() {
    return std::array{
        Field<&ImageFolderOptions::root>("root", "the folder with the class folders").Required()};
  }
};

absl::StatusOr<std::unique_ptr<ImageDataset>> OpenImageFolder(const ImageFolderOptions& options,
                                                              int64_t model_classes);

}  // namespace capstan
