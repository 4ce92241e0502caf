#include "ops/dropout/dropout.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/tensor/tensor_view.h"

namespace capstan {
namespace {

struct Run {
  TensorType type;
  int64_t sample_offset = 0;
  std::vector<ArgumentPlace> places = {};
  int threads = 1;
};

// Dropout of ones, in logical order.
std::vector<float> Drop(const KernelRow& row, const Run& run, double rate = 0.3) {
  const HostTensor x(run.type), y(run.type);
  std::ranges::fill(x.Elements<float>(), 1.f);
  KernelContext context;
  context.random = RandomKey(7);
  context.sample_offset = run.sample_offset;
  context.output_places = run.places;
  context.threads = run.threads;
  const TensorView in = x.view(), out = y.view();
  const AnyStruct attrs = AnyStruct::Of(DropoutAttrs{.rate = rate, .stream = "fc/dropout"});
  row.fn(context, std::span(&out, 1), std::span(&in, 1), attrs);
  const HostTensor plain({DType::kF32, run.type.shape});
  CopyTensor(out, plain.view());
  const auto values = plain.Elements<float>();
  return {values.begin(), values.end()};
}

std::vector<KernelRow> Rows() {
  std::vector<KernelRow> rows = DropoutReferenceKernels();
  for (const KernelRow& row : DropoutFastKernels()) rows.push_back(row);
  return rows;
}

TensorType Plain(Shape shape) { return {DType::kF32, shape}; }

TEST(Dropout, KeepsTheMean) {
  for (const KernelRow& row : Rows()) {
    const std::vector<float> y = Drop(row, {Plain({100, 1000})});
    const auto zeros = std::ranges::count(y, 0.f);
    EXPECT_NEAR(static_cast<double>(zeros) / 1e5, 0.3, 0.006) << row.Key();
    EXPECT_FLOAT_EQ(*std::ranges::max_element(y), 1 / 0.7f);
    EXPECT_EQ(std::ranges::count(y, *std::ranges::max_element(y)) + zeros, 100000);
  }
}

TEST(Dropout, DrawsByGlobalPlace) {
  const Shape shape = {6, 5, 7, 3};
  const std::vector<float> whole = Drop(Rows()[0], {Plain(shape)});
  for (const KernelRow& row : Rows()) {
    EXPECT_EQ(Drop(row, {Plain(shape)}), whole) << row.Key();
    EXPECT_EQ(Drop(row, {Plain(shape), 0, {}, 3}), whole);
    EXPECT_EQ(Drop(row, {{DType::kF32, shape, MemoryFormat::kChannelsLast}, 0, {}, 2}), whole);
    // Two batches of an update, of four and two samples.
    std::vector<float> joined = Drop(row, {Plain({4, 5, 7, 3}), 0});
    const std::vector<float> second = Drop(row, {Plain({2, 5, 7, 3}), 4});
    joined.insert(joined.end(), second.begin(), second.end());
    EXPECT_EQ(joined, whole);
  }
}

TEST(Dropout, SlicesDrawLikeTheWhole) {
  const Shape shape = {4, 5, 6, 3}, part = {4, 2, 6, 3};
  const std::vector<float> whole = Drop(Rows()[0], {Plain(shape)});
  for (const KernelRow& row : Rows()) {
    for (const MemoryFormat format : {MemoryFormat::kPlain, MemoryFormat::kChannelsLast}) {
      const std::vector<float> slice =
          Drop(row, {{DType::kF32, part, format}, 0, {{.logical = shape, .offset = {0, 3, 0, 0}}}});
      for (size_t n = 0; n < 4; ++n) {
        for (size_t i = 0; i < 36; ++i) EXPECT_EQ(slice[n * 36 + i], whole[n * 90 + 54 + i]);
      }
    }
  }
}

}  // namespace
}  // namespace capstan
