#include <gtest/gtest.h>

#include "engine/base/status.h"
#include "engine/tensor/tensor_view.h"

namespace capstan {
namespace {

TEST(TensorType, TextRoundTrip) {
  for (const TensorType& t :
       {TensorType{DType::kF32, {8, 3, 32, 32}}, TensorType{DType::kI64, {}},
        TensorType{DType::kF32, {8, 3, 32, 32}, MemoryFormat::kChannelsLast}}) {
    const std::string text = t.ToString() + " rest";
    std::string_view rest = text;
    TensorType back;
    ASSERT_TRUE(ParseTensorType(&rest, &back).ok());
    EXPECT_TRUE(back == t) << text;
    EXPECT_EQ(rest, " rest");
  }
  std::string_view bad = "f31[2]";
  TensorType t;
  EXPECT_FALSE(ParseTensorType(&bad, &t).ok());
}

TEST(TensorType, StridesOfBothFormats) {
  TensorType t{DType::kF32, {2, 3, 4, 5}};
  EXPECT_EQ(t.Strides()[0], 60);
  EXPECT_EQ(t.Strides()[1], 20);
  t.format = MemoryFormat::kChannelsLast;
  EXPECT_EQ(t.Strides()[1], 1);
  EXPECT_EQ(t.Strides()[2], 15);
  EXPECT_EQ(t.Strides()[3], 3);
}

TEST(CopyTensor, ReordersBetweenFormats) {
  const TensorType plain{DType::kF32, {1, 2, 2, 2}};
  TensorType last = plain;
  last.format = MemoryFormat::kChannelsLast;
  const HostTensor a(plain), b(last), c(plain);
  for (int i = 0; i < 8; ++i) a.Elements<float>()[static_cast<size_t>(i)] = static_cast<float>(i);
  CopyTensor(a.view(), b.view());
  EXPECT_EQ(b.Elements<float>()[1], 4);
  CopyTensor(b.view(), c.view());
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(c.Elements<float>()[i], static_cast<float>(i));
  EXPECT_FALSE(SameOrder(plain, last));
  EXPECT_TRUE(SameOrder({DType::kF32, {4, 8, 1, 1}},
                        {DType::kF32, {4, 8, 1, 1}, MemoryFormat::kChannelsLast}));
}

}  // namespace
}  // namespace capstan
