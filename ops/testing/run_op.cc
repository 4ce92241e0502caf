#include "ops/testing/run_op.h"

#include <algorithm>

#include "engine/kernel/strided.h"
#include "ops/op_suite/run_kernel.h"

namespace capstan {
namespace {

// Calls f with a zero of the tensor's C++ type.
template <typename F>
void ForElement(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kI64:
      return f(int64_t{});
    case DType::kI32:
      return f(int32_t{});
    case DType::kU8:
      return f(uint8_t{});
    case DType::kBool:
      return f(bool{});
    default:
      return ForFloat(dtype, f);
  }
}

// As the layout pass would: with one image in channels_last every image argument is.
void FollowFormat(OpCall& call) {
  const bool image = std::ranges::any_of(call.inputs, [](const auto& in) {
    return in.has_value() && in->format == MemoryFormat::kChannelsLast;
  });
  if (!image || call.op->traits.layout == LayoutNeed::kPlain) return;
  for (TensorType& out : call.outputs) {
    if (out.ndim() == 4) out.format = MemoryFormat::kChannelsLast;
  }
}

// Opaque bytes as numbers.
TensorView Readable(TensorView view) {
  if (view.type.dtype == DType::kOpaque) view.type.dtype = DType::kU8;
  return view;
}

HostTensor Filled(const TestTensor& tensor) {
  CHECK_EQ(static_cast<int64_t>(tensor.values.size()), tensor.type.count());
  HostTensor host(tensor.type);
  const TensorView view = Readable(host.view());
  ForElement(view.type.dtype, [&](auto zero) {
    const Strided<decltype(zero)> to(view);
    size_t next = 0;
    ForEachIndex(tensor.type.shape, [&](const Index& i) {
      to(i) = static_cast<decltype(zero)>(tensor.values[next++]);
    });
  });
  return host;
}

std::vector<double> ValuesOf(const HostTensor& host) {
  std::vector<double> values;
  const TensorView view = Readable(host.view());
  ForElement(view.type.dtype, [&](auto zero) {
    const Strided<decltype(zero)> from(view);
    ForEachIndex(host.type().shape,
                 [&](const Index& i) { values.push_back(static_cast<double>(from(i))); });
  });
  return values;
}

}  // namespace

std::vector<std::vector<double>> RunOp(const OpDef& op, AnyStruct attrs,
                                       const std::vector<KernelRow>& kernels,
                                       const std::vector<TestTensor>& inputs, int threads) {
  if (attrs.empty()) attrs = AnyStruct::Create(*op.attrs);
  OpCall call{.op = &op, .attrs = std::move(attrs)};
  std::vector<HostTensor> memory;
  std::vector<TensorView> in;
  for (const TestTensor& tensor : inputs) {
    call.inputs.push_back(tensor.absent ? std::nullopt : std::optional(tensor.type));
    if (!tensor.absent) memory.push_back(Filled(tensor));
    in.push_back(tensor.absent ? TensorView{} : memory.back().view());
  }
  CHECK_OK(InferCall(call));
  FollowFormat(call);
  const KernelTable table(kernels);
  const auto row = table.Select(call, DeviceKind::kCpu);
  CHECK_OK(row);
  const auto results = RunKernel(**row, call, in, {.threads = threads});
  CHECK_OK(results);
  std::vector<std::vector<double>> values;
  for (const HostTensor& result : *results) values.push_back(ValuesOf(result));
  return values;
}

}  // namespace capstan
