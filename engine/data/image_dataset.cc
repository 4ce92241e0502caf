#include "engine/data/image_dataset.h"

#include "engine/base/status.h"
#include "engine/data/image_folder.h"
#include "engine/data/image_list.h"
#include "engine/data/synthetic.h"

namespace capstan {
namespace {

using Opened = absl::StatusOr<std::unique_ptr<ImageDataset>>;

struct DatasetRow {
  DataChoice choice;
  Opened (*open)(const AnyStruct& options, int64_t model_classes);
};

template <typename Options, Opened (*kOpen)(const Options&, int64_t)>
DatasetRow Row(const char* name, const char* doc) {
  return {{name, &TypeOf<Options>(), doc}, +[](const AnyStruct& options, int64_t model_classes) {
            return kOpen(options.As<Options>(), model_classes);
          }};
}

std::span<const DatasetRow> Rows() {
  static const DatasetRow kRows[] = {
      Row<ImageListOptions, OpenImageList>(
          "image_list", "pictures and class ids listed in a text file, one a line"),
      Row<ImageFolderOptions, OpenImageFolder>(
          "image_folder", "one folder a class; ids follow the folder names sorted by bytes"),
      Row<SyntheticOptions, OpenSynthetic>(
          "synthetic", "generated pictures, for trials and benchmarks without data"),
  };
  return kRows;
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

Opened OpenImageDataset(const Section& dataset, int64_t model_classes) {
  for (const DatasetRow& row : Rows()) {
    if (dataset.name == row.choice.name) return row.open(dataset.options, model_classes);
  }
  return InvalidArgument("no data set of pictures has the type '{}'", dataset.name);
}

}  // namespace capstan
