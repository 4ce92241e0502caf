#include "engine/data/image_list.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "engine/base/status.h"
#include "engine/base/text.h"
#include "engine/data/class_names.h"
#include "engine/data/file.h"
#include "engine/data/picture_set.h"
#include "engine/data/text_lines.h"

namespace capstan {
namespace {

class ImageList final : public PictureSet {
 public:
  ImageList(const ImageListOptions& options, PictureTable table, RefusedRows refused)
      : PictureSet(options.root, std::move(table)), list_(options.list) {
    refused_ = std::move(refused);
  }

  std::string Describe(int64_t index) const override {
    const auto begin = table_.text().begin();
    const auto place = begin + static_cast<std::ptrdiff_t>(table_.Begin(index));
    return fmt::format("{} ({}:{})", table_.Path(index), list_, 1 + std::count(begin, place, '\n'));
  }

  void SetClasses(int64_t classes, std::vector<std::string> names) {
    classes_ = classes;
    class_names_ = std::move(names);
  }

 private:
  std::string list_;
};

struct RowFault {
  const char* kind = nullptr;  // null: none
  std::string problem;
};

// Why a line is refused, or the length of its path and its label.
RowFault ParseLine(std::string_view line, std::string_view delimiter, int64_t model_classes,
                   size_t* path_length, int32_t* label) {
  const size_t at = line.rfind(delimiter);
  const bool tab_would_do = delimiter != "\t" && line.find('\t') != std::string_view::npos;
  const char* hint = tab_would_do ? "; the line holds a tab: set delimiter: \"\\t\"" : "";
  if (at == std::string_view::npos) {
    return {"line without the delimiter",
            fmt::format("no delimiter {} between path and class id{}", Quote(delimiter), hint)};
  }
  if (at == 0) return {"line without a path", "no path before the class id"};
  const std::string_view value = line.substr(at + delimiter.size());
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), *label);
  if (value.empty() || error != std::errc() || end != value.data() + value.size()) {
    return {"class id that is no whole number",
            fmt::format("class id '{}' is not a whole number{}", value, hint)};
  }
  if (*label < 0 || (model_classes > 0 && *label >= model_classes)) {
    const std::string range =
        model_classes > 0 ? fmt::format("0..{}", model_classes - 1) : "0, 1, 2, ...";
    return {"class id out of range", fmt::format("class id {} is outside {}", *label, range)};
  }
  *path_length = at;
  return {};
}

}  // namespace

absl::StatusOr<std::unique_ptr<ImageDataset>> OpenImageList(const ImageListOptions& options,
                                                            int64_t model_classes) {
  if (options.delimiter.empty()) return InvalidArgument("delimiter: must not be empty");
  const std::string path = JoinPath(options.root, options.list);
  std::string text;
  RETURN_IF_ERROR(ReadFile(path, &text), "while opening the image list");

  PictureTable table;
  RefusedRows refused;
  int64_t max_label = -1;
  table.Reserve(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) + 1);
  ForEachLine(text, [&](int64_t number, std::string_view line) {
    // A blank after the id is never meant; one before it may belong to the path.
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
    if (line.empty()) return;
    size_t path_length = 0;
    int32_t label = 0;
    RowFault fault = ParseLine(line, options.delimiter, model_classes, &path_length, &label);
    if (fault.kind == nullptr) {
      table.AddPart(static_cast<size_t>(line.data() - text.data()), path_length, label);
      max_label = std::max<int64_t>(max_label, label);
      return;
    }
    ++refused.count;
    ++refused.kinds[fault.kind];
    if (refused.examples.size() < RefusedRows::kMaxExamples) {
      refused.examples.push_back(fmt::format("{}:{}: {}", path, number, fault.problem));
    }
  });
  if (table.size() + refused.count == 0) {
    return InvalidArgument("{}: the image list is empty", path);
  }

  std::vector<std::string> names;
  int64_t classes = max_label + 1;
  if (!options.class_names.empty()) {
    ASSIGN_OR_RETURN(names, ReadClassNames(JoinPath(options.root, options.class_names)));
    classes = std::max(classes, static_cast<int64_t>(names.size()));
  }
  table.SetText(std::move(text));
  auto set = std::make_unique<ImageList>(options, std::move(table), std::move(refused));
  set->SetClasses(classes, std::move(names));
  return set;
}

}  // namespace capstan
