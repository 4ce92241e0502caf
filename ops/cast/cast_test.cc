#include "ops/cast/cast.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/tensor/tensor_view.h"
#include "ops/cast/convert.h"

namespace capstan {
namespace {

TEST(Convert, FloatToIntegerTruncatesAndSaturates) {
  EXPECT_EQ(Convert<int32_t>(2.9f), 2);
  EXPECT_EQ(Convert<int32_t>(-2.9), -2);
  EXPECT_EQ(Convert<uint8_t>(-1.f), 0);
  EXPECT_EQ(Convert<uint8_t>(255.9f), 255);
  EXPECT_EQ(Convert<uint8_t>(1e9f), 255);
  EXPECT_EQ(Convert<int32_t>(3e9), INT32_MAX);
  EXPECT_EQ(Convert<int64_t>(INFINITY), INT64_MAX);
  EXPECT_EQ(Convert<int64_t>(-1e30f), INT64_MIN);
  EXPECT_EQ(Convert<int64_t>(NAN), 0);
  EXPECT_EQ(Convert<int32_t>(Half::From(-7.5f)), -7);
}

TEST(Convert, IntegersSaturate) {
  EXPECT_EQ(Convert<int32_t>(int64_t{1} << 40), INT32_MAX);
  EXPECT_EQ(Convert<uint8_t>(-5), 0);
  EXPECT_EQ(Convert<uint8_t>(int64_t{256}), 255);
  EXPECT_EQ(Convert<int64_t>(int32_t{-3}), -3);
}

TEST(Convert, ToFloatsAndBool) {
  EXPECT_EQ(Convert<BFloat16>(257.0).bits, BFloat16::From(256.f).bits);
  EXPECT_EQ(Convert<Half>(int64_t{100000}).bits, 0x7C00);
  EXPECT_EQ(Convert<float>(uint8_t{200}), 200.f);
  EXPECT_EQ(Convert<double>(BFloat16::From(1.5f)), 1.5);
  EXPECT_EQ(Convert<float>(true), 1.f);
  EXPECT_TRUE(Convert<bool>(-0.5f));
  EXPECT_FALSE(Convert<bool>(Half::From(-0.f)));
}

HostTensor Casted(const KernelRow& row, const HostTensor& x, DType dtype) {
  HostTensor y({dtype, x.type().shape});
  KernelContext context;
  const TensorView in = x.view(), out = y.view();
  row.fn(context, std::span(&out, 1), std::span(&in, 1), AnyStruct::Of(CastAttrs{.dtype = dtype}));
  return y;
}

// By way of bf16, 1.01 becomes 1.0078125; both kernels give the same bits.
TEST(Cast, FloatToBFloat16AndBack) {
  const HostTensor x({DType::kF32, {100}});
  for (size_t i = 0; i < 100; ++i) x.Elements<float>()[i] = 1 + 0.01f * static_cast<float>(i);
  for (const KernelRow& row : {CastReferenceKernels()[0], CastFastKernels()[0]}) {
    const HostTensor half = Casted(row, x, DType::kBF16), back = Casted(row, half, DType::kF32);
    EXPECT_EQ(back.Elements<float>()[1], 1.0078125f);
    for (size_t i = 0; i < 100; ++i) {
      EXPECT_EQ(half.Elements<BFloat16>()[i].bits, BFloat16::From(x.Elements<float>()[i]).bits);
    }
  }
}

}  // namespace
}  // namespace capstan
