// Cuts the sheet of 5,000 handwritten digits that Debian's opencv-doc package brings into single
// pictures: 4,000 to train on and, of each class the last 100, 1,000 to test on.
//
//   make_digits data/digits
//
// leaves train/3/0123.png, test/3/0456.png, train_list.txt, test_list.txt and class_names.txt
// there. A folder that is complete already is left as it is.
#include <fmt/format.h>
#include <spng.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "engine/base/check.h"
#include "engine/base/status.h"
#include "engine/data/decode.h"
#include "engine/data/file.h"
#include "tools/data/arguments.h"
#include "tools/data/write_file.h"

namespace capstan {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSource = "/usr/share/doc/opencv-doc/examples/data/digits.png";
constexpr int kClasses = 10, kPerClass = 500, kTrainPerClass = 400;
constexpr int kSide = 20, kColumns = 100, kRows = 50;
constexpr const char* kNames[kClasses] = {"zero", "one", "two",   "three", "four",
                                          "five", "six", "seven", "eight", "nine"};

bool IsTraining(int number) { return number < kTrainPerClass; }

std::string PathOf(int label, int number) {
  return fmt::format("{}/{}/{:04}.png", IsTraining(number) ? "train" : "test", label, number);
}

std::string List(bool training) {
  std::string list;
  for (int label = 0; label < kClasses; ++label) {
    for (int number = 0; number < kPerClass; ++number) {
      if (IsTraining(number) != training) continue;
      list += fmt::format("{} {}\n", PathOf(label, number), label);
    }
  }
  return list;
}

std::string ClassNames() {
  std::string names;
  for (int label = 0; label < kClasses; ++label)
    names += fmt::format("{} {}\n", label, kNames[label]);
  return names;
}

absl::Status ReadSheet(const std::string& source, Image* sheet) {
  std::string bytes;
  if (absl::Status status = ReadFile(source, &bytes); !status.ok()) {
    return NotFound("{}\nThe digits come with Debian's package opencv-doc: apt install opencv-doc",
                    MessageOf(status));
  }
  RETURN_IF_ERROR(DecodePicture(bytes, sheet), "while reading {}", source);
  const ImageShape wanted{3, kRows * kSide, kColumns * kSide};
  if (sheet->shape == wanted) return absl::OkStatus();
  return InvalidArgument("{} is a picture of {}, not the sheet of {}", source,
                         sheet->shape.ToString(), wanted.ToString());
}

// A grey PNG of the digit `number` (0..499) of a class; 5 rows of the sheet hold a class.
std::string CutPng(const Image& sheet, int label, int number) {
  const int row = label * (kPerClass / kColumns) + number / kColumns, column = number % kColumns;
  std::string pixels;
  for (int y = 0; y < kSide; ++y) {
    const uint8_t* rgb = sheet.Row(row * kSide + y) + column * kSide * 3;
    for (int x = 0; x < kSide; ++x) pixels += static_cast<char>(rgb[x * 3]);
  }
  const std::unique_ptr<spng_ctx, decltype(&spng_ctx_free)> png(spng_ctx_new(SPNG_CTX_ENCODER),
                                                                spng_ctx_free);
  spng_ihdr header{};
  header.width = header.height = kSide;
  header.bit_depth = 8;
  header.color_type = SPNG_COLOR_TYPE_GRAYSCALE;
  spng_set_option(png.get(), SPNG_ENCODE_TO_BUFFER, 1);
  spng_set_ihdr(png.get(), &header);
  int error = spng_encode_image(png.get(), pixels.data(), pixels.size(), SPNG_FMT_PNG,
                                SPNG_ENCODE_FINALIZE);
  CHECK_EQ(error, 0) << spng_strerror(error);
  size_t size = 0;
  const std::unique_ptr<void, decltype(&std::free)> buffer(
      spng_get_png_buffer(png.get(), &size, &error), std::free);
  CHECK(buffer != nullptr) << spng_strerror(error);
  return std::string(static_cast<const char*>(buffer.get()), size);
}

absl::Status Run(const Arguments& arguments) {
  const fs::path output = arguments.output;
  // The lists are written last: where they stand, so do the pictures.
  if (FileHolds(output / "train_list.txt", List(true)) &&
      FileHolds(output / "test_list.txt", List(false)) &&
      FileHolds(output / "class_names.txt", ClassNames())) {
    fmt::print("{}: 5000 digits are there already\n", output.string());
    return absl::OkStatus();
  }
  Image sheet;
  RETURN_IF_ERROR(ReadSheet(arguments.options.at("source"), &sheet));
  for (int label = 0; label < kClasses; ++label) {
    for (const char* part : {"train", "test"}) {
      RETURN_IF_ERROR(MakeFolder(output / part / std::to_string(label)));
    }
    for (int number = 0; number < kPerClass; ++number) {
      RETURN_IF_ERROR(WriteFile(output / PathOf(label, number), CutPng(sheet, label, number)));
    }
  }
  RETURN_IF_ERROR(WriteFile(output / "train_list.txt", List(true)));
  RETURN_IF_ERROR(WriteFile(output / "test_list.txt", List(false)));
  RETURN_IF_ERROR(WriteFile(output / "class_names.txt", ClassNames()));
  fmt::print("{}: 4000 digits to train on, 1000 to test on\n", output.string());
  return absl::OkStatus();
}

}  // namespace
}  // namespace capstan

int main(int argc, char** argv) {
  const auto arguments = capstan::ParseArguments(argc, argv, {{"source", capstan::kSource}});
  if (!arguments.ok()) {
    fmt::print(stderr, "{}\nusage: make_digits OUTPUT_FOLDER [--source=digits.png]\n",
               capstan::MessageOf(arguments.status()));
    return 2;
  }
  const absl::Status status = capstan::Run(*arguments);
  if (status.ok()) return 0;
  fmt::print(stderr, "make_digits: {}\n", capstan::MessageOf(status));
  return 3;
}
