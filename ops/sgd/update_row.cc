#include "ops/sgd/update_row.h"

#include "engine/base/status.h"

namespace capstan {

absl::Status InferUpdate(OpCall& call, int slots) {
  const TensorType& w = call.In(0);
  const int buckets = 2 + slots;
  if (w.ndim() != 1) return InvalidArgument("w must be a flat bucket, not {}", w.ToString());
  for (int i = 1; i < static_cast<int>(call.inputs.size()); ++i) {
    if (!call.Has(i)) continue;
    const TensorType& type = call.In(i);
    const char* name = call.op->inputs[i].name;
    if (i < buckets && (type.shape != w.shape || type.dtype != w.dtype)) {
      return InvalidArgument("{} must be {} like w", name, w.ToString());
    }
    if (i >= buckets && type.ndim() != 0) return InvalidArgument("{} must be a scalar", name);
  }
  call.outputs.assign(static_cast<size_t>(1 + slots), TensorType{w.dtype, w.shape});
  return absl::OkStatus();
}

absl::Status InferMomentsUpdate(OpCall& call, double beta1, double beta2) {
  if (!(beta1 >= 0 && beta1 < 1 && beta2 >= 0 && beta2 < 1)) {
    return InvalidArgument("beta1 {} and beta2 {} must be in [0, 1)", beta1, beta2);
  }
  if (call.In(5).dtype != DType::kI64) {
    return InvalidArgument("iteration must be i64, not {}", NameOf(call.In(5).dtype));
  }
  return InferUpdate(call, 2);
}

std::vector<ExampleInput> MomentsUpdateInputs(int64_t count, double iteration) {
  const ExampleInput bucket = FloatInput({count});
  return {bucket,
          bucket,
          bucket,
          FloatInput({count}, Draw::kPositive),
          FloatInput({}, Draw::kPositive),
          ValuesInput({DType::kI64, {}}, {iteration})};
}

absl::Status CheckSegments(const std::vector<int64_t>& ends, int64_t count) {
  int64_t begin = 0;
  for (const int64_t end : ends) {
    if (end <= begin) return InvalidArgument("segment_ends must ascend: {} after {}", end, begin);
    begin = end;
  }
  if (begin == count) return absl::OkStatus();
  return InvalidArgument("segment_ends end at {}, the bucket has {} elements", begin, count);
}

std::string UpdateAxes(const OpCall& call) {
  std::string rule;
  for (int i = 0; i < static_cast<int>(call.inputs.size()); ++i) {
    rule += i > 0 ? ", " : "";
    rule += !call.Has(i) ? "_" : call.In(i).ndim() == 0 ? "." : "s";
  }
  rule += " -> s";
  for (size_t o = 1; o < call.outputs.size(); ++o) rule += ", s";
  return rule;
}

double ScalarOf(const TensorView& view, double absent) {
  if (view.data == nullptr) return absent;
  return view.type.dtype == DType::kF64 ? *view.Data<double>() : double(*view.Data<float>());
}

}  // namespace capstan
