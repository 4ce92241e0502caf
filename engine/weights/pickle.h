// Pickle: reads the pickles in which PyTorch and PaddlePaddle save weights, and executes nothing.
//
// A pickle is a program for a stack machine (Python's pickletools documents it) that may name any
// function to be called. This interpreter knows the opcodes of protocols 1 to 4 that such files
// need and a closed table of names (pickle.cc, kGlobals), each with an action of our own; any other
// opcode or name is an error with its place in the file. Python is not involved.
//
// Every size is checked before it is believed, objects are limited in number, and long texts and
// bytes stay in the file as ranges. Immutable once read; the source must outlive it.
//
//   ASSIGN_OR_RETURN(const Pickle pickle, Pickle::Read(*source, {0, source->size()}));
//   pickle.root().kind == PickleKind::kDict;
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/weights/byte_source.h"
#include "engine/weights/stored_tensor.h"

namespace capstan {

using PickleId = int32_t;

enum class PickleKind : uint8_t {
  kNone,
  kBool,
  kInt,
  kText,     // UTF-8
  kBytes,    // also long integers
  kTuple,    // these two: items
  kList,     //
  kDict,     // items: key, value, key, value
  kGlobal,   // a name of the table
  kStorage,  // of PyTorch: bytes elsewhere in the file that tensors share
  kDtype,    // of NumPy
  kTensor,
  kOther,  // what weights do not need: a float, a set, a namespace
};

struct PickleObject {
  PickleKind kind = PickleKind::kOther;
  bool latin1 = false;  // kBytes: stored as text, one character a byte
  // kBool, kInt: the value. kGlobal, kDtype: a row of a table. kStorage, kTensor: an index.
  int64_t number = 0;
  ByteRange range;  // kText, kBytes
  std::vector<PickleId> items;
};

struct PickleStorage {
  const ElementRow* element = nullptr;
  std::string key;    // names its bytes
  int64_t count = 0;  // elements
};

// A tensor without its name. `storage` is an index, or -1 where `tensor.data` is known already.
struct PickleTensor {
  StoredTensor tensor;
  int64_t storage = -1;
  bool filled = false;  // false: an array that was announced and never came
};

class Pickle {
 public:
  // Reads one pickle, which may end before the range does. DataLoss where it is damaged,
  // InvalidArgument where it asks for more than data.
  static absl::StatusOr<Pickle> Read(const ByteSource& source, const ByteRange& range);

  const PickleObject& root() const { return at(root_); }
  const PickleObject& at(PickleId id) const { return objects_[static_cast<size_t>(id)]; }
  const std::vector<PickleStorage>& storages() const { return storages_; }
  const std::vector<PickleTensor>& tensors() const { return tensors_; }
  // The byte after its last opcode.
  uint64_t end() const { return end_; }
  // A text, a name at most: DataLoss where it is longer than 4 KiB.
  absl::StatusOr<std::string> TextOf(const PickleObject& object) const;

 private:
  friend class PickleMachine;

  const ByteSource* source_ = nullptr;
  std::vector<PickleObject> objects_;
  std::vector<PickleStorage> storages_;
  std::vector<PickleTensor> tensors_;
  PickleId root_ = 0;
  uint64_t end_ = 0;
};

}  // namespace capstan
