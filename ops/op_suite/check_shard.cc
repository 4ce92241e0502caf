#include <fmt/format.h>

#include <cmath>

#include "engine/base/status.h"
#include "engine/shard/factor_rule.h"
#include "engine/shard/slicing.h"
#include "ops/op_suite/drawn_call.h"
#include "ops/op_suite/host_values.h"
#include "ops/op_suite/run_kernel.h"
#include "ops/op_suite/suite.h"

namespace capstan {
namespace {

constexpr double kTolerance = 1e-10;

// Lengths of `parts` parts of `size`, unequal where possible.
std::vector<int64_t> UnevenParts(int64_t size, int64_t parts) {
  std::vector<int64_t> lengths(static_cast<size_t>(parts), size / parts);
  lengths.front() += size % parts;
  if (size % parts == 0 && lengths.back() > 1) {
    ++lengths.front();
    --lengths.back();
  }
  return lengths;
}

// Where each argument lies in the whole; empty if one lies there in pieces.
std::vector<ArgumentPlace> PlacesOf(const std::vector<ArgPart>& parts,
                                    const std::vector<std::optional<TensorType>>& whole) {
  std::vector<ArgumentPlace> places;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].ranges.size() > 1) return {};
    ArgumentPlace place;
    if (whole[i].has_value()) {
      place.logical = whole[i]->shape;
      for (int d = 0; d < place.logical.ndim(); ++d) {
        place.offset.Append(d == parts[i].dim ? parts[i].ranges[0].offset : 0);
      }
    }
    places.push_back(place);
  }
  return places;
}

class ShardCheck {
 public:
  ShardCheck(const SuiteTables& tables, const Example& example, const DrawnCall& drawn,
             const BoundRule& rule)
      : tables_(tables), example_(example), drawn_(drawn), rule_(rule) {}

  absl::Status Run() {
    ASSIGN_OR_RETURN(whole_, RunReference(tables_, call(), ViewsOf(drawn_.inputs)));
    for (const int f : rule_.Splittable()) {
      const Factor& factor = rule_.factors()[static_cast<size_t>(f)];
      if (factor.split == Split::kLocal) {
        RETURN_IF_ERROR(CheckHalves(f), "while halving '{}' of {}", factor.name, rule_.ToString());
        continue;
      }
      for (const int64_t parts : {2, 3}) {
        if (factor.size < parts) continue;
        RETURN_IF_ERROR(CheckParts(f, UnevenParts(factor.size, parts)),
                        "while cutting '{}' of {} into {}", factor.name, rule_.ToString(), parts);
      }
    }
    return absl::OkStatus();
  }

 private:
  const OpCall& call() const { return drawn_.call; }
  bool IsOpaque(size_t output) const { return call().outputs[output].dtype == DType::kOpaque; }

  // Inputs of the part, cut from `whole`.
  std::vector<HostTensor> CutInputs(const CallPart& part, std::span<const HostTensor> whole) const {
    std::vector<HostTensor> inputs(whole.size());
    for (size_t i = 0; i < whole.size(); ++i) {
      if (!part.call.Has(static_cast<int>(i)) || IsOpaqueInput(i)) continue;
      inputs[i] = HostTensor(*part.call.inputs[i]);
      CopyPart(whole[i].view(), part.inputs[i], inputs[i].view());
    }
    return inputs;
  }
  bool IsOpaqueInput(size_t i) const {
    const auto& type = call().inputs[i];
    return type.has_value() && type->dtype == DType::kOpaque;
  }

  // Opaque inputs of the part: what the forward operator saves on the same part of its own inputs.
  absl::Status MakeOpaqueInputs(int f, Range range, CallPart* part,
                                std::vector<HostTensor>* inputs) const {
    for (size_t i = 0; i < inputs->size(); ++i) {
      if (!IsOpaqueInput(i)) continue;
      const ExampleInput& e = example_.inputs[i];
      ASSIGN_OR_RETURN(ForwardCall forward, ForwardCallOf(e, drawn_));
      ASSIGN_OR_RETURN(const BoundRule rule, BoundRule::Of(forward.call));
      const int same = rule.Find(rule_.factors()[static_cast<size_t>(f)].name);
      std::vector<HostTensor> memory;
      if (same >= 0) {
        const CallPart forward_part = rule.PartOf(same, range.offset, range.length);
        forward.call = forward_part.call;
        RETURN_IF_ERROR(InferCall(forward.call), "while inferring a part of what made input {}", i);
        for (size_t j = 0; j < forward.inputs.size(); ++j) {
          if (forward.inputs[j].data == nullptr) continue;
          memory.emplace_back(*forward.call.inputs[j]);
          CopyPart(forward.inputs[j], forward_part.inputs[j], memory.back().view());
          forward.inputs[j] = memory.back().view();
        }
      }
      ASSIGN_OR_RETURN((*inputs)[i], ForwardValue(tables_, e, forward, "reference"));
      part->call.inputs[i] = forward.call.Out(e.forward_output);
    }
    return absl::OkStatus();
  }

