#include "ops/batch_norm/norm_call.h"

namespace capstan {

absl::Status CheckImage(const OpCall& call, int image, std::initializer_list<int> like_it) {
  const TensorType& x = call.In(image);
  if (x.ndim() < 2) return InvalidArgument("x needs the dimensions [n, c, ...]");
  if (x.count() == 0) return InvalidArgument("x is empty");
  for (const int i : like_it) {
    if (!call.Has(i)) continue;
    if (call.In(i).shape != x.shape || call.In(i).dtype != x.dtype) {
      return InvalidArgument("{} must have the shape and element type of x, {}",
                             call.op->inputs[i].name, LikeImage(call, image).ToString());
    }
  }
  return absl::OkStatus();
}

absl::Status CheckChannels(const OpCall& call, int image, std::initializer_list<int> channels) {
  const TensorType& x = call.In(image);
  const DType first = call.In(*channels.begin()).dtype;
  const bool wider = SizeOf(x.dtype) == 2 && first == DType::kF32;
  if (first != x.dtype && !wider) {
    return InvalidArgument("{} must be {} or, where x has 16 bits, f32",
                           call.op->inputs[*channels.begin()].name, NameOf(x.dtype));
  }
  for (const int i : channels) {
    if (call.In(i) != TensorType{first, {x.shape[1]}}) {
      return InvalidArgument("{} must be {}[{}], one element per channel", call.op->inputs[i].name,
                             NameOf(first), x.shape[1]);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFusedRelu(const OpCall& call, bool relu, int y) {
  if (relu && !call.Has(y))
    return InvalidArgument("relu=true needs y, the result of the forward row");
  return absl::OkStatus();
}

TensorType LikeImage(const OpCall& call, int image) {
  return {call.In(image).dtype, call.In(image).shape};
}

TensorType LikeChannels(const OpCall& call, int channels) {
  return {call.In(channels).dtype, call.In(channels).shape};
}

std::string NormAxes(const OpCall& call, std::string_view batch, bool split_space) {
  const auto dims = [&](const TensorType& type) {
    if (type.ndim() == 1) return std::string("c");
    std::string text = std::string(batch) + " c";
    for (int d = 2; d < type.ndim(); ++d) {
      text += " s" + std::to_string(d - 2) + (split_space ? "" : "!");
    }
    return text;
  };
  std::string rule;
  for (const auto& in : call.inputs) {
    rule += (rule.empty() ? "" : ", ") + (in.has_value() ? dims(*in) : "_");
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    rule += (i == 0 ? " -> " : ", ") + dims(call.outputs[i]);
  }
  return rule;
}

}  // namespace capstan
