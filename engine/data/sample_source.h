// SampleSource: what the loader reads from. It makes one sample at a time, in two steps: Prepare
// does the long part (reading, decoding, augmenting) before the sample's place in a batch is known
// and may find the sample bad; Finish writes the tensors into that place and cannot fail.
//
// Both are called from several threads at once, each call with a SampleWork of its own. What they
// produce depends on (index, key) only.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/base/random.h"
#include "engine/tensor/tensor_type.h"

namespace capstan {

// A tensor that every sample has. In a batch of n samples its type is [n, ...shape].
struct SampleField {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;                                 // of one sample
  MemoryFormat format = MemoryFormat::kPlain;  // of the batch

  TensorType BatchType(int64_t n) const;
};

// Memory of one sample on its way, used again for the next; each source derives its own.
class SampleWork {
 public:
  virtual ~SampleWork() = default;
};

class SampleSource {
 public:
  virtual ~SampleSource() = default;

  virtual int64_t size() const = 0;
  virtual std::span<const SampleField> fields() const = 0;
  // Where the sample comes from, for messages: "train/3/0123.png (train_list.txt:124)".
  virtual std::string Describe(int64_t index) const = 0;

  virtual std::unique_ptr<SampleWork> NewWork() const = 0;
  virtual absl::Status Prepare(int64_t index, const RandomKey& key, SampleWork* work) const = 0;
  // `out` has the sample's place in each field, in the order of fields().
  virtual void Finish(SampleWork* work, std::span<void* const> out) const = 0;
};

}  // namespace capstan
