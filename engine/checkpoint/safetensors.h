// Safetensors files: named tensors behind a JSON header, as Hugging Face's `safetensors` reads and
// writes them (https://github.com/huggingface/safetensors, "Format").
//
// A file that opens is sound: the header is valid JSON without duplicate names, every size fits its
// type, and the tensors cover the data without a hole, an overlap or a byte left over. Nothing of a
// header is believed before it is checked. Data is read when asked for, with pread, so a file that
// shrinks later is an error and never a crash. Open files are immutable: safe from any thread.
//
//   ASSIGN_OR_RETURN(TensorFiles weights, TensorFiles::Open("resnet50.safetensors"));
//   RETURN_IF_ERROR(weights.Read("fc.weight", tensor));
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/checkpoint/file_io.h"
#include "engine/tensor/tensor_type.h"
#include "engine/tensor/tensor_view.h"

namespace capstan {

// One tensor of a file. Tensors that we have no type for (other dtypes, more than 8 dimensions) are
// listed, and refuse to be read.
struct SafetensorsEntry {
  std::string name;
  TensorType type;    // row-major; meaningless where `unreadable` is set
  std::string dtype;  // as the file spells it: "F32"
  std::vector<int64_t> dims;
  uint64_t offset = 0;  // of the first byte, from the start of the file
  uint64_t bytes = 0;
  std::string unreadable;  // why it cannot be read; empty: it can
};

class SafetensorsFile {
 public:
  // NotFound, or DataLoss that says what is wrong with the file.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  const std::string& path() const { return path_; }
  // In the order of the header.
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // Null when there is none of that name.
  const SafetensorsEntry* Find(std::string_view name) const;
  // Fills `to`, whose dtype and shape must be the stored ones; its memory format is free.
  // NotFound (with the nearest name), InvalidArgument (with both types).
  absl::Status Read(std::string_view name, const TensorView& to) const;

 private:
  std::string path_;
  FileHandle file_;
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, std::string> metadata_;
  std::unordered_map<std::string, size_t> index_;
};

// The tensors of one file, or of several that an index file `*.safetensors.index.json` lists.
class TensorFiles {
 public:
  static absl::StatusOr<TensorFiles> Open(const std::string& path);
  static absl::StatusOr<TensorFiles> OpenAll(const std::vector<std::string>& paths);

  const std::vector<SafetensorsFile>& files() const { return files_; }
  // In the order of the files and their headers.
  std::vector<std::string> Names() const;
  const SafetensorsEntry* Find(std::string_view name) const;
  absl::Status Read(std::string_view name, const TensorView& to) const;

 private:
  std::vector<SafetensorsFile> files_;
  std::unordered_map<std::string, size_t> file_of_;
};

// A tensor to be written; the name is UTF-8, the memory belongs to the caller.
struct NamedTensor {
  std::string name;
  TensorView tensor;
};

// Writes a file that appears under `path` only when it is complete and on the disk. The tensors
// are written row-major, larger elements first so that each is aligned to its element size, else
// in the given order; the data begins at a multiple of 8. InvalidArgument for duplicate or bad
// names and for kOpaque; ResourceExhausted when the disk is full.
absl::StatusOr<FileSummary> WriteSafetensors(
    const std::string& path, std::span<const NamedTensor> tensors,
    const std::map<std::string, std::string>& metadata = {});

// The same into an open file, which the caller finishes.
absl::Status WriteSafetensorsTo(OutputFile& file, std::span<const NamedTensor> tensors,
                                const std::map<std::string, std::string>& metadata = {});

// "F32" for kF32 and so on; null for kOpaque.
const char* SafetensorsNameOf(DType dtype);
// True for text that JSON can hold.
bool IsUtf8(std::string_view text);

}  // namespace capstan
