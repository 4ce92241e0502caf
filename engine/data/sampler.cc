#include "engine/data/sampler.h"

#include <limits>
#include <numeric>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/random.h"
#include "engine/base/status.h"

namespace capstan {
namespace {

// Fisher-Yates, drawn from a key: step k swaps with a place at or before k.
std::vector<uint32_t> Shuffled(int64_t size, const RandomKey& key) {
  std::vector<uint32_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0u);
  for (size_t k = order.size(); k > 1; --k) std::swap(order[k - 1], order[key.Below(k, k)]);
  return order;
}

}  // namespace

SamplerState EpochOrder::StateAfter(int64_t batches, int64_t skipped) const {
  const int64_t samples =
      batches <= full_batches_ ? start_ + batches * batch_size_ * world_ : size_;
  return {.epoch = epoch_, .samples = samples, .skipped = skipped};
}

int64_t EpochOrder::At(int64_t i) const {
  CHECK(i >= 0 && count() > 0) << "place " << i << " of " << count();
  const int64_t full = full_batches_ * batch_size_;
  const int64_t global = batch_size_ * world_;
  const auto place_in_blocks = [&](int64_t k) {
    return k / batch_size_ * global + rank_ * batch_size_ + k % batch_size_;
  };
  if (i < full) return Index(start_ + place_in_blocks(i));
  if (i < count()) return Index(tail_start_ + i - full);
  i -= count();
  if (i < reserve_count_) return Index(reserve_start_ + i);
  i -= reserve_count_;
  // Counted from the start of the epoch, not of this order: a resumed run fills alike.
  const int64_t whole = size_ / global * batch_size_;
  return whole > 0 ? Index(place_in_blocks(i % whole)) : Index(tail_start_ + i % tail_count_);
}

absl::StatusOr<Sampler> Sampler::Create(const SamplerOptions& options) {
  CHECK(options.batch_size > 0 && options.world > 0) << "batch size and world are positive";
  CHECK(options.rank >= 0 && options.rank < options.world)
      << "rank " << options.rank << " of " << options.world;
  CHECK_LT(options.size, int64_t{std::numeric_limits<uint32_t>::max()});
  if (options.size == 0) return InvalidArgument("the data set holds no sample");
  Sampler sampler(options);
  if (options.mode == SamplerMode::kEvaluate) {
    sampler.options_.shuffle = false;
    sampler.options_.drop_last = false;
    return sampler;
  }
  const int64_t global = options.batch_size * options.world;
  const std::string ranks =
      options.world == 1 ? "" : fmt::format(" on each of {} ranks", options.world);
  if (options.drop_last && options.size < global) {
    return InvalidArgument("{} samples, batch {}{}, drop_last: no step possible; lower batch_size",
                           options.size, options.batch_size, ranks);
  }
  const int64_t tail = options.size % global;
  if (!options.drop_last && tail > 0 && tail < options.world) {
    return InvalidArgument(
        "{} samples, batch {}{}, drop_last: false: the last batch has {} sample(s), so that some "
        "ranks have none; use drop_last: true or another batch_size",
        options.size, options.batch_size, ranks, tail);
  }
  return sampler;
}

EpochOrder Sampler::Cut(const SamplerState& state) const {
  const SamplerOptions& o = options_;
  CHECK(state.samples >= 0 && state.samples <= o.size) << state.samples << " of " << o.size;
  const int64_t global = o.batch_size * o.world;
  EpochOrder order;
  order.epoch_ = state.epoch;
  order.start_ = state.samples;
  order.size_ = o.size;
  order.batch_size_ = o.batch_size;
  order.rank_ = o.rank;
  order.world_ = o.world;
  order.full_batches_ = (o.size - state.samples) / global;
  const int64_t tail_start = state.samples + order.full_batches_ * global;
  const int64_t tail = o.size - tail_start;
  const int64_t begin = tail_start + o.rank * tail / o.world;
  const int64_t count = tail_start + (o.rank + 1) * tail / o.world - begin;
  (o.drop_last ? order.reserve_start_ : order.tail_start_) = begin;
  (o.drop_last ? order.reserve_count_ : order.tail_count_) = count;
  return order;
}

EpochOrder Sampler::Order(const SamplerState& state) const {
  EpochOrder order = Cut(state);
  if (options_.shuffle) {
    const RandomKey key =
        RandomKey(options_.seed).Mix("sampler").Mix(static_cast<uint64_t>(state.epoch));
    order.permutation_ =
        std::make_shared<const std::vector<uint32_t>>(Shuffled(options_.size, key));
  }
  return order;
}

int64_t Sampler::dropped_per_epoch() const {
  return options_.drop_last ? options_.size % (options_.batch_size * options_.world) : 0;
}

}  // namespace capstan
