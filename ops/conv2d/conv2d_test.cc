#include "ops/conv2d/conv2d.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/testing/run_op.h"

namespace capstan {
namespace {

using Values = std::vector<double>;

// 0, 5, 10, ... modulo `cycle`, less `offset`.
TestTensor Cycle(Shape shape, int64_t cycle, int64_t offset, MemoryFormat format) {
  TestTensor tensor = {{DType::kF32, shape, format}, {}};
  for (int64_t i = 0; i < shape.count(); ++i) {
    tensor.values.push_back(static_cast<double>(i * 5 % cycle - offset));
  }
  return tensor;
}

// Results of torch.nn.functional.conv2d(x, w, stride=(2, 1), padding=(1, 0), dilation=(1, 2),
// groups=2) and its backward.
class Conv2dOfPyTorch : public testing::TestWithParam<MemoryFormat> {
 protected:
  const Conv2dAttrs attrs_ = {.stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}, .groups = 2};
  const TestTensor x_ = Cycle({1, 4, 3, 3}, 7, 3, GetParam());
  const TestTensor w_ = Cycle({4, 2, 2, 2}, 6, 2, GetParam());
  const TestTensor dy_ = Cycle({1, 4, 2, 1}, 3, 1, GetParam());
  // oneDNN takes channels_last only.
  const std::vector<KernelRow> kernels_ =
      GetParam() == MemoryFormat::kPlain ? Conv2dReferenceKernels() : Conv2dOnednnKernels();
};

TEST_P(Conv2dOfPyTorch, Forward) {
  const auto y = RunOp(kConv2d, AnyStruct::Of(attrs_), kernels_, {x_, w_});
  EXPECT_EQ(y[0], (Values{3, 0, 3, -14, -11, 13, 13, -11}));
}

TEST_P(Conv2dOfPyTorch, InputGrad) {
  Conv2dInputGradAttrs attrs;
  static_cast<Conv2dAttrs&>(attrs) = attrs_;
  attrs.input_size = {3, 3};
  const auto dx = RunOp(kConv2dInputGrad, AnyStruct::Of(attrs), kernels_, {dy_, w_});
  EXPECT_EQ(dx[0], (Values{-2, 0, -1, -4, 0, 2, 2, 0, 2, 2, 0, -3, 2, 0, -4, -4, 0, 2,
                           -4, 0, 2,  -2, 0, 3, 2, 0, 1, 2, 0, -4, 0, 0, -1, -2, 0, 3}));
}

TEST_P(Conv2dOfPyTorch, WeightGrad) {
  Conv2dWeightGradAttrs attrs;
  static_cast<Conv2dAttrs&>(attrs) = attrs_;
  attrs.kernel_size = {2, 2};
  const auto dw = RunOp(kConv2dWeightGrad, AnyStruct::Of(attrs), kernels_, {x_, dy_});
  EXPECT_EQ(dw[0], (Values{-2, 1, 2, 2,  1, -3, 2,  -5, 2,  -1, 1,  -2, -1, 3, -2, 2,
                           0,  0, 3, -1, 0, 0,  -1, 2,  -3, 0,  -5, 2,  0,  3, 2,  -5}));
}

INSTANTIATE_TEST_SUITE_P(Formats, Conv2dOfPyTorch,
                         testing::Values(MemoryFormat::kPlain, MemoryFormat::kChannelsLast));

// oneDNN's own kernel for these sizes writes past its scratchpad.
TEST(Conv2d, WeightGradOfStridedPointsWithFewChannels) {
  Conv2dWeightGradAttrs attrs;
  attrs.stride = {2, 1};
  for (const int64_t channels : {3, 8, 15}) {
    const std::vector<TestTensor> inputs = {
        Cycle({3, channels, 12, 13}, 7, 3, MemoryFormat::kChannelsLast),
        Cycle({3, 10, 6, 13}, 3, 1, MemoryFormat::kChannelsLast)};
    const auto run = [&](const std::vector<KernelRow>& kernels) {
      return RunOp(kConv2dWeightGrad, AnyStruct::Of(attrs), kernels, inputs);
    };
    EXPECT_EQ(run(Conv2dOnednnKernels()), run(Conv2dReferenceKernels()));
  }
}

// A user's mistake is answered with the sizes.
TEST(Conv2d, ErrorsNameSizes) {
  const auto message = [](const Conv2dAttrs& attrs, Shape x, Shape w) {
    OpCall call{.op = &kConv2d,
                .attrs = AnyStruct::Of(attrs),
                .inputs = {TensorType{DType::kF32, x}, TensorType{DType::kF32, w}}};
    return std::string(InferCall(call).message());
  };
  EXPECT_THAT(message({}, {1, 3, 8, 8}, {4, 1, 1, 1}),
              testing::HasSubstr("the image has 3 channels, the filter wants 1"));
  EXPECT_THAT(message({.groups = 2}, {1, 3, 8, 8}, {4, 1, 1, 1}),
              testing::HasSubstr("3 input and 4 output channels do not divide into 2 groups"));
  EXPECT_THAT(message({.padding = {1, 1}}, {1, 3, 8, 2}, {4, 3, 1, 5}),
              testing::HasSubstr("spans 5 pixels of width, which is larger than the image: 2, "
                                 "with padding 4"));
  EXPECT_THAT(message({.groups = 0}, {1, 3, 8, 8}, {4, 3, 1, 1}), testing::HasSubstr("0 groups"));
  EXPECT_THAT(message({}, {0, 3, 8, 8}, {4, 3, 1, 1}), testing::HasSubstr("x has no elements"));
}

}  // namespace
}  // namespace capstan
