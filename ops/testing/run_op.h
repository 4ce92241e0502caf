// For closed-form tests of operators: runs one call on given numbers.
//
//   const auto y = RunOp(kRelu, {}, ReluReferenceKernels(), {Numbers({2}, {-1, 3})});
//   EXPECT_EQ(y[0], (std::vector<double>{0, 3}));
#pragma once

#include <vector>

#include "engine/kernel/kernel_row.h"

namespace capstan {

struct TestTensor {
  TensorType type;
  std::vector<double> values;  // in logical order
  bool absent = false;
};

inline TestTensor Numbers(Shape shape, std::vector<double> values, DType dtype = DType::kF64) {
  return {{dtype, shape}, std::move(values)};
}

// Every output in logical order. The call must infer; of `kernels` the best row for it is taken.
// Opaque arguments are given as bytes. Output images are channels_last if an input is. What the
// kernel must not do (ops/op_suite/run_kernel.h) ends the test.
std::vector<std::vector<double>> RunOp(const OpDef& op, AnyStruct attrs,
                                       const std::vector<KernelRow>& kernels,
                                       const std::vector<TestTensor>& inputs, int threads = 1);

}  // namespace capstan
