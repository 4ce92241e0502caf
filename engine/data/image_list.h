// `type: image_list`: a text file with a path and a class id a line, as ImageNet's lists.
//
//   train/n01440764/n01440764_10026.JPEG 0
//
// The last delimiter of a line splits it, so paths may hold blanks. A byte order mark, CRLF and
// blank lines are accepted. Lines at fault are gathered in refused(), before any picture is read.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/base/reflect.h"
#include "engine/data/image_dataset.h"

namespace capstan {

struct ImageListOptions {
  std::string root;
  std::string list;
  std::string delimiter = " ";
  std::string class_names;

  static constexpr auto Fields() {
    return std::array{
        Field<&ImageListOptions::root>("root", "folder that paths are relative to"),
        Field<&ImageListOptions::list>("list", "the text file, relative to root").Required(),
        Field<&ImageListOptions::delimiter>("delimiter", "what stands between path and class id"),
        Field<&ImageListOptions::class_names>(
            "class_names", "file with the names, relative to root: `0 tench, Tinca tinca` a line")};
  }
};

absl::StatusOr<std::unique_ptr<ImageDataset>> OpenImageList(const ImageListOptions& options,
                                                            int64_t model_classes);

}  // namespace capstan
