#include "engine/plan/lower.h"

#include <algorithm>
#include <map>

#include "engine/base/status.h"
#include "engine/plan/memory.h"
#include "engine/plan/state_layout.h"

namespace capstan {
namespace {

// Moves a value into its state where it could not be computed there.
void CopyKernel(KernelContext& context, std::span<const TensorView> outputs,
                std::span<const TensorView> inputs, const AnyStruct&) {
  const TensorView &from = inputs[0], &to = outputs[0];
  if (context.libraries == nullptr) return CopyTensor(from, to);
  CHECK(SameOrder(from.type, to.type)) << "a state of another order than its update";
  context.status = context.libraries->CopyOnDevice(to.data, from.data, to.type.bytes());
}
constexpr KernelRow kCopy = {.op = "copy", .impl = "plan", .fn = CopyKernel};

// Lowers one program. Values that share memory form a storage; storages are what is placed.
class ProgramLowering {
 public:
  ProgramLowering(const Program& source, const KernelTable& kernels, const LowerOptions& options,
                  const std::map<std::string, const StateEntry*>& state)
      : source_(source),
        graph_(source.graph),
        kernels_(kernels),
        options_(options),
        state_(state) {}

  absl::StatusOr<PlannedProgram> Run() {
    program_.kind = source_.kind;
    program_.shapes = source_.shapes;
    program_.name = source_.Name();
    end_ = static_cast<int32_t>(graph_.nodes().size());
    RETURN_IF_ERROR(ChooseKernels());
    FindLastUses();
    BindInputs();
    ClaimUpdates();
    AssignStorages();
    AddCopies();
    Place();
    return std::move(program_);
  }

 private:
  struct Storage {
    Arena arena = Arena::kScratch;
    int64_t offset = 0;
    LiveRange range;
  };

  static constexpr int32_t kUnassigned = -1;

  // Step i is node i; copies for updates follow. Buffer v is value v.
  absl::Status ChooseKernels() {
    for (const Value& v : graph_.values()) program_.buffers.push_back({.type = v.type});
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const Node& node = graph_.nodes()[i];
      RETURN_IF_ERROR(ChooseKernel(node), "while planning '{}' of program {}",
                      node.scope.empty() ? node.op->name : node.scope, program_.name);
    }
    return absl::OkStatus();
  }

  absl::Status ChooseKernel(const Node& node) {
    OpCall call = CallOf(graph_, node);
    Step step{.attrs = node.attrs, .outputs = node.outputs, .inputs = node.inputs};
    step.label = node.scope.empty() ? node.op->name : node.scope;
    std::string impl = options_.impl;
    for (const ValueId v : node.inputs) {
      // Opaque bytes are read by the implementation that wrote them.
      if (v != kNoValue && graph_.type(v).dtype == DType::kOpaque) {
        impl = program_.steps[static_cast<size_t>(graph_.value(v).producer)].kernel->impl;
      }
    }
    ASSIGN_OR_RETURN(step.kernel, kernels_.Select(call, options_.device, impl));
    const KernelRow& row = *step.kernel;
    if (row.prepare != nullptr) {
      ASSIGN_OR_RETURN(step.prepared, row.prepare(call, options_.libraries));
    }
    if (row.workspace_bytes != nullptr) {
      step.workspace_bytes = row.workspace_bytes(call, step.prepared.get());
    }
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      if (call.outputs[o].dtype != DType::kOpaque || row.saved_bytes == nullptr) continue;
      program_.buffers[static_cast<size_t>(node.outputs[o])].type.shape = {
          row.saved_bytes(call, step.prepared.get(), static_cast<int>(o))};
    }
    step.cost = node.op->cost(call);
    if (IsView(node)) step.cost = {};
    program_.cost.flops += step.cost.flops;
    program_.cost.bytes += step.cost.bytes;
    program_.steps.push_back(std::move(step));
    return absl::OkStatus();
  }

  bool IsView(const Node& node) const {
    return node.op->traits.view && IsRowMajor(graph_.type(node.inputs[0])) &&
           IsRowMajor(graph_.type(node.outputs[0]));
  }
  static bool IsRowMajor(const TensorType& type) {
    TensorType plain = type;
    plain.format = MemoryFormat::kPlain;
    return SameOrder(type, plain);
  }

