#include "engine/train/model_state.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <span>

#include "engine/base/random.h"
#include "engine/base/status.h"
#include "engine/ir/module.h"

namespace capstan {
namespace {

double InitialValue(const Init& init, const RandomKey& key, int64_t index) {
  const auto i = static_cast<uint64_t>(index);
  switch (init.kind) {
    case InitKind::kConstant:
      return init.value;
    case InitKind::kNormal:
      return init.value * key.Normal(i);
    case InitKind::kUniform:
      return init.value * (2 * key.UniformDouble(i) - 1);
  }
  return 0;
}

void Fill(const StateEntry& entry, const RandomKey& key, const TensorView& host) {
  const int64_t count = entry.type.count();
  if (entry.type.dtype == DType::kF64) {
    for (int64_t i = 0; i < count; ++i) host.Data<double>()[i] = InitialValue(entry.init, key, i);
  } else {
    for (int64_t i = 0; i < count; ++i) {
      host.Data<float>()[i] = static_cast<float>(InitialValue(entry.init, key, i));
    }
  }
}

template <typename T>
bool AllFinite(std::span<const T> values) {
  bool finite = true;
  // No early end, so that the loop vectorises.
  for (const T x : values) finite &= std::abs(x) <= std::numeric_limits<T>::max();
  return finite;
}

bool IsFinite(const TensorView& host) {
  if (host.type.dtype == DType::kF64) return AllFinite<double>(host.Elements<double>());
  return host.type.dtype != DType::kF32 || AllFinite<float>(host.Elements<float>());
}

TensorType RowMajor(TensorType type) {
  type.format = MemoryFormat::kPlain;
  return type;
}

constexpr std::string_view kEmaEnd = "@ema";

// An entry's name in a checkpoint.
std::string StoredName(const StateEntry& entry) {
  return GroupOf(entry) == StateGroup::kEma ? std::string(SlotOwner(entry.name)) : entry.name;
}

absl::Status RestoreEntry(Executor& executor, const StateEntry& entry, StateGroup from,
                          const CheckpointReader& reader) {
  HostTensor host(RowMajor(entry.type));
  RETURN_IF_ERROR(reader.Read(NameOf(from), StoredName(entry), host.view()),
                  "while reading {}; the job must name the model and the optimizer that it was "
                  "trained with",
                  reader.path());
  return WriteState(executor, entry, host.view());
}

}  // namespace

StateGroup GroupOf(const StateEntry& entry) {
  if (entry.flat) return StateGroup::kNone;
  if (entry.name.find('@') == std::string::npos) return StateGroup::kWeights;
  if (entry.name.ends_with(kEmaEnd)) return StateGroup::kEma;
  return entry.name.ends_with("@grad") ? StateGroup::kNone : StateGroup::kOptimizer;
}

absl::Status InitializeState(Executor& executor, uint64_t seed) {
  const RandomKey root = RandomKey(seed).Mix("init");
  for (const StateEntry& entry : executor.plan().state) {
    if (GroupOf(entry) == StateGroup::kNone || !IsFloat(entry.type.dtype)) continue;
    HostTensor host(RowMajor(entry.type));
    Fill(entry, root.Mix(entry.name), host.view());
    RETURN_IF_ERROR(WriteState(executor, entry, host.view()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<HostState>> ReadState(Executor& executor, StateGroup group) {
  std::vector<HostState> all;
  for (const StateEntry& entry : executor.plan().state) {
    if (GroupOf(entry) != group) continue;
    HostState& state = all.emplace_back(HostState{.name = StoredName(entry)});
    state.view = executor.State(entry);
    if (executor.device().kind() == DeviceKind::kCpu) continue;
    state.copy = HostTensor(entry.type);
    RETURN_IF_ERROR(
        executor.device().CopyToHost(state.copy.data(), state.view.data, entry.type.bytes()));
    state.view = state.copy.view();
  }
  return all;
}

const HostState* FindNotFinite(const std::vector<HostState>& states) {
  const auto bad = std::find_if(states.begin(), states.end(),
                                [](const HostState& s) { return !IsFinite(s.view); });
  return bad == states.end() ? nullptr : &*bad;
}

absl::Status WriteState(Executor& executor, const StateEntry& entry, const TensorView& host) {
  if (host.type.shape != entry.type.shape || host.type.dtype != entry.type.dtype) {
    return InvalidArgument(
        "'{}' is {} in the file, the model needs {}; another model or other "
        "options wrote it",
        entry.name, host.type.ToString(), RowMajor(entry.type).ToString());
  }
  if (executor.device().kind() == DeviceKind::kCpu) {
    CopyTensor(host, executor.State(entry));
    return absl::OkStatus();
  }
  HostTensor staged(entry.type);
  CopyTensor(host, staged.view());
  return executor.device().CopyFromHost(executor.State(entry).data, staged.data(),
                                        entry.type.bytes());
}

absl::Status StartAverages(Executor& executor) {
  for (const StateEntry& entry : executor.plan().state) {
    if (GroupOf(entry) != StateGroup::kEma) continue;
    const TensorView followed = executor.State(SlotOwner(entry.name));
    HostTensor host(followed.type);
    RETURN_IF_ERROR(
        executor.device().CopyToHost(host.data(), followed.data, followed.type.bytes()));
    RETURN_IF_ERROR(WriteState(executor, entry, host.view()));
  }
  return absl::OkStatus();
}

const char* NameOf(StateGroup group) {
  switch (group) {
    case StateGroup::kWeights:
      return "weights";
    case StateGroup::kOptimizer:
      return "optimizer";
    case StateGroup::kEma:
      return "ema";
    case StateGroup::kNone:
      break;
  }
  return "none";
}

absl::Status RestoreState(Executor& executor, StateGroup group, const CheckpointReader& reader,
                          std::vector<std::string>* absent) {
  std::set<std::string, std::less<>> owners;  // of the slots that are there
  if (const TensorFiles* files = reader.Group(NameOf(group));
      files != nullptr && absent != nullptr) {
    for (const std::string& name : files->Names()) owners.emplace(SlotOwner(name));
  }
  for (const StateEntry& entry : executor.plan().state) {
    if (GroupOf(entry) != group) continue;
    if (absent != nullptr && !owners.contains(SlotOwner(entry.name))) {
      absent->push_back(entry.name);
      continue;
    }
    RETURN_IF_ERROR(RestoreEntry(executor, entry, group, reader));
  }
  return absl::OkStatus();
}

StateGroup EvaluatedGroup(const CheckpointReader& reader, std::string_view name) {
  return reader.Find(NameOf(StateGroup::kEma), name) != nullptr ? StateGroup::kEma
                                                                : StateGroup::kWeights;
}

absl::Status RestoreForEvaluation(Executor& executor, const CheckpointReader& reader) {
  for (const StateEntry& entry : executor.plan().state) {
    if (GroupOf(entry) != StateGroup::kWeights) continue;
    RETURN_IF_ERROR(RestoreEntry(executor, entry, EvaluatedGroup(reader, entry.name), reader));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> DigestState(Executor& executor) {
  uint64_t digest = 0;
  for (const StateGroup group : kSavedGroups) {
    ASSIGN_OR_RETURN(const std::vector<HostState> states, ReadState(executor, group));
    for (const HostState& s : states) {
      const std::string_view bytes(static_cast<const char*>(s.view.data),
                                   static_cast<size_t>(s.view.type.bytes()));
      digest = RandomKey(digest).Mix(HashText(s.name)).Mix(HashText(bytes)).key();
    }
  }
  return digest;
}

}  // namespace capstan
