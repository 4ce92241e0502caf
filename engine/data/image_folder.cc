#include "engine/data/image_folder.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/data/picture_set.h"

namespace capstan {
namespace {

namespace fs = std::filesystem;

class ImageFolder final : public PictureSet {
 public:
  ImageFolder(std::string root, PictureTable table, std::vector<std::string> names)
      : PictureSet(std::move(root), std::move(table)) {
    classes_ = static_cast<int64_t>(names.size());
    class_names_ = std::move(names);
  }
};

// Names in a folder that are not hidden, sorted by bytes.
absl::StatusOr<std::vector<std::string>> Names(const fs::path& folder) {
  std::error_code error;
  std::vector<std::string> names;
  fs::directory_iterator it(folder, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    std::string name = it->path().filename().string();
    if (!name.starts_with('.')) names.push_back(std::move(name));
  }
  if (error) return ErrnoStatus(error.value(), "read the folder " + folder.string());
  std::sort(names.begin(), names.end());
  return names;
}

// Paths of all files below `root`/`folder`, relative to `root`.
absl::Status Collect(const std::string& root, const std::string& folder,
                     std::vector<std::string>* paths) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, Names(fs::path(root) / folder));
  for (const std::string& name : names) {
    std::string path = folder + "/" + name;
    std::error_code ignored;
    if (fs::is_directory(fs::path(root) / path, ignored)) {
      RETURN_IF_ERROR(Collect(root, path, paths));
    } else {
      paths->push_back(std::move(path));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ImageDataset>> OpenImageFolder(const ImageFolderOptions& options,
                                                              int64_t model_classes) {
  ASSIGN_OR_RETURN(const std::vector<std::string> folders, Names(options.root),
                   "while opening the image folder");
  PictureTable table;
  std::vector<std::string> classes;
  for (const std::string& folder : folders) {
    std::error_code ignored;
    if (!fs::is_directory(fs::path(options.root) / folder, ignored)) continue;
    std::vector<std::string> paths;
    RETURN_IF_ERROR(Collect(options.root, folder, &paths));
    if (paths.empty()) continue;
    for (const std::string& path : paths) {
      table.AddCopy(path, static_cast<int32_t>(classes.size()));
    }
    classes.push_back(folder);
  }
  if (classes.empty()) {
    return InvalidArgument("{}: no class folder with a file in it", options.root);
  }
  const auto count = static_cast<int64_t>(classes.size());
  if (model_classes > 0 && count > model_classes) {
    return InvalidArgument("{}: {} class folders ('{}' to '{}'), but the model has {} classes",
                           options.root, count, classes.front(), classes.back(), model_classes);
  }
  return std::make_unique<ImageFolder>(options.root, std::move(table), std::move(classes));
}

}  // namespace capstan
