// Batch: the samples that one iteration works on, as named tensors.
//
// The memory belongs to the loader and is used again; a BatchPtr gives it back when it goes out of
// scope and must not outlive its loader. One thread at a time.
//
//   ASSIGN_OR_RETURN(BatchPtr batch, loader->Next());
//   const TensorView& image = batch->Get("image");   // f32[8,3,32,32]{channels_last}
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/sampler.h"
#include "engine/tensor/tensor_view.h"

namespace capstan {

// A sample that could not be read, and why.
struct BadSample {
  int64_t index = 0;   // in the data set
  std::string origin;  // file, and list file and line where there is one
  std::string reason;
};

struct BatchTensor {
  std::string name;
  TensorView view;
};

struct Batch {
  int64_t size = 0;  // samples; the first size of each tensor
  int64_t epoch = 0;
  std::vector<BatchTensor> tensors;  // the source's fields, then "index" (i64, dataset index)
  std::vector<BadSample> bad;        // passed over since the batch before
  SamplerState after;                // where a run goes on that has used this batch

  // Null when no tensor has this name.
  const TensorView* Find(std::string_view name) const;
  // A tensor that is known to be there.
  const TensorView& Get(std::string_view name) const;
};

class BatchOwner {
 public:
  virtual void Recycle(Batch* batch) = 0;

 protected:
  ~BatchOwner() = default;
};

struct ReturnBatch {
  BatchOwner* owner = nullptr;
  void operator()(Batch* batch) const { owner->Recycle(batch); }
};
using BatchPtr = std::unique_ptr<Batch, ReturnBatch>;

}  // namespace capstan
