#include "engine/train/pretrained.h"

#include <fmt/format.h>

#include <utility>

#include "engine/base/status.h"
#include "engine/train/model_state.h"
#include "engine/weights/match_weights.h"

namespace capstan {
namespace {

template <typename T>
void Transpose(const TensorView& from, const TensorView& to) {
  const int64_t rows = to.type.shape[0], columns = to.type.shape[1];
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      to.Data<T>()[r * columns + c] = from.Data<T>()[c * rows + r];
    }
  }
}

absl::Status Load(Executor& executor, const StateEntry& entry, const WeightsFile& file,
                  const MatchedWeight& match) {
  HostTensor host({entry.type.dtype, match.stored});
  RETURN_IF_ERROR(file.Read(file.entries()[match.entry], host.view()));
  if (match.transposed) {
    HostTensor turned({entry.type.dtype, entry.type.shape});
    if (entry.type.dtype == DType::kF64) {
      Transpose<double>(host.view(), turned.view());
    } else {
      Transpose<float>(host.view(), turned.view());
    }
    host = std::move(turned);
  }
  return WriteState(executor, entry, host.view());
}

}  // namespace

absl::StatusOr<PretrainedReport> LoadPretrained(Executor& executor, const ModelRow& model,
                                                const std::string& path) {
  ASSIGN_OR_RETURN(const WeightsFile file, WeightsFile::Open(path));
  std::vector<const StateEntry*> entries;
  std::vector<WantedWeight> wanted;
  for (const StateEntry& entry : executor.plan().state) {
    if (GroupOf(entry) != StateGroup::kWeights) continue;
    entries.push_back(&entry);
    wanted.push_back({entry.name, entry.type.shape});
  }
  const std::vector<WeightNames> names =
      model.weight_names == nullptr ? std::vector<WeightNames>{} : model.weight_names();
  ASSIGN_OR_RETURN(const WeightMatch match, MatchWeights(file, wanted, names));
  for (const MatchedWeight& m : match.matched) {
    RETURN_IF_ERROR(Load(executor, *entries[m.wanted], file, m), "while reading {}",
                    wanted[m.wanted].name);
  }
  return PretrainedReport{
      .loaded = match.matched.size(),
      .wanted = wanted.size(),
      .source = fmt::format("{} ({}, {} names)", file.path(), file.format(), match.family),
      .problems = ProblemsOf(match, file, wanted)};
}

}  // namespace capstan
