#include <fmt/format.h>

#include <cmath>

#include "engine/base/status.h"
#include "ops/op_suite/drawn_call.h"
#include "ops/op_suite/host_values.h"
#include "ops/op_suite/run_kernel.h"
#include "ops/op_suite/suite.h"

namespace capstan {
namespace {

bool AllFinite(std::span<const HostTensor> tensors) {
  for (const HostTensor& t : tensors) {
    if (t.data() == nullptr || !IsFloat(t.type().dtype)) continue;
    for (const double v : ValuesOf(t.view())) {
      if (!std::isfinite(v)) return false;
    }
  }
  return true;
}

}  // namespace

absl::Status CheckInfer(const SuiteTables&, const OpDef& op, const Example& example) {
  const auto call = CallOfExample(op, example, DType::kF32);
  if (example.error == nullptr) return call.status();
  if (call.ok()) {
    return InvalidArgument("{} infers but should fail with '{}'", call->ToString(), example.error);
  }
  if (MessageOf(call.status()).find(example.error) == std::string::npos) {
    return InvalidArgument("infer fails with '{}', which does not hold '{}'",
                           MessageOf(call.status()), example.error);
  }
  return absl::OkStatus();
}

absl::Status CheckReference(const SuiteTables& tables, const OpDef& op, const Example& example) {
  if (example.error != nullptr) return absl::OkStatus();
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    ASSIGN_OR_RETURN(const DrawnCall plain, DrawCall(tables, op, example, {.dtype = dtype}));
    ASSIGN_OR_RETURN(const std::vector<HostTensor> want,
                     RunReference(tables, plain.call, ViewsOf(plain.inputs)));
    if (AllFinite(plain.inputs) && !AllFinite(want)) {
      return InvalidArgument("{} has a result that is not finite; its inputs are", op.name);
    }
    ASSIGN_OR_RETURN(
        const DrawnCall image,
        DrawCall(tables, op, example, {.dtype = dtype, .format = MemoryFormat::kChannelsLast}));
    ASSIGN_OR_RETURN(const std::vector<HostTensor> got,
                     RunReference(tables, image.call, ViewsOf(image.inputs)));
    for (size_t o = 0; o < want.size(); ++o) {
      if (want[o].type().dtype == DType::kOpaque) continue;
      RETURN_IF_ERROR(CompareValues(fmt::format("output {} in channels_last", o), got[o].view(),
                                    want[o].view(), 0));
    }
  }
  return absl::OkStatus();
}

}  // namespace capstan