  // The last step that reads each value; end_ for those that outlive the steps.
  void FindLastUses() {
    last_use_.assign(graph_.values().size(), -1);
    for (int32_t i = 0; i < end_; ++i) {
      const Node& node = graph_.nodes()[static_cast<size_t>(i)];
      for (const ValueId v : node.outputs) last_use_[static_cast<size_t>(v)] = i;
      for (const ValueId v : node.inputs) {
        if (v != kNoValue) last_use_[static_cast<size_t>(v)] = i;
      }
    }
    for (const GraphOutput& o : graph_.outputs()) last_use_[static_cast<size_t>(o.value)] = end_;
    for (const StateUpdate& u : graph_.updates()) last_use_[static_cast<size_t>(u.value)] = end_;
    // Through views, uses of the view are uses of what it shows.
    for (int32_t i = end_ - 1; i >= 0; --i) {
      const Node& node = graph_.nodes()[static_cast<size_t>(i)];
      if (!IsView(node)) continue;
      int32_t& last = last_use_[static_cast<size_t>(node.inputs[0])];
      last = std::max(last, last_use_[static_cast<size_t>(node.outputs[0])]);
    }
  }

  void BindInputs() {
    storage_of_.assign(graph_.values().size(), kUnassigned);
    for (const GraphInput& in : graph_.inputs()) {
      if (in.kind == InputKind::kData) {
        const auto index = static_cast<int64_t>(program_.inputs.size());
        SetStorage(in.value, {.arena = Arena::kInput, .offset = index});
        program_.inputs.push_back({in.name, in.value});
      } else {
        const StateEntry* entry = state_.at(in.name);
        SetStorage(in.value, {.arena = Arena::kState, .offset = entry->offset});
      }
    }
  }

  void SetStorage(ValueId v, Storage storage) {
    storage_of_[static_cast<size_t>(v)] = static_cast<int32_t>(storages_.size());
    storages_.push_back(storage);
  }

  // Values that can be computed straight into the state they update.
  void ClaimUpdates() {
    claimed_.assign(graph_.values().size(), kNoValue);
    for (const StateUpdate& u : graph_.updates()) {
      if (CanComputeInState(u)) {
        claimed_[static_cast<size_t>(u.value)] = u.state;
      } else if (u.value != u.state) {
        copies_.push_back(u);
      }
    }
  }

  bool CanComputeInState(const StateUpdate& u) const {
    const Node* producer = graph_.ProducerOf(u.value);
    if (producer == nullptr || IsView(*producer)) return false;
    if (claimed_[static_cast<size_t>(u.value)] != kNoValue) return false;
    if (graph_.type(u.value) != graph_.type(u.state)) return false;
    const int32_t made = graph_.value(u.value).producer;
    const int32_t last_read = last_use_[static_cast<size_t>(u.state)];
    if (last_read > made) return false;
    return last_read < made || AllowsInPlace(*producer, graph_.value(u.value).output, u.state);
  }

  // Whether the row may write `output` over `input`, which it reads once.
  static bool AllowsInPlace(const Node& node, int output, ValueId input) {
    if (std::count(node.inputs.begin(), node.inputs.end(), input) != 1) return false;
    return std::any_of(node.op->traits.in_place.begin(), node.op->traits.in_place.end(),
                       [&](const InPlacePair& p) {
                         return p.output == output &&
                                p.input < static_cast<int>(node.inputs.size()) &&
                                node.inputs[static_cast<size_t>(p.input)] == input;
                       });
  }

  void AssignStorages() {
    for (int32_t i = 0; i < end_; ++i) {
      const Node& node = graph_.nodes()[static_cast<size_t>(i)];
      if (IsView(node)) {
        storage_of_[static_cast<size_t>(node.outputs[0])] = StorageIndex(node.inputs[0]);
        continue;
      }
      for (size_t o = 0; o < node.outputs.size(); ++o) {
        AssignOutput(node, static_cast<int>(o), i);
      }
    }
  }

  void AssignOutput(const Node& node, int output, int32_t step) {
    const ValueId v = node.outputs[static_cast<size_t>(output)];
    if (const ValueId state = claimed_[static_cast<size_t>(v)]; state != kNoValue) {
      storage_of_[static_cast<size_t>(v)] = StorageIndex(state);
      return;
    }
    const int64_t bytes = program_.buffers[static_cast<size_t>(v)].type.bytes();
    const int32_t last = last_use_[static_cast<size_t>(v)];
    const ValueId over = InPlaceInput(node, output, step);
    if (over != kNoValue) {
      storage_of_[static_cast<size_t>(v)] = StorageIndex(over);
      Extend(v, last);
      return;
    }
    SetStorage(v, {.range = {.bytes = bytes, .first = step, .last = last}});
  }