  // The part must infer to what the rule says.
  absl::Status InferPart(CallPart* part) const {
    const std::vector<TensorType> want = part->call.outputs;
    RETURN_IF_ERROR(InferCall(part->call), "while inferring a part");
    for (size_t o = 0; o < want.size(); ++o) {
      if (IsOpaque(o) || part->call.outputs[o] == want[o]) continue;
      return InvalidArgument("output {} of {} is {}, but {} by the rule", o, part->call.ToString(),
                             part->call.outputs[o].ToString(), want[o].ToString());
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<HostTensor>> RunPart(const CallPart& part,
                                                  std::span<const HostTensor> inputs) const {
    const std::vector<std::optional<TensorType>> outputs(call().outputs.begin(),
                                                         call().outputs.end());
    const std::vector<ArgumentPlace> input_places = PlacesOf(part.inputs, call().inputs),
                                     output_places = PlacesOf(part.outputs, outputs);
    if (call().op->traits.random && output_places.empty()) {
      return InvalidArgument("a random row cannot tell where pieces lie; mark the factor '!'");
    }
    ASSIGN_OR_RETURN(const KernelRow* row,
                     tables_.kernels.Select(part.call, DeviceKind::kCpu, "reference"));
    return RunKernel(*row, part.call, ViewsOf(inputs),
                     {.input_places = input_places, .output_places = output_places});
  }

  absl::Status CheckParts(int f, const std::vector<int64_t>& lengths) const {
    const Signature signature = rule_.SignatureOf(f);
    std::vector<HostTensor> joined;
    for (const TensorType& type : call().outputs) joined.emplace_back(type);
    int64_t offset = 0;
    for (const int64_t length : lengths) {
      CallPart part = rule_.PartOf(f, offset, length);
      std::vector<HostTensor> inputs = CutInputs(part, drawn_.inputs);
      RETURN_IF_ERROR(MakeOpaqueInputs(f, {offset, length}, &part, &inputs));
      RETURN_IF_ERROR(InferPart(&part));
      ASSIGN_OR_RETURN(const std::vector<HostTensor> outputs, RunPart(part, inputs));
      for (size_t o = 0; o < outputs.size(); ++o) {
        Join(signature.outputs[o], part.outputs[o], outputs[o], offset == 0, joined[o]);
      }
      offset += length;
    }
    for (size_t o = 0; o < joined.size(); ++o) {
      if (IsOpaque(o)) continue;
      RETURN_IF_ERROR(CompareValues(fmt::format("output {} from parts", o), joined[o].view(),
                                    whole_[o].view(), kTolerance),
                      "while {}", signature.ToString());
    }
    return absl::OkStatus();
  }

  static void Join(const ArgPlacement& placement, const ArgPart& which, const HostTensor& part,
                   bool first, const HostTensor& joined) {
    if (placement.kind == Placement::kSplit) {
      PlacePart(part.view(), which, joined.view());
    } else if (placement.kind == Placement::kPartial && first) {
      CopyTensor(part.view(), joined.view());
    } else if (placement.kind == Placement::kPartial) {
      CombinePart(part.view(), placement.combine, joined.view());
    }
  }

  // Local statistics: of a tensor made of one half twice, the statistics are those of the half, so
  // the results for either half are the half's results.
  absl::Status CheckHalves(int f) const {
    for (size_t i = 0; i < call().inputs.size(); ++i) {
      if (IsOpaqueInput(i)) return InvalidArgument("'~' is not tested with opaque inputs; use '!'");
    }
    const int64_t half = rule_.factors()[static_cast<size_t>(f)].size / 2;
    CallPart one = rule_.PartOf(f, 0, half), two = rule_.PartOf(f, 0, 2 * half);
    // The smallest sizes may have no statistics.
    if (!InferCall(one.call).ok()) return absl::OkStatus();
    RETURN_IF_ERROR(InferPart(&two));
    ASSIGN_OR_RETURN(const BoundRule twice, BoundRule::Of(two.call));
    const CallPart first = twice.PartOf(f, 0, half), second = twice.PartOf(f, half, half);
    const std::vector<HostTensor> inputs = CutInputs(one, drawn_.inputs);
    std::vector<HostTensor> doubled(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!two.call.Has(static_cast<int>(i))) continue;
      doubled[i] = HostTensor(*two.call.inputs[i]);
      PlacePart(inputs[i].view(), first.inputs[i], doubled[i].view());
      PlacePart(inputs[i].view(), second.inputs[i], doubled[i].view());
    }
    ASSIGN_OR_RETURN(const std::vector<HostTensor> of_half,
                     RunReference(tables_, one.call, ViewsOf(inputs)));
    ASSIGN_OR_RETURN(const std::vector<HostTensor> of_both,
                     RunReference(tables_, two.call, ViewsOf(doubled)));
    RETURN_IF_ERROR(CompareHalf(first, of_half, of_both));
    return CompareHalf(second, of_half, of_both);
  }

  absl::Status CompareHalf(const CallPart& place, std::span<const HostTensor> of_half,
                           std::span<const HostTensor> of_both) const {
    for (size_t o = 0; o < of_half.size(); ++o) {
      if (IsOpaque(o)) continue;
      RETURN_IF_ERROR(CheckFinite(o, of_half[o]));
      if (place.outputs[o].dim < 0) continue;
      HostTensor cut(of_half[o].type());
      CopyPart(of_both[o].view(), place.outputs[o], cut.view());
      RETURN_IF_ERROR(CompareValues(fmt::format("output {} of two equal halves", o), cut.view(),
                                    of_half[o].view(), kTolerance));
    }
    return absl::OkStatus();
  }

  static absl::Status CheckFinite(size_t o, const HostTensor& output) {
    for (const double v : ValuesOf(output.view())) {
      if (!std::isfinite(v)) return InvalidArgument("output {} of a part has a {}", o, v);
    }
    return absl::OkStatus();
  }

  const SuiteTables& tables_;
  const Example& example_;
  const DrawnCall& drawn_;
  const BoundRule& rule_;
  std::vector<HostTensor> whole_;
};

}  // namespace

absl::Status CheckShard(const SuiteTables& tables, const OpDef& op, const Example& example) {
  if (example.error != nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(const DrawnCall drawn, DrawCall(tables, op, example));
  ASSIGN_OR_RETURN(const BoundRule rule, BoundRule::Of(drawn.call));
  return ShardCheck(tables, example, drawn, rule).Run();
}

}  // namespace capstan
