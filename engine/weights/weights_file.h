// WeightsFile: the named tensors of a file of trained weights, whoever wrote it:
//
//   safetensors     one file, or several behind *.safetensors.index.json
//   PyTorch         .pth, .pt: torch.save(model.state_dict(), ...), the form before 1.6 too
//   PaddlePaddle    .pdparams: paddle.save(model.state_dict(), ...)
//
// The format is told by the content, not by the name. No code of a file is ever executed
// (pickle.h). Nothing is read before it is asked for, so a file may be larger than memory; sizes
// and places are checked while opening. Immutable: safe from any thread.
//
//   ASSIGN_OR_RETURN(const WeightsFile file, WeightsFile::Open("resnet50.pdparams"));
//   RETURN_IF_ERROR(file.Read(file.entries()[0], tensor.view()));
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/tensor/tensor_view.h"
#include "engine/weights/byte_source.h"
#include "engine/weights/stored_tensor.h"

namespace capstan {

struct WeightEntry {
  std::string name;
  TensorType type;         // as stored, row-major; meaningless where `unreadable` is set
  std::string unreadable;  // why it cannot be read; empty: it can
  size_t index = 0;        // in entries()
};

class WeightsFile {
 public:
  // NotFound; DataLoss where the file is damaged; InvalidArgument where it is something else, with
  // what to do. A missing file is looked for with ".pdparams" behind its name, as Paddle does.
  static absl::StatusOr<WeightsFile> Open(const std::string& path);
  // The same for a file of PyTorch or PaddlePaddle in memory, which must outlive the result.
  static absl::StatusOr<WeightsFile> OpenPickled(std::shared_ptr<const ByteSource> source);

  const std::string& path() const { return path_; }
  const char* format() const { return format_; }  // "safetensors", "PyTorch", "PaddlePaddle"
  // In the order of the file; names are unique.
  const std::vector<WeightEntry>& entries() const { return entries_; }

  // Fills `to`, a row-major f32 or f64 tensor of the entry's shape, from any float type.
  // InvalidArgument where the entry is no float or cannot be read.
  absl::Status Read(const WeightEntry& entry, const TensorView& to) const;

 private:
  absl::StatusOr<HostTensor> ReadAsStored(const WeightEntry& entry) const;

  std::string path_;
  const char* format_ = "";
  std::vector<WeightEntry> entries_;
  // One of the two.
  std::optional<TensorFiles> safetensors_;
  std::shared_ptr<const ByteSource> source_;
  std::vector<StoredTensor> stored_;  // as entries_
};

}  // namespace capstan