  // An input that the output may overwrite: scratch, of the same type, dead afterwards.
  ValueId InPlaceInput(const Node& node, int output, int32_t step) const {
    const ValueId v = node.outputs[static_cast<size_t>(output)];
    for (const InPlacePair& pair : node.op->traits.in_place) {
      if (pair.output != output || pair.input >= static_cast<int>(node.inputs.size())) continue;
      const ValueId in = node.inputs[static_cast<size_t>(pair.input)];
      if (in == kNoValue || graph_.type(in) != graph_.type(v)) continue;
      if (!AllowsInPlace(node, output, in)) continue;
      const Storage& storage = storages_[static_cast<size_t>(StorageIndex(in))];
      // The storage's own end counts the views of it as well; another output of this step that
      // took it already has moved that end beyond this step.
      if (storage.arena != Arena::kScratch || storage.range.last != step) continue;
      if (last_use_[static_cast<size_t>(in)] != step || TakenInThisStep(node, output, in)) continue;
      return in;
    }
    return kNoValue;
  }

  bool TakenInThisStep(const Node& node, int output, ValueId in) const {
    for (int o = 0; o < output; ++o) {
      if (StorageIndex(node.outputs[static_cast<size_t>(o)]) == StorageIndex(in)) return true;
    }
    return false;
  }

  int32_t StorageIndex(ValueId v) const { return storage_of_[static_cast<size_t>(v)]; }

  void Extend(ValueId v, int32_t last) {
    LiveRange& range = storages_[static_cast<size_t>(StorageIndex(v))].range;
    range.last = std::max(range.last, last);
  }

  void AddCopies() {
    for (const StateUpdate& c : copies_) {
      program_.steps.push_back({.kernel = &kCopy,
                                .attrs = AnyStruct::Of(NoAttrs{}),
                                .outputs = {c.state},
                                .inputs = {c.value},
                                .cost = {0, 2.0 * double(graph_.type(c.value).bytes())},
                                .label = graph_.InputOf(c.state)->name});
    }
  }

  void Place() {
    std::vector<LiveRange> ranges;
    for (const Storage& s : storages_) {
      if (s.arena == Arena::kScratch) ranges.push_back(s.range);
    }
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      const auto step = static_cast<int32_t>(i);
      if (program_.steps[i].workspace_bytes > 0) {
        ranges.push_back({program_.steps[i].workspace_bytes, step, step});
      }
    }
    program_.scratch_bytes = PlaceBuffers(&ranges);
    size_t next = 0;
    for (Storage& s : storages_) {
      if (s.arena == Arena::kScratch) s.offset = ranges[next++].offset;
    }
    for (Step& step : program_.steps) {
      if (step.workspace_bytes > 0) step.workspace_offset = ranges[next++].offset;
    }
    for (size_t v = 0; v < program_.buffers.size(); ++v) {
      const Storage& s = storages_[static_cast<size_t>(storage_of_[v])];
      program_.buffers[v].arena = s.arena;
      program_.buffers[v].offset = s.offset;
    }
    for (const GraphOutput& o : graph_.outputs()) program_.outputs.push_back({o.name, o.value});
    // Views are memory under another type: nothing is to do at run time.
    std::vector<Step> steps;
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      const bool view = i < graph_.nodes().size() && IsView(graph_.nodes()[i]);
      if (!view) steps.push_back(std::move(program_.steps[i]));
    }
    program_.steps = std::move(steps);
  }

  const Program& source_;
  const Graph& graph_;
  const KernelTable& kernels_;
  const LowerOptions& options_;
  const std::map<std::string, const StateEntry*>& state_;

  PlannedProgram program_;
  int32_t end_ = 0;  // the number of nodes: "after all steps"
  std::vector<int32_t> last_use_;
  std::vector<int32_t> storage_of_;
  std::vector<Storage> storages_;
  std::vector<ValueId> claimed_;  // by value: the state it is computed into
  std::vector<StateUpdate> copies_;
};

}  // namespace

absl::StatusOr<Plan> BuildPlan(const Module& module, const KernelTable& kernels,
                               const LowerOptions& options) {
  Plan plan{.device = options.device};
  plan.state = LayOutState(module, &plan.state_bytes);
  std::map<std::string, const StateEntry*> state;
  for (const StateEntry& e : plan.state) state.emplace(e.name, &e);
  for (const Program& p : module.programs) {
    ASSIGN_OR_RETURN(PlannedProgram program, ProgramLowering(p, kernels, options, state).Run());
    plan.scratch_bytes = std::max(plan.scratch_bytes, program.scratch_bytes);
    plan.programs.push_back(std::move(program));
  }
  return plan;
}

}  // namespace capstan
