// The goldens are one network in every form that is read: all give the same tensors, and no damage
// to them does harm. README.md says how they were made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/checkpoint/checkpoint_testing.h"
#include "engine/weights/weights_file.h"

namespace capstan {
namespace {

using ::testing::HasSubstr;
using namespace std::string_view_literals;

std::string Golden(const std::string& name) { return "tests/weights/goldens/" + name; }

std::map<std::string, std::vector<float>> ReadAll(const WeightsFile& file) {
  std::map<std::string, std::vector<float>> tensors;
  for (const WeightEntry& entry : file.entries()) {
    if (!IsFloat(entry.type.dtype)) continue;
    const HostTensor tensor(TensorType{DType::kF32, entry.type.shape});
    const absl::Status status = file.Read(entry, tensor.view());
    EXPECT_TRUE(status.ok()) << status;
    const auto values = tensor.Elements<float>();
    tensors[entry.name] = {values.begin(), values.end()};
  }
  return tensors;
}

std::map<std::string, std::vector<float>> ReadGolden(const std::string& name,
                                                     const std::string& format) {
  const auto file = WeightsFile::Open(Golden(name));
  CHECK_OK(file);
  EXPECT_EQ(file->format(), format);
  return ReadAll(*file);
}

TEST(WeightFormats, PyTorchAndSafetensorsHoldTheSame) {
  const auto plain = ReadGolden("torchvision.safetensors", "safetensors");
  EXPECT_EQ(plain.size(), 102u);  // 20 convolutions, 20 norms of four tensors, a head of two
  EXPECT_EQ(ReadGolden("torchvision.pth", "PyTorch"), plain);
  EXPECT_EQ(ReadGolden("torchvision_old.pth", "PyTorch"), plain);
}

TEST(WeightFormats, HalvesInsideAnotherDictionary) {
  const auto plain = ReadGolden("torchvision.safetensors", "safetensors");
  const auto half = ReadGolden("wrapped_half.pth", "PyTorch");
  ASSERT_EQ(half.size(), plain.size());
  for (const auto& [name, values] : plain) {
    const auto& rounded = half.at("module." + name);
    ASSERT_EQ(rounded.size(), values.size()) << name;
    for (size_t i = 0; i < values.size(); ++i) {
      // 11 bits, fewer for what is below 2^-14.
      EXPECT_NEAR(rounded[i], values[i], std::abs(values[i]) / 2048 + 1e-7) << name;
    }
  }
}

TEST(WeightFormats, PaddleHoldsTheSameUnderItsNames) {
  const auto plain = ReadGolden("torchvision.safetensors", "safetensors");
  // Protocol 4 has arrays as bytes, protocol 2 as text.
  const auto vision = ReadGolden("paddle_vision.pdparams", "PaddlePaddle");
  const auto clas = ReadGolden("paddle_clas.pdparams", "PaddlePaddle");
  ASSERT_EQ(vision.size(), plain.size());
  ASSERT_EQ(clas.size(), plain.size());
  EXPECT_EQ(vision.at("layer2.0.bn1._mean"), plain.at("layer2.0.bn1.running_mean"));
  EXPECT_EQ(vision.at("layer4.1.conv2.weight"), plain.at("layer4.1.conv2.weight"));
  EXPECT_EQ(clas.at("stem.0.conv.weight"), plain.at("conv1.weight"));
  EXPECT_EQ(clas.at("blocks.2.short.bn._variance"), plain.at("layer2.0.downsample.1.running_var"));
  EXPECT_EQ(clas.at("blocks.7.conv1.conv.weight"), plain.at("layer4.1.conv2.weight"));
  // [in, out] there.
  const std::vector<float>&ours = plain.at("fc.weight"), &theirs = clas.at("fc.weight");
  ASSERT_EQ(ours.size(), 5u * 16u);
  EXPECT_EQ(theirs, vision.at("fc.weight"));
  for (size_t o = 0; o < 5; ++o) {
    for (size_t i = 0; i < 16; ++i) EXPECT_EQ(theirs[i * 5 + o], ours[o * 16 + i]);
  }
}

TEST(WeightFormats, ReadsAsDouble) {
  const auto file = WeightsFile::Open(Golden("torchvision.pth"));
  ASSERT_TRUE(file.ok()) << file.status();
  const WeightEntry& entry = file->entries()[0];
  const HostTensor one(TensorType{DType::kF32, entry.type.shape});
  const HostTensor two(TensorType{DType::kF64, entry.type.shape});
  ASSERT_TRUE(file->Read(entry, one.view()).ok());
  ASSERT_TRUE(file->Read(entry, two.view()).ok());
  for (size_t i = 0; i < one.Elements<float>().size(); ++i) {
    EXPECT_EQ(two.Elements<double>()[i], double{one.Elements<float>()[i]});
  }
}

TEST(WeightFormats, APathWithoutItsEndingAsPaddleHasIt) {
  const auto file = WeightsFile::Open(Golden("paddle_clas"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->path(), Golden("paddle_clas.pdparams"));
}

std::string OpenError(const std::string& bytes) {
  const ScratchFolder scratch;
  Spill(scratch.File("w.pth"), bytes);
  return MessageOf(WeightsFile::Open(scratch.File("w.pth")).status());
}

TEST(WeightFormats, OtherFilesSayWhatTheyAre) {
  EXPECT_THAT(MessageOf(WeightsFile::Open("no/such.pth").status()), HasSubstr("no/such.pth"));
  EXPECT_THAT(MessageOf(WeightsFile::Open("https://x.org/r.pth").status()),
              HasSubstr("nothing is downloaded"));
  EXPECT_THAT(OpenError(""), HasSubstr("no format that is known"));
  EXPECT_THAT(OpenError("version https://git-lfs.github.com/spec/v1\n"), HasSubstr("git lfs pull"));
  EXPECT_THAT(OpenError("<!DOCTYPE html>"), HasSubstr("web page"));
  EXPECT_THAT(OpenError("\x80\x02}."), HasSubstr("no dictionary of tensors"));
}

// As torch.save had it before 1.6: this pickle, and one storage of a float 1 behind it.
std::string OldTorchFile(std::string_view pickle) {
  std::string bytes("\x80\2\x8a\x0al\xfc\x9c\x46\xf9\x20j\xa8P\x19.\x80\2M\xe9\3.\x80\2}."sv);
  bytes += pickle;
  bytes += "\x80\2]X\1\0\0\0\x30\x61."sv;
  bytes += "\1\0\0\0\0\0\0\0\0\0\x80\x3f"sv;
  return bytes;
}

// Pushes a tensor of that float, with these sizes (two bytes each) and stride 0; kept as 1.
std::string OneFloat(std::string_view sizes) {
  std::string text(
      "ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\nFloatStorage\n"
      "X\1\0\0\0\x30X\3\0\0\0cpuK\1tQK\0("sv);
  for (size_t i = 0; i < sizes.size(); i += 2) text += "M" + std::string(sizes.substr(i, 2));
  text += "t(";
  for (size_t i = 0; i < sizes.size(); i += 2) text += "K\0"sv;
  return text += "t\x89NtRq\1"sv;
}

TEST(WeightFormats, WhatIsLargerThanTheFileIsNotRead) {
  const std::string one("\x80\2}X\1\0\0\0w"sv);
  const std::string small = OldTorchFile(one + OneFloat("\3\0"sv) + "s.");
  const auto file = WeightsFile::OpenPickled(MemoryBytes("x.pth", small));
  ASSERT_TRUE(file.ok()) << file.status();
  const HostTensor tensor(TensorType{DType::kF32, {3}});
  ASSERT_TRUE(file->Read(file->entries()[0], tensor.view()).ok());
  EXPECT_THAT(tensor.Elements<float>(), ::testing::Each(1.0f));

  // 256 TiB.
  const std::string huge = OldTorchFile(one + OneFloat("\0\x10\0\x10\0\x10\0\4"sv) + "s.");
  const auto expanded = WeightsFile::OpenPickled(MemoryBytes("x.pth", huge));
  ASSERT_TRUE(expanded.ok()) << expanded.status();
  EXPECT_THAT(MessageOf(expanded->Read(expanded->entries()[0], tensor.view())),
              HasSubstr("larger than the file"));
}

TEST(WeightFormats, WhatIsRepeatedEndsSoon) {
  // One name of 4 KiB, a million times.
  std::string twice("\x80\2}X\0\x10\0\0"sv);
  twice += std::string(4096, 'n') + std::string("q\0"sv) + OneFloat("\1\0"sv) + "s";
  for (int i = 0; i < 1'000'000; ++i) twice += "h\0h\1s"sv;
  const std::string bytes = OldTorchFile(twice + ".");
  EXPECT_THAT(MessageOf(WeightsFile::OpenPickled(MemoryBytes("x.pth", bytes)).status()),
              HasSubstr("is there twice"));
  // A dictionary of a million names without a tensor, in 200,000 others.
  std::string wrappers("\x80\2}X\5\0\0\0modelq\0}("sv);
  for (int i = 0; i < 1'000'000; ++i) wrappers += "h\0h\0"sv;
  wrappers += "uq\1s"sv;
  for (int i = 0; i < 200'000; ++i) wrappers += "h\0h\1s"sv;
  wrappers += '.';
  EXPECT_THAT(MessageOf(WeightsFile::OpenPickled(MemoryBytes("x.pth", wrappers)).status()),
              HasSubstr("no dictionary of tensors"));
}

// Reads whatever can be read; a damaged file may open, with other numbers.
void TryToRead(const std::string& bytes) {
  const auto file = WeightsFile::OpenPickled(MemoryBytes("damaged", bytes));
  if (!file.ok()) {
    EXPECT_THAT(MessageOf(file.status()), HasSubstr("damaged"));
    return;
  }
  for (const WeightEntry& entry : file->entries()) {
    if (!entry.unreadable.empty()) continue;
    ASSERT_LE(static_cast<size_t>(entry.type.bytes()), bytes.size());
    const HostTensor tensor(TensorType{DType::kF32, entry.type.shape});
    (void)file->Read(entry, tensor.view());
  }
}

class DamagedWeights : public ::testing::TestWithParam<const char*> {
 protected:
  const std::string bytes_ = Slurp(Golden(GetParam()));
};

TEST_P(DamagedWeights, CutsAreErrors) {
  for (size_t size = 0; size < bytes_.size(); size += 1 + bytes_.size() / 500) {
    const std::string cut = bytes_.substr(0, size);
    const auto file = WeightsFile::OpenPickled(MemoryBytes("damaged", cut));
    EXPECT_FALSE(file.ok()) << size;
  }
}

TEST_P(DamagedWeights, FlippedBitsDoNoHarm) {
  std::mt19937 random(1);
  for (int i = 0; i < 600; ++i) {
    std::string altered = bytes_;
    // Names, sizes and opcodes are at the beginning; of a ZIP file also at the end.
    const size_t span = i % 2 == 0 ? bytes_.size() : std::min<size_t>(bytes_.size(), 2000);
    const size_t at = i % 4 == 1 ? bytes_.size() - 1 - random() % span : random() % span;
    altered[at] = static_cast<char>(altered[at] ^ (1 << random() % 8));
    TryToRead(altered);
  }
}

INSTANTIATE_TEST_SUITE_P(All, DamagedWeights,
                         ::testing::Values("torchvision.pth", "torchvision_old.pth",
                                           "paddle_vision.pdparams", "paddle_clas.pdparams"),
                         [](const auto& info) {
                           std::string name = info.param;
                           return name.substr(0, name.find('.'));
                         });

}  // namespace
}  // namespace capstan
