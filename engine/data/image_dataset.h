// ImageDataset: pictures with class ids, by index. `OpenImageDataset` makes one from the `dataset`
// section of a job; label files are read and checked whole at that time.
//
// Immutable once open; Load may be called from several threads at once.
//
//   ASSIGN_OR_RETURN(auto set, OpenImageDataset({"image_list", AnyStruct::Of(options)}, 1000));
//   RETURN_IF_ERROR(set->Load(7, &bytes, &image));
#pragma once

#include <cstdint>
#include <map>
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

// Rows of a label file that give no sample.
struct RefusedRows {
  int64_t count = 0;
  std::map<std::string, int64_t> kinds;  // what is wrong -> rows
  std::vector<std::string> examples;     // "list.txt:37: why", the first kMaxExamples

  static constexpr size_t kMaxExamples = 1000;
};

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
  // Empty in a data set of OpenImageDataset.
  const RefusedRows& refused() const { return refused_; }

 protected:
  RefusedRows refused_;
  int64_t classes_ = 0;
  std::vector<std::string> class_names_;
};

// The choices of `dataset.*.type`.
std::span<const DataChoice> ImageDatasetChoices();

// The shape of the pictures of a set that generates them, so that they need no decoding; nothing
// for sets of files. Reads no file.
absl::StatusOr<std::optional<ImageShape>> GeneratedShape(const Section& dataset);

// `model_classes` is the number of classes that ids must stay below; 0 leaves it open. Errors name
// the rows that cannot be used, ten of them at most.
absl::StatusOr<std::unique_ptr<ImageDataset>> OpenImageDataset(const Section& dataset,
                                                               int64_t model_classes);

// The same, but rows that cannot be used are counted in refused() instead of being an error. All
// may be, so the set may have no sample.
absl::StatusOr<std::unique_ptr<ImageDataset>> OpenUsableRows(const Section& dataset,
                                                             int64_t model_classes);

}  // namespace capstan
