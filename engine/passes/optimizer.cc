// optimizer: gathers the trained parameters in buckets and makes the update program, whose rows run
// over whole buckets. Inputs: `lr` f32[], `iteration` i64[] (finished updates) where the row takes
// it. Output: `grad_norm` where gradients are clipped by it.
#include <algorithm>
#include <map>

#include "engine/base/status.h"
#include "engine/ir/builder.h"
#include "engine/passes/pass.h"

namespace capstan {
namespace {

// Whether a parameter goes to the buckets that decay. Layer-wise rules tell the two kinds apart
// even without decay.
bool Decays(const UpdateRule& rule, Role role) {
  return (rule.weight_decay != 0 || rule.layerwise) &&
         std::find(rule.no_decay.begin(), rule.no_decay.end(), role) == rule.no_decay.end();
}

double LrFactor(const UpdateRule& rule, const std::string& param) {
  for (const auto& [name, factor] : rule.lr_factors) {
    if (param == name || param.starts_with(name + ".")) return factor;
  }
  return 1;
}

// "f32.decay", "f32.no_decay.lr0.5": parameters of one bucket have the same update.
std::string BucketName(const UpdateRule& rule, const GraphInput& param, DType dtype) {
  const double factor = LrFactor(rule, param.name);
  return std::string(NameOf(dtype)) + (Decays(rule, param.role) ? ".decay" : ".no_decay") +
         (factor == 1 ? "" : ".lr" + PrintValue(TypeOf<double>(), &factor));
}

// Parameters that have a gradient, with their roles, last used first: the backward pass makes their
// gradients about in this order.
std::vector<const GraphInput*> TrainedParams(const Graph& micro) {
  std::vector<const GraphInput*> params;
  for (const GraphInput& in : micro.inputs()) {
    if (in.kind == InputKind::kParam && micro.FindInput(SlotName(in.name, "grad")) != nullptr) {
      params.push_back(&in);
    }
  }
  std::reverse(params.begin(), params.end());
  return params;
}

std::vector<Bucket> MakeBuckets(const Graph& micro, const UpdateRule& rule) {
  std::vector<Bucket> buckets;
  std::map<std::string, size_t> index;
  for (const GraphInput* param : TrainedParams(micro)) {
    const TensorType& type = micro.type(param->value);
    const std::string name = BucketName(rule, *param, type.dtype);
    const auto [it, inserted] = index.emplace(name, buckets.size());
    if (inserted) {
      buckets.push_back({.name = name, .dtype = type.dtype, .slots = {"weight", "grad"}});
      Bucket& b = buckets.back();
      b.slots.insert(b.slots.end(), rule.slots.begin(), rule.slots.end());
    }
    AddSegment(param->name, type, &buckets[it->second]);
  }
  return buckets;
}

class UpdateBuilder {
 public:
  UpdateBuilder(Graph* graph, const PassContext& context)
      : rule_(context.update),
        row_(context.ops->Get(rule_.row)),
        b_(graph, context.ops, Mode::kTrain) {
    b_.SetOrigin("optimizer");
  }

  absl::Status Build(const std::vector<Bucket>& buckets) {
    const ValueId lr = b_.Data("lr", {DType::kF32, {}});
    const ValueId iteration =
        rule_.takes_iteration ? b_.Data("iteration", {DType::kI64, {}}) : kNoValue;
    std::map<std::string, ValueId> grads;
    for (const Bucket& bucket : buckets) {
      grads[bucket.name] = b_.State(SlotName(bucket.name, "grad"), FlatType(bucket), {});
    }
    const ValueId clip = ClipScale(grads);
    for (const Bucket& bucket : buckets) {
      ASSIGN_OR_RETURN(const AnyStruct attrs, AttrsFor(bucket));
      AddUpdates(bucket, grads[bucket.name], lr, iteration, clip, attrs);
    }
    return b_.status();
  }

 private:
  static TensorType FlatType(const Bucket& bucket) { return {bucket.dtype, {bucket.count}}; }

  // The factor that brings the global norm under its limit; kNoValue without a limit.
  ValueId ClipScale(const std::map<std::string, ValueId>& grads) {
    if (!rule_.clip_global_norm.has_value()) return kNoValue;
    std::vector<ValueId> all;
    for (const auto& [name, grad] : grads) all.push_back(grad);
    const ValueId squared = b_.Add1("squared_norm", all);
    b_.graph().AddOutput("squared_grad_norm", squared);
    return WithAttrs("clip_scale",
                     "{max_norm=" + PrintValue(TypeOf<double>(), &*rule_.clip_global_norm) + "}",
                     {squared});
  }

