// The goldens are one network in every form that is read: all give the same tensors, and no damage
// to them does harm. README.md says how they were made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/checkpoint/checkpoint_testing.h"
#include "engine/weights/weights_file.h"

namespace capstan {
namespace {

using ::testing::HasSubstr;

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

// Reads whatever can be read; a damaged file may open, with other numbers.
void TryToRead(const std::string& bytes) {
  const auto file = WeightsFile::OpenPickled(MemoryBytes("damaged", bytes));
  if (!file.ok()) {
    EXPECT_THAT(MessageOf(file.status()), HasSubstr("damaged"));
    return;
  }
  for (const WeightEntry& entry : file->entries()) {
    // An altered size may ask for more memory than there is; a loader asks for the model's shapes.
    if (!entry.unreadable.empty() || entry.type.count() > 1'000'000) continue;
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
