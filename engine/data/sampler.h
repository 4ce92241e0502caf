// Which samples a rank reads, and in what order: pure functions of (seed, epoch, rank, world).
//
// An epoch's order is a permutation of all samples (shuffled by a keyed Fisher-Yates) or 0..size-1.
// It is cut into global batches of world * batch_size; rank r takes the r-th part of each. So two
// ranks with batches of 4 see the same global batches as one rank with batches of 8.
// The tail: dropped in training by default; else shared out evenly as one smaller batch a rank.
// Immutable values; safe from any thread.
//
//   ASSIGN_OR_RETURN(Sampler sampler, Sampler::Create({.size = 50000, .batch_size = 128, ...}));
//   EpochOrder order = sampler.Order(SamplerState{.epoch = 3});
//   for (int64_t i = 0; i < order.count(); ++i) Use(order.At(i));
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"

namespace capstan {

enum class SamplerMode { kTrain, kEvaluate };

struct SamplerOptions {
  SamplerMode mode = SamplerMode::kTrain;
  int64_t size = 0;        // samples of the data set
  int64_t batch_size = 1;  // per data-parallel rank
  int64_t rank = 0;        // of the data-parallel ranks
  int64_t world = 1;
  bool shuffle = true;    // kEvaluate never shuffles
  bool drop_last = true;  // kEvaluate never drops
  uint64_t seed = 0;
};

// Where a run stands. `samples` names no rank, so that another layout can go on from it; `skipped`
// is this rank's own: the bad samples that it has passed over in this epoch (0 in a sound set).
struct SamplerState {
  int64_t epoch = 0;
  int64_t samples = 0;  // places of the epoch's order that whole global batches have taken
  int64_t skipped = 0;
  friend bool operator==(const SamplerState&, const SamplerState&) = default;
};

// What one rank reads from a state to the end of its epoch.
class EpochOrder {
 public:
  // Batches of this rank, and the samples that batch `k` holds when none is bad.
  int64_t batches() const { return full_batches_ + (tail_count_ > 0 ? 1 : 0); }
  int64_t BatchSize(int64_t k) const { return k < full_batches_ ? batch_size_ : tail_count_; }
  // Samples of all those batches.
  int64_t count() const { return full_batches_ * batch_size_ + tail_count_; }
  // The state after `batches` of them, when `skipped` bad samples of this epoch were passed over.
  SamplerState StateAfter(int64_t batches, int64_t skipped) const;

  // Dataset index at place `i` of this rank's order. Places from count() on fill the slots of bad
  // samples: first this rank's share of the dropped tail, then its epoch from the start again.
  int64_t At(int64_t i) const;

 private:
  friend class Sampler;

  int64_t Index(int64_t place) const {
    return permutation_ == nullptr ? place : (*permutation_)[static_cast<size_t>(place)];
  }

  std::shared_ptr<const std::vector<uint32_t>> permutation_;  // null: 0, 1, 2, ...
  int64_t epoch_ = 0, start_ = 0, size_ = 0;
  int64_t batch_size_ = 1, rank_ = 0, world_ = 1;
  int64_t full_batches_ = 0;
  int64_t tail_start_ = 0, tail_count_ = 0;        // this rank's last, smaller batch
  int64_t reserve_start_ = 0, reserve_count_ = 0;  // this rank's share of a dropped tail
};

class Sampler {
 public:
  // InvalidArgument when no step is possible, or a rank would have no sample in training.
  static absl::StatusOr<Sampler> Create(const SamplerOptions& options);

  EpochOrder Order(const SamplerState& state) const;
  // Of a whole epoch: this rank's batches and samples, and the samples that no rank sees.
  int64_t batches_per_epoch() const { return Cut({}).batches(); }
  int64_t samples_per_epoch() const { return Cut({}).count(); }
  int64_t dropped_per_epoch() const;
  // This rank's batches from a state to the end of its epoch.
  int64_t batches_left(const SamplerState& state) const { return Cut(state).batches(); }
  const SamplerOptions& options() const { return options_; }

 private:
  explicit Sampler(const SamplerOptions& options) : options_(options) {}

  EpochOrder Cut(const SamplerState& state) const;

  SamplerOptions options_;
};

}  // namespace capstan
