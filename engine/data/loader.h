// Loader: makes the batches of one rank, in order, by worker threads ahead of their use.
//
// What it hands out is a pure function of (seed, state): the number of workers, the prefetch depth
// and the timing never matter. An augmentation draws from (seed, epoch, dataset index).
// Bad samples: in training the slot goes to the next sample of the rank's order; an evaluation's
// batch becomes smaller (a batch without any sound sample is left out). Beyond the limit Next fails
// with kDataLoss. Batches use a fixed set of buffers; nothing is allocated for them after warm-up.
// Next and Recycle may be called from one thread each; the destructor stops the workers at once.
//
//   ASSIGN_OR_RETURN(auto loader, Loader::Create(source, {.sampler = {...}, .seed = 42}));
//   while (true) {
//     ASSIGN_OR_RETURN(BatchPtr batch, loader->Next());
//     if (batch == nullptr) break;        // the end of an epoch; the next call begins the next one
//     Train(*batch);
//   }
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>

#include "absl/status/statusor.h"
#include "engine/data/batch.h"
#include "engine/data/loader_options.h"
#include "engine/data/sample_source.h"
#include "engine/data/sampler.h"

namespace capstan {

// Where batches live; for page-locked memory. 64-byte aligned.
struct HostAllocator {
  std::function<void*(size_t bytes)> allocate;
  std::function<void(void*)> release;
};

struct LoaderConfig {
  SamplerOptions sampler;  // its size is taken from the source
  LoaderOptions loader;
  BadSampleOptions bad_samples;
  uint64_t seed = 0;   // of the augmentation
  SamplerState start;  // where to go on
  // No epoch from this one on is read.
  int64_t end_epoch = std::numeric_limits<int64_t>::max();
  int64_t ranks_on_host = 1;  // share the cores, when num_workers is auto
  int64_t max_held = 2;       // batches that the user holds at the same time
  HostAllocator allocator;    // ordinary memory when not set
  // Set (by a signal handler, say): Next does not wait for a batch any more. Outlives the loader.
  const std::atomic<bool>* stop = nullptr;
};

class Loader : public BatchOwner {
 public:
  static absl::StatusOr<std::unique_ptr<Loader>> Create(std::shared_ptr<const SampleSource> source,
                                                        const LoaderConfig& config);
  // Memory of the batches that such a loader keeps, in bytes: those ahead and those held.
  static int64_t BufferBytes(const SampleSource& source, const LoaderConfig& config);
  virtual ~Loader() = default;

  // The next batch, null at the end of each epoch (and for ever from end_epoch on). After an error
  // every further call fails alike. Cancelled: `stop` was set before the batch was ready; nothing
  // is lost, state() is as it was.
  virtual absl::StatusOr<BatchPtr> Next() = 0;

  // Where a run that has used all batches handed out so far goes on. After the null that ends an
  // epoch: the start of the next one.
  virtual SamplerState state() const = 0;
  // Bad samples that came after the last batch of the epoch that just ended (evaluation only).
  virtual const std::vector<BadSample>& bad_at_end() const = 0;
  // Seconds that Next spent waiting, since the start.
  virtual double waited_seconds() const = 0;
  virtual const Sampler& sampler() const = 0;
  virtual int64_t num_workers() const = 0;
};

}  // namespace capstan
