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

constexpr size_t kFaultsShown = 10;

class ImageList final : public PictureSet {
 public:
  ImageList(const ImageListOptions& options, PictureTable table)
      : PictureSet(options.root, std::move(table)), list_(options.list) {}

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

// Why a line is refused, or "" with the length of its path and its label.
std::string ParseLine(std::string_view line, std::string_view delimiter, int64_t model_classes,
                      size_t* path_length, int32_t* label) {
  const size_t at = line.rfind(delimiter);
  const bool tab_would_do = delimiter != "\t" && line.find('\t') != std::string_view::npos;
  const char* hint = tab_would_do ? "; the line holds a tab: set delimiter: \"\\t\"" : "";
  if (at == std::string_view::npos) {
    return fmt::format("no delimiter {} between path and class id{}", Quote(delimiter), hint);
  }
  if (at == 0) return "no path before the class id";
  const std::string_view value = line.substr(at + delimiter.size());
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), *label);
  if (value.empty() || error != std::errc() || end != value.data() + value.size()) {
    return fmt::format("class id '{}' is not a whole number{}", value, hint);
  }
  if (*label < 0 || (model_classes > 0 && *label >= model_classes)) {
    const std::string range =
        model_classes > 0 ? fmt::format("0..{}", model_classes - 1) : "0, 1, 2, ...";
    return fmt::format("class id {} is outside {}", *label, range);
  }
  *path_length = at;
  return "";
}

}  // namespace

absl::StatusOr<std::unique_ptr<ImageDataset>> OpenImageList(const ImageListOptions& options,
                                                            int64_t model_classes) {
  if (options.delimiter.empty()) return InvalidArgument("delimiter: must not be empty");
  const std::string path = JoinPath(options.root, options.list);
  std::string text;
  RETURN_IF_ERROR(ReadFile(path, &text), "while opening the image list");

  PictureTable table;
  std::vector<std::string> faults;
  size_t fault_count = 0;
  int64_t max_label = -1;
  table.Reserve(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) + 1);
  ForEachLine(text, [&](int64_t number, std::string_view line) {
    // A blank after the id is never meant; one before it may belong to the path.
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
    if (line.empty()) return;
    size_t path_length = 0;
    int32_t label = 0;
    std::string fault = ParseLine(line, options.delimiter, model_classes, &path_length, &label);
    if (fault.empty()) {
      table.AddPart(static_cast<size_t>(line.data() - text.data()), path_length, label);
      max_label = std::max<int64_t>(max_label, label);
    } else if (++fault_count <= kFaultsShown) {
      faults.push_back(fmt::format("{}:{}: {}", path, number, fault));
    }
  });
  if (fault_count > 0) {
    std::string message = fmt::format("{}: {} line(s) cannot be used", path, fault_count);
    for (const std::string& fault : faults) message += "\n  " + fault;
    if (fault_count > faults.size()) {
      message += fmt::format("\n  and {} more", fault_count - faults.size());
    }
    return InvalidArgument("{}", message);
  }
  if (table.size() == 0) return InvalidArgument("{}: the image list is empty", path);

  std::vector<std::string> names;
  int64_t classes = max_label + 1;
  if (!options.class_names.empty()) {
    ASSIGN_OR_RETURN(names, ReadClassNames(JoinPath(options.root, options.class_names)));
    classes = std::max(classes, static_cast<int64_t>(names.size()));
  }
  table.SetText(std::move(text));
  auto set = std::make_unique<ImageList>(options, std::move(table));
  set->SetClasses(classes, std::move(names));
  return set;
}

}  // namespace capstan
