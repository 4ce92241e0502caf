// average: keeps moving averages of what is trained (`P@ema`) and of running statistics. The update
// program moves them after the weights; evaluate programs read them in the place of the tensors
// themselves.
#include <algorithm>
#include <set>

#include "engine/base/status.h"
#include "engine/ir/builder.h"
#include "engine/passes/pass.h"

namespace capstan {
namespace {

constexpr char kSlot[] = "ema";

// Buckets of the states that a micro program moves: running statistics.
std::vector<Bucket> StatisticsBuckets(const Graph& micro) {
  std::vector<Bucket> buckets;
  for (const StateUpdate& u : micro.updates()) {
    const GraphInput& state = *micro.InputOf(u.state);
    const TensorType& type = micro.type(u.state);
    if (SlotOwner(state.name) != state.name || !IsFloat(type.dtype)) continue;
    const std::string name = std::string(NameOf(type.dtype)) + ".statistics";
    auto bucket = std::find_if(buckets.begin(), buckets.end(),
                               [&](const Bucket& b) { return b.name == name; });
    if (bucket == buckets.end()) {
      buckets.push_back({.name = name, .dtype = type.dtype, .slots = {"weight"}});
      bucket = buckets.end() - 1;
    }
    AddSegment(state.name, type, &*bucket);
  }
  return buckets;
}

// The same graph reading `P@ema` for every P of `averaged`.
Graph ReadingAverages(const Graph& from, const std::set<std::string>& averaged) {
  Graph graph;
  graph.name = from.name;
  for (GraphInput in : from.inputs()) {
    const ValueId before = in.value;
    if (averaged.contains(in.name)) {
      in.name = SlotName(in.name, kSlot);
      in.kind = InputKind::kState;
      in.init = {};
    }
    CHECK_EQ(graph.AddInput(in, from.type(before)), before) << "the graph is not compact";
  }
  for (const Node& node : from.nodes()) {
    std::vector<TensorType> types;
    for (const ValueId v : node.outputs) types.push_back(from.type(v));
    graph.AddNode(*node.op, node.attrs, node.inputs, types, node.scope, node.origin);
  }
  for (const StateUpdate& u : from.updates()) graph.AddUpdate(u.state, u.value);
  for (const GraphOutput& o : from.outputs()) graph.AddOutput(o.name, o.value);
  return graph;
}

// What the bucket's tensors become in this update.
ValueId NewWeights(Builder& b, const Bucket& bucket) {
  const std::string name = SlotName(bucket.name, "weight");
  for (const StateUpdate& u : b.graph().updates()) {
    if (b.graph().InputOf(u.state)->name == name) return u.value;
  }
  return b.State(name, {bucket.dtype, {bucket.count}}, {});
}

}  // namespace

absl::StatusOr<bool> AddAverages(Module& module, const PassContext& context) {
  const auto of_kind = [&](ProgramKind kind) {
    return std::find_if(module.programs.begin(), module.programs.end(),
                        [&](const Program& p) { return p.kind == kind; });
  };
  const auto update = of_kind(ProgramKind::kUpdate);
  if (!context.update.ema_decay.has_value() || update == module.programs.end()) return false;
  for (Bucket& bucket : StatisticsBuckets(of_kind(ProgramKind::kMicroFirst)->graph)) {
    module.buckets.push_back(std::move(bucket));
  }
  Builder b(&update->graph, context.ops, Mode::kTrain);
  b.SetOrigin("average");
  const OpDef& row = context.ops->Get("ema_update");
  const AnyStruct attrs = AttrsFromText(
      row, "{decay=" + PrintValue(TypeOf<double>(), &*context.update.ema_decay) + "}");
  std::set<std::string> averaged;
  for (Bucket& bucket : module.buckets) {
    bucket.slots.push_back(kSlot);
    for (const Segment& s : bucket.segments) averaged.insert(s.param);
    const ValueId average =
        b.State(SlotName(bucket.name, kSlot), {bucket.dtype, {bucket.count}}, {});
    const ValueId moved = b.Add1(row, attrs, {average, NewWeights(b, bucket)});
    RETURN_IF_ERROR(b.status(), "while averaging bucket {}", bucket.name);
    b.graph().AddUpdate(average, moved);
  }
  update->graph.Compact();
  for (Program& p : module.programs) {
    if (p.kind != ProgramKind::kEvaluate) continue;
    p.graph.Compact();
    p.graph = ReadingAverages(p.graph, averaged);
  }
  return true;
}

}  // namespace capstan
