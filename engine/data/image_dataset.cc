#include "engine/data/image_dataset.h"

#include <algorithm>

#include "engine/base/status.h"
#include "engine/data/image_folder.h"
#include "engine/data/image_list.h"
#include "engine/data/synthetic.h"

namespace capstan {
namespace {

constexpr size_t kRowsShown = 10;

using Opened = absl::StatusOr<std::unique_ptr<ImageDataset>>;

struct DatasetRow {
  DataChoice choice;
  Opened (*open)(const AnyStruct& options, int64_t model_classes);
  absl::StatusOr<ImageShape> (*generated_shape)(const AnyStruct& options);  // null: sets of files
};

template <typename Options, Opened (*kOpen)(const Options&, int64_t)>
DatasetRow FileRow(const char* name, const char* doc) {
  return {{name, &TypeOf<Options>(), doc},
          +[](const AnyStruct& options, int64_t model_classes) {
            return kOpen(options.As<Options>(), model_classes);
          },
          nullptr};
}

template <typename Options, Opened (*kOpen)(const Options&, int64_t),
          absl::StatusOr<ImageShape> (*kShape)(const Options&)>
DatasetRow GeneratedRow(const char* name, const char* doc) {
  DatasetRow row = FileRow<Options, kOpen>(name, doc);
  row.generated_shape = +[](const AnyStruct& options) { return kShape(options.As<Options>()); };
  return row;
}

std::span<const DatasetRow> Rows() {
  static const DatasetRow kRows[] = {
      FileRow<ImageListOptions, OpenImageList>(
          "image_list", "pictures and class ids listed in a text file, one a line"),
      FileRow<ImageFolderOptions, OpenImageFolder>(
          "image_folder", "one folder a class; ids follow the folder names sorted by bytes"),
      GeneratedRow<SyntheticOptions, OpenSynthetic, SyntheticShape>(
          "synthetic", "generated pictures, for trials and benchmarks without data"),
  };
  return kRows;
}

absl::StatusOr<const DatasetRow*> FindRow(const Section& dataset) {
  for (const DatasetRow& row : Rows()) {
    if (dataset.name == row.choice.name) return &row;
  }
  return InvalidArgument("no data set of pictures has the type '{}'", dataset.name);
}

}  // namespace

std::span<const DataChoice> ImageDatasetChoices() {
  static const std::vector<DataChoice> kChoices = [] {
    std::vector<DataChoice> choices;
    for (const DatasetRow& row : Rows()) choices.push_back(row.choice);
    return choices;
  }();
  return kChoices;
}

absl::StatusOr<std::optional<ImageShape>> GeneratedShape(const Section& dataset) {
  ASSIGN_OR_RETURN(const DatasetRow* row, FindRow(dataset));
  if (row->generated_shape == nullptr) return std::nullopt;
  ASSIGN_OR_RETURN(const ImageShape shape, row->generated_shape(dataset.options));
  return shape;
}

Opened OpenUsableRows(const Section& dataset, int64_t model_classes) {
  ASSIGN_OR_RETURN(const DatasetRow* row, FindRow(dataset));
  return row->open(dataset.options, model_classes);
}

Opened OpenImageDataset(const Section& dataset, int64_t model_classes) {
  ASSIGN_OR_RETURN(std::unique_ptr<ImageDataset> set, OpenUsableRows(dataset, model_classes));
  const RefusedRows& refused = set->refused();
  if (refused.count == 0) return set;
  std::string message = fmt::format("{} line(s) cannot be used", refused.count);
  const size_t shown = std::min(refused.examples.size(), kRowsShown);
  for (size_t i = 0; i < shown; ++i) message += "\n  " + refused.examples[i];
  const int64_t more = refused.count - static_cast<int64_t>(shown);
  if (more > 0) message += fmt::format("\n  and {} more; `trainer check-data` shows them", more);
  return InvalidArgument("{}", message);
}

}  // namespace capstan
