// Makes a set of JPEG pictures laid out as ImageNet is, whose classes a model can learn, for tests
// and benchmarks without a data set.
//
//   make_images data/small --classes=10 --train=100 --val=20 --size=256 --seed=0
//
// leaves train/n00000003/n00000003_17.JPEG, val/..., train_list.txt, val_list.txt, class_names.txt.
// A picture shows the plane waves of its class through noise; its shorter side has `size` pixels.
#include <fmt/format.h>
#include <turbojpeg.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/status.h"
#include "engine/data/synthetic.h"
#include "tools/data/arguments.h"
#include "tools/data/write_file.h"

namespace capstan {
namespace {

namespace fs = std::filesystem;

// About as many bytes a pixel as photographs have.
constexpr int kQuality = 85;
constexpr double kNoise = 0.2;

struct Part {
  const char* name;
  int64_t per_class;
  int64_t first_sample;
};

class JpegEncoder {
 public:
  JpegEncoder() : handle_(tjInitCompress()) {
    CHECK(handle_ != nullptr) << tjGetErrorStr2(nullptr);
  }
  ~JpegEncoder() {
    tjFree(bytes_);
    tjDestroy(handle_);
  }
  JpegEncoder(const JpegEncoder&) = delete;
  JpegEncoder& operator=(const JpegEncoder&) = delete;

  // Valid until the next call.
  std::string_view Encode(const Image& image) {
    const int error = tjCompress2(handle_, image.pixels.data(), static_cast<int>(image.shape.width),
                                  0, static_cast<int>(image.shape.height), TJPF_RGB, &bytes_,
                                  &size_, TJSAMP_420, kQuality, 0);
    CHECK_EQ(error, 0) << tjGetErrorStr2(handle_);
    return {reinterpret_cast<const char*>(bytes_), size_};
  }

 private:
  tjhandle handle_;
  unsigned char* bytes_ = nullptr;
  unsigned long size_ = 0;  // NOLINT: TurboJPEG's type
};

std::string FolderOf(int64_t label) { return fmt::format("n{:08}", label); }

absl::Status Run(const Arguments& arguments) {
  ASSIGN_OR_RETURN(const int64_t classes, arguments.Number("classes", 1));
  ASSIGN_OR_RETURN(const int64_t train, arguments.Number("train", 0));
  ASSIGN_OR_RETURN(const int64_t val, arguments.Number("val", 0));
  ASSIGN_OR_RETURN(const int64_t size, arguments.Number("size", 8));
  ASSIGN_OR_RETURN(const int64_t seed, arguments.Number("seed", 0));

  // Square, lying and standing pictures of the same classes.
  const int64_t longer = size * 4 / 3;
  std::vector<std::unique_ptr<ImageDataset>> shapes;
  for (const auto& [height, width] : {std::pair(size, size), {size, longer}, {longer, size}}) {
    ASSIGN_OR_RETURN(auto set, OpenSynthetic({.classes = classes,
                                              .shape = {3, height, width},
                                              .samples = classes * (train + val),
                                              .noise = kNoise,
                                              .seed = seed},
                                             classes));
    shapes.push_back(std::move(set));
  }

  const fs::path output = arguments.output;
  RETURN_IF_ERROR(MakeFolder(output));
  JpegEncoder encoder;
  Image image;
  std::string unused;
  for (const Part& part : {Part{"train", train, 0}, Part{"val", val, classes * train}}) {
    std::string list;
    for (int64_t i = 0; i < part.per_class * classes; ++i) {
      const int64_t sample = part.first_sample + i, number = i / classes;
      const ImageDataset& set = *shapes[static_cast<size_t>(number) % shapes.size()];
      const std::string folder = FolderOf(set.Label(sample));
      const std::string path = fmt::format("{}/{}/{}_{}.JPEG", part.name, folder, folder, number);
      if (number == 0) RETURN_IF_ERROR(MakeFolder(output / part.name / folder));
      RETURN_IF_ERROR(set.Load(sample, &unused, &image));
      RETURN_IF_ERROR(WriteFile(output / path, encoder.Encode(image)));
      list += fmt::format("{} {}\n", path, set.Label(sample));
    }
    RETURN_IF_ERROR(WriteFile(output / fmt::format("{}_list.txt", part.name), list));
  }
  std::string names;
  for (int64_t label = 0; label < classes; ++label) {
    names += fmt::format("{} {}\n", label, FolderOf(label));
  }
  RETURN_IF_ERROR(WriteFile(output / "class_names.txt", names));
  fmt::print("{}: {} pictures to train on, {} to validate, {} classes\n", output.string(),
             train * classes, val * classes, classes);
  return absl::OkStatus();
}

}  // namespace
}  // namespace capstan

int main(int argc, char** argv) {
  const auto arguments = capstan::ParseArguments(
      argc, argv,
      {{"classes", "10"}, {"train", "100"}, {"val", "20"}, {"size", "256"}, {"seed", "0"}});
  const absl::Status status = arguments.ok() ? capstan::Run(*arguments) : arguments.status();
  if (status.ok()) return 0;
  fmt::print(stderr, "make_images: {}\n", capstan::MessageOf(status));
  if (status.code() != absl::StatusCode::kInvalidArgument) return 3;
  fmt::print(
      stderr,
      "usage: make_images OUTPUT_FOLDER [--classes=10] [--train=100] [--val=20] [--size=256] "
      "[--seed=0]\n(train and val: pictures of each class)\n");
  return 2;
}
