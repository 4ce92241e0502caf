// Weights files of PyTorch (`.pth`, `.pt`), as torch.save writes them: a ZIP archive with data.pkl
// and one entry a storage (since 1.6), or pickles in a row with the storages behind them (before).
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/weights/byte_source.h"
#include "engine/weights/pickle.h"
#include "engine/weights/stored_tensor.h"

namespace capstan {

absl::StatusOr<std::vector<StoredTensor>> ReadTorchZip(
    const std::shared_ptr<const ByteSource>& source);

// True for the pickle that opens a file of the old form.
bool OpensOldTorchFile(const ByteSource& source, const Pickle& first);
// `first` is that pickle.
absl::StatusOr<std::vector<StoredTensor>> ReadOldTorchFile(const ByteSource& source,
                                                           const Pickle& first);

}  // namespace capstan
