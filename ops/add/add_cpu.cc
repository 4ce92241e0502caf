// Reference kernel: plain loops in logical order.
#include "engine/kernel/strided.h"
#include "ops/add/add.h"

namespace capstan {
namespace {

void AddKernel(KernelContext&, std::span<const TensorView> outputs,
               std::span<const TensorView> inputs, const AnyStruct&) {
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> a(inputs[0]), b(inputs[1]);
    const Strided<T> y(outputs[0]);
    ForEachIndex(outputs[0].type.shape, [&](const Index& i) { y(i) = a(i) + b(i); });
  });
}

}  // namespace

std::vector<KernelRow> AddReferenceKernels() { return {{.op = "add", .fn = AddKernel}}; }

}  // namespace capstan
