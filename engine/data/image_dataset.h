// ImageDataset: pictures with class ids, by index. `OpenImageDataset` makes one from the `dataset`
// section of a job; label files are read and checked whole at that time.
//
// Immutable once open; Load may be called from several threads at once.
//
//   ASSIGN_OR_RETURN(auto set, OpenImageDataset({"image_list", AnyStruct::Of(options)}, 1000));
//   RETURN_IF_ERROR(set->Load(7, &bytes, &image));
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/reflect.h"
#include "engine/data/choice.h"
#include "engine/data/image.h"

namespace capstan {

class ImageDataset {
 public:
  virtual ~ImageDataset() = default;

  virtual int64_t size() const = 0;
  virtual int64_t Label(int64_t index) const = 0;
  // Where a sample comes from, for messages.
  virtual std::string Describe(int64_t index) const = 0;
  // The RGB picture, upright. `bytes` is room for the file's content, kept between calls.
  virtual absl::Status Load(int64_t index, std::string* bytes, Image* image) const = 0;
  // One more than the largest class id; for class folders and a file of names, their number.
  int64_t classes() const { return classes_; }
  // By class id; empty where the data set has no names.
  const std::vector<std::string>& class_names() const { return class_names_; }

 protected:
  int64_t classes_ = 0;
  std::vector<std::string> class_names_;
};

// The choices of `dataset.*.type`.
std::span<const DataChoice> ImageDatasetChoices();

// The shape of the pictures of a set that generates them, so that they need no decoding; nothing
// for sets of files. Reads no file.
absl::StatusOr<std::optional<ImageShape>> GeneratedShape(const Section& dataset);

// `model_classes` is the number of classes that ids must stay below; 0 leaves it open.
absl::StatusOr<std::unique_ptr<ImageDataset>> OpenImageDataset(const Section& dataset,
                                                               int64_t model_classes);

}  // namespace capstan
