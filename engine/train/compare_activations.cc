#include "engine/train/compare_activations.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/status.h"
#include "engine/base/text.h"

namespace capstan {
namespace {

constexpr char kInput[] = "input";

// "layer1.0.conv1" -> "layer1/0/conv1": a scope has no dots.
std::string ScopeOf(std::string name) {
  std::replace(name.begin(), name.end(), '.', '/');
  return name;
}

LayerDifference Compare(const std::string& scope, const TensorView& ours, const TensorView& golden,
                        double tolerance) {
  LayerDifference d{.scope = scope, .shape = ours.type.shape, .golden_shape = golden.type.shape};
  if (d.shape != d.golden_shape) {
    d.differs = true;
    return d;
  }
  const auto a = ours.Elements<float>(), b = golden.Elements<float>();
  size_t worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    d.scale = std::max(d.scale, double{std::abs(b[i])});
    const double difference = std::abs(double{a[i]} - double{b[i]});
    // Also where one is not a number and nothing was worse so far.
    if (difference > d.difference || (std::isnan(difference) && !std::isnan(d.difference))) {
      d.difference = difference;
      worst = i;
    }
    if (std::isnan(d.difference)) break;
  }
  if (!a.empty()) {
    d.ours = double{a[worst]};
    d.golden = double{b[worst]};
  }
  auto rest = static_cast<int64_t>(worst);
  for (int i = d.shape.ndim(); i-- > 0;) {
    d.index.insert(d.index.begin(), rest % std::max<int64_t>(d.shape[i], 1));
    rest /= std::max<int64_t>(d.shape[i], 1);
  }
  d.differs = !(d.difference <= tolerance * d.scale);
  return d;
}

}  // namespace

absl::StatusOr<GoldenActivations> GoldenActivations::Open(const std::string& path) {
  GoldenActivations golden;
  ASSIGN_OR_RETURN(golden.file_, WeightsFile::Open(path));
  for (const WeightEntry& entry : golden.file_.entries()) {
    if (entry.name != kInput) continue;
    if (!entry.unreadable.empty() || entry.type.ndim() != 4) {
      return InvalidArgument("{}: `input` is {}, wanted are images [n,c,h,w]", path,
                             entry.type.ToString());
    }
    const HostTensor plain({DType::kF32, entry.type.shape});
    RETURN_IF_ERROR(golden.file_.Read(entry, plain.view()));
    golden.input_ = HostTensor({DType::kF32, entry.type.shape, MemoryFormat::kChannelsLast});
    CopyTensor(plain.view(), golden.input_.view());
    return golden;
  }
  return InvalidArgument(
      "{}: there is no tensor `input`; tools/compare/save_activations.py makes such files", path);
}

absl::StatusOr<std::vector<std::string>> GoldenActivations::ScopesOf(const Graph& graph) const {
  std::vector<std::pair<NodeId, std::string>> found;
  for (const WeightEntry& entry : file_.entries()) {
    const std::string scope = ScopeOf(entry.name);
    const NodeId node = LastNodeIn(graph, scope);
    if (node != kNoNode) found.emplace_back(node, scope);
  }
  if (found.empty()) {
    return InvalidArgument(
        "{}: none of its {} names is a scope of the model; `explain --show "
        "model` shows them behind @",
        file_.path(), file_.entries().size());
  }
  // Of two scopes that end in the same node the inner one comes first.
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second.size() > b.second.size();
  });
  std::vector<std::string> scopes;
  for (auto& [node, scope] : found) scopes.push_back(std::move(scope));
  return scopes;
}

std::vector<std::string> GoldenActivations::StrangersTo(const Graph& graph) const {
  std::vector<std::string> names;
  for (const WeightEntry& entry : file_.entries()) {
    if (entry.name != kInput && LastNodeIn(graph, ScopeOf(entry.name)) == kNoNode) {
      names.push_back(entry.name);
    }
  }
  return names;
}

absl::StatusOr<HostTensor> GoldenActivations::Activation(const std::string& scope) const {
  for (const WeightEntry& entry : file_.entries()) {
    if (ScopeOf(entry.name) != scope) continue;
    HostTensor tensor(TensorType{DType::kF32, entry.type.shape});
    RETURN_IF_ERROR(file_.Read(entry, tensor.view()));
    return tensor;
  }
  return NotFound("{}: no activation {}", file_.path(), Quote(scope));
}

absl::StatusOr<std::vector<LayerDifference>> CompareActivations(
    Session& session, const GoldenActivations& golden, const std::vector<std::string>& scopes,
    double tolerance) {
  RETURN_IF_ERROR(session.RunEvaluate({.image = golden.input()}).status());
  const int program =
      session.plan().FindProgram(ProgramKind::kEvaluate, ShapesText(golden.input_shape()));
  CHECK(program >= 0) << "it has just run";
  std::vector<LayerDifference> layers;
  for (const std::string& scope : scopes) {
    const TensorView output = session.executor().Output(program, scope);
    const HostTensor staged(output.type);
    RETURN_IF_ERROR(
        session.executor().device().CopyToHost(staged.data(), output.data, output.type.bytes()));
    const HostTensor ours(TensorType{DType::kF32, output.type.shape});
    CopyTensor(staged.view(), ours.view());
    ASSIGN_OR_RETURN(const HostTensor theirs, golden.Activation(scope));
    layers.push_back(Compare(scope, ours.view(), theirs.view(), tolerance));
  }
  return layers;
}

}  // namespace capstan