  ValueId WithAttrs(std::string_view op, std::string_view text, std::vector<ValueId> inputs) {
    const OpDef& row = b_.ops().Get(op);
    return b_.Add1(row, AttrsFromText(row, text), std::move(inputs));
  }

  absl::StatusOr<AnyStruct> AttrsFor(const Bucket& bucket) const {
    AnyStruct attrs = AnyStruct::Create(*row_.attrs);
    const auto set = [&](std::string_view text) {
      return Annotate(ParseValue(*row_.attrs, &text, attrs.mutable_data()),
                      "while setting up optimizer row {}", rule_.row);
    };
    const bool decays = bucket.name.find(".decay") != std::string::npos;
    RETURN_IF_ERROR(set(rule_.attrs));
    if (decays) {
      RETURN_IF_ERROR(
          set("{weight_decay=" + PrintValue(TypeOf<double>(), &rule_.weight_decay) + "}"));
    }
    if (rule_.layerwise) {
      RETURN_IF_ERROR(set("{segment_ends=" + SegmentEnds(bucket) +
                          ", adapt=" + (decays || rule_.adapt_all ? "true" : "false") + "}"));
    }
    if (const double factor = LrFactor(rule_, bucket.segments[0].param); factor != 1) {
      RETURN_IF_ERROR(set("{lr_factor=" + PrintValue(TypeOf<double>(), &factor) + "}"));
    }
    return attrs;
  }

  // A segment ends where the next one begins.
  static std::string SegmentEnds(const Bucket& bucket) {
    std::vector<int64_t> ends;
    for (size_t i = 1; i < bucket.segments.size(); ++i) ends.push_back(bucket.segments[i].offset);
    ends.push_back(bucket.count);
    return PrintValue(TypeOf<std::vector<int64_t>>(), &ends);
  }

  void AddUpdates(const Bucket& bucket, ValueId grad, ValueId lr, ValueId iteration, ValueId clip,
                  const AnyStruct& attrs) {
    std::vector<ValueId> states = {b_.State(SlotName(bucket.name, "weight"), FlatType(bucket), {})};
    for (const std::string& slot : rule_.slots) {
      states.push_back(b_.State(SlotName(bucket.name, slot), FlatType(bucket), {}));
    }
    if (rule_.clip_value.has_value()) {
      const double v = *rule_.clip_value, low = -v;
      grad = WithAttrs("clamp",
                       "{min=" + PrintValue(TypeOf<double>(), &low) +
                           ", max=" + PrintValue(TypeOf<double>(), &v) + "}",
                       {grad});
    }
    if (rule_.clip_norm.has_value()) {
      grad = WithAttrs("clip_segments",
                       "{segment_ends=" + SegmentEnds(bucket) +
                           ", max_norm=" + PrintValue(TypeOf<double>(), &*rule_.clip_norm) + "}",
                       {grad});
    }
    std::vector<ValueId> inputs = {states[0], grad};
    inputs.insert(inputs.end(), states.begin() + 1, states.end());
    inputs.push_back(lr);
    if (rule_.takes_iteration) inputs.push_back(iteration);
    inputs.push_back(clip);
    const std::vector<ValueId> updated = b_.Add(row_, attrs, std::move(inputs));
    if (!b_.ok()) return;
    for (size_t i = 0; i < states.size(); ++i) b_.graph().AddUpdate(states[i], updated[i]);
  }

  const UpdateRule& rule_;
  const OpDef& row_;
  Builder b_;
};

}  // namespace

absl::StatusOr<bool> AddOptimizer(Module& module, const PassContext& context) {
  const auto micro =
      std::find_if(module.programs.begin(), module.programs.end(),
                   [](const Program& p) { return p.kind == ProgramKind::kMicroFirst; });
  if (micro == module.programs.end()) return false;  // nothing is trained
  module.buckets = MakeBuckets(micro->graph, context.update);
  if (module.buckets.empty()) {
    return InvalidArgument("no parameter is trained: `model.freeze` matches all of them");
  }
  Program update{.kind = ProgramKind::kUpdate};
  update.graph.name = update.Name();
  RETURN_IF_ERROR(UpdateBuilder(&update.graph, context).Build(module.buckets),
                  "while building the update program");
  module.programs.push_back(std::move(update));
  return true;
}

}  // namespace capstan
