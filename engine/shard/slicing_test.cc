#include "engine/shard/slicing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace capstan {
namespace {

HostTensor Counting(const TensorType& type) {
  HostTensor tensor(type);
  std::iota(tensor.Elements<float>().begin(), tensor.Elements<float>().end(), 0.f);
  return tensor;
}

std::vector<float> ValuesOf(const HostTensor& tensor) {
  const auto elements = tensor.Elements<float>();
  return {elements.begin(), elements.end()};
}

TEST(SlicingTest, CopiesRangesOfOneDimension) {
  const HostTensor whole = Counting({DType::kF32, {2, 6}});
  HostTensor part({DType::kF32, {2, 3}});
  CopyPart(whole.view(), {.dim = 1, .ranges = {{0, 1}, {3, 2}}}, part.view());
  EXPECT_EQ(ValuesOf(part), (std::vector<float>{0, 3, 4, 6, 9, 10}));
}

TEST(SlicingTest, PlacedPartsMakeTheWholeInAnyFormat) {
  TensorType image = {DType::kF32, {2, 4, 2, 3}};
  const HostTensor plain = Counting(image);
  image.format = MemoryFormat::kChannelsLast;
  HostTensor whole(image), again({DType::kF32, {2, 4, 2, 3}});
  CopyTensor(plain.view(), whole.view());
  for (const ArgPart& which : {ArgPart{.dim = 1, .ranges = {{0, 1}, {2, 1}}},
                               ArgPart{.dim = 1, .ranges = {{1, 1}, {3, 1}}}}) {
    HostTensor part({DType::kF32, {2, 2, 2, 3}});
    CopyPart(whole.view(), which, part.view());
    PlacePart(part.view(), which, again.view());
  }
  EXPECT_EQ(ValuesOf(again), ValuesOf(plain));
}

TEST(SlicingTest, WholeArgumentsAreCopied) {
  const HostTensor whole = Counting({DType::kF32, {2, 3}});
  HostTensor part(whole.type());
  CopyPart(whole.view(), {}, part.view());
  EXPECT_EQ(ValuesOf(part), ValuesOf(whole));
}

TEST(SlicingTest, Combines) {
  const auto combined = [](float a, float b, Combine combine) {
    HostTensor part({DType::kF32, {1}}), total({DType::kF32, {1}});
    total.Elements<float>()[0] = a;
    part.Elements<float>()[0] = b;
    CombinePart(part.view(), combine, total.view());
    return total.Elements<float>()[0];
  };
  EXPECT_EQ(combined(2, 3, Combine::kSum), 5);
  EXPECT_EQ(combined(2, 3, Combine::kMax), 3);
  EXPECT_EQ(combined(2, 3, Combine::kMin), 2);
  EXPECT_EQ(combined(0, 3, Combine::kOr), 1);
  EXPECT_TRUE(std::isnan(combined(NAN, 3, Combine::kMax)));
  EXPECT_TRUE(std::isnan(combined(2, NAN, Combine::kMin)));
}

}  // namespace
}  // namespace capstan
