// Kernel over memory order for the pairs that training meets: pictures and 16-bit weights.
#include "engine/kernel/flat.h"
#include "ops/cast/cast.h"
#include "ops/cast/convert.h"

namespace capstan {
namespace {

bool SupportsCast(const OpCall& call) {
  const DType from = call.In(0).dtype, to = call.Out(0).dtype;
  const bool known = (from == DType::kU8 && to == DType::kF32) ||
                     (from == DType::kF32 && to == DType::kBF16) ||
                     (from == DType::kBF16 && to == DType::kF32);
  return known && InOneOrder(call);
}

template <typename From, typename To>
void ConvertAll(KernelContext& context, const TensorView& from, const TensorView& to) {
  const From* x = from.Data<From>();
  To* y = to.Data<To>();
  ParallelFor(context, to.type.count(), kFlatGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = Convert<To>(x[i]);
  });
}

void CastKernel(KernelContext& context, std::span<const TensorView> outputs,
                std::span<const TensorView> inputs, const AnyStruct&) {
  const TensorView &x = inputs[0], &y = outputs[0];
  if (x.type.dtype == DType::kU8) return ConvertAll<uint8_t, float>(context, x, y);
  if (x.type.dtype == DType::kF32) return ConvertAll<float, BFloat16>(context, x, y);
  ConvertAll<BFloat16, float>(context, x, y);
}

}  // namespace

// A cast's main type is that of its float input, else that of its result.
std::vector<KernelRow> CastFastKernels() {
  return {{.op = "cast",
           .impl = "fast",
           .priority = 10,
           .dtypes = {DType::kF32, DType::kBF16},
           .supports = SupportsCast,
           .fn = CastKernel}};
}

}  // namespace capstan
