#include <fmt/format.h>

#include "engine/base/status.h"
#include "engine/base/text.h"
#include "engine/train/model_state.h"
#include "tools/trainer/commands.h"
#include "tools/trainer/exit_status.h"
#include "tools/trainer/saved_model.h"

namespace capstan {

absl::StatusOr<int> ExportCommand(const CommandLine& line, const EngineTables& tables) {
  if (!line.to.ends_with(".safetensors")) {
    return InvalidArgument("--to {}: export writes safetensors; name a file *.safetensors",
                           line.to);
  }
  ASSIGN_OR_RETURN(const JobSpec job, ReadJob(line, tables));
  ASSIGN_OR_RETURN(const CheckpointReader reader, OpenCheckpoint(job, line.checkpoint));
  const TensorFiles* files = reader.Group(NameOf(StateGroup::kWeights));
  if (files == nullptr) return DataLoss("{}: it has no weights", reader.path());
  std::vector<HostTensor> held;
  std::vector<NamedTensor> tensors;
  for (const std::string& name : files->Names()) {
    const char* group = NameOf(EvaluatedGroup(reader, name));
    held.emplace_back(*reader.Find(group, name));
    RETURN_IF_ERROR(reader.Read(group, name, held.back().view()), "while reading {}",
                    reader.path());
    tensors.push_back({name, held.back().view()});
  }
  // As the libraries of others mark a file with PyTorch's names.
  ASSIGN_OR_RETURN(const FileSummary written,
                   WriteSafetensors(line.to, tensors, {{"format", "pt"}}), "while writing {}",
                   line.to);
  Print(fmt::format("{}: {} tensors, {}, from {}\n", line.to, tensors.size(),
                    HumanBytes(static_cast<double>(written.bytes)), DescribeSource(reader)));
  return kExitDone;
}

}  // namespace capstan
