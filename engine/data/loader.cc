#include "engine/data/loader.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/random.h"
#include "engine/base/status.h"
#include "engine/base/text.h"

namespace capstan {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kMaxAutoWorkers = 16;
constexpr size_t kExamplesInMessage = 5;
// How often a waiting Next looks whether it is to stop: a signal wakes no condition variable.
constexpr std::chrono::milliseconds kStopPeriod{50};

int64_t ResolveWorkers(const LoaderConfig& config) {
  if (config.loader.num_workers.has_value()) return *config.loader.num_workers;
  const int64_t cores = std::thread::hardware_concurrency();
  // One core of each rank is left to the training thread.
  return std::clamp<int64_t>(cores / config.ranks_on_host - 1, 1, kMaxAutoWorkers);
}

int64_t AlignUp(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

int64_t BufferCount(const LoaderConfig& config) { return config.loader.prefetch + config.max_held; }

// What a batch holds: the source's fields and the samples' numbers in the data set.
std::vector<SampleField> BatchFields(const SampleSource& source) {
  std::vector<SampleField> fields(source.fields().begin(), source.fields().end());
  fields.push_back({.name = "index", .dtype = DType::kI64});
  return fields;
}

int64_t BytesOf(const std::vector<SampleField>& fields, int64_t batch_size) {
  int64_t bytes = 0;
  for (const SampleField& f : fields) bytes += AlignUp(f.BatchType(batch_size).bytes());
  return bytes;
}

HostAllocator OrdinaryMemory() {
  return {.allocate = [](size_t bytes) { return std::aligned_alloc(kAlignment, bytes); },
          .release = [](void* p) { std::free(p); }};
}

// The work is done in four moves, each under the lock but for the long part of it:
//   issue    the next place of the rank's order gets a free item; a worker prepares its sample
//   resolve  in the order of issue: a sound sample gets its slot of the open batch, a bad one none
//   write    a worker writes a resolved sample into its slot
//   turn     when an epoch's last sample is resolved: the next epoch's order is drawn
// Slots are given at `resolve`, by order and soundness alone, so that timing never shows.
class LoaderImpl final : public Loader {
 public:
  LoaderImpl(std::shared_ptr<const SampleSource> source, const LoaderConfig& config,
             const Sampler& sampler)
      : source_(std::move(source)),
        config_(config),
        sampler_(sampler),
        fills_(config.sampler.mode == SamplerMode::kTrain),
        allocator_(config.allocator.allocate ? config.allocator : OrdinaryMemory()),
        augmentation_key_(RandomKey(config.seed).Mix("augment")),
        state_(config.start) {
    BeginEpoch(config.start, sampler_.Order(config.start));
  }

  // ResourceExhausted where the system gives no memory or no thread.
  absl::Status Start() {
    const int64_t workers = ResolveWorkers(config_);
    RETURN_IF_ERROR(MakeBuffers(BufferCount(config_)));
    // Enough that no worker idles while the oldest sample is still being decoded.
    items_.resize(static_cast<size_t>(std::max<int64_t>(1, 3 * workers)));
    for (Item& item : items_) {
      item.work = source_->NewWork();
      item.out.resize(source_->fields().size());
    }
    for (int64_t i = 0; i < workers; ++i) {
      try {
        threads_.emplace_back([this] { WorkerLoop(); });
      } catch (const std::system_error& e) {
        return ResourceExhausted(
            "cannot start thread {} of {} that read data: {}; lower "
            "loader.num_workers or raise the limit (ulimit -u, ulimit -v)",
            i + 1, workers, e.code().message());
      }
    }
    return absl::OkStatus();
  }

  ~LoaderImpl() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    work_cv_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    for (const Buffer& buffer : buffers_) {
      if (buffer.memory != nullptr) allocator_.release(buffer.memory);
    }
  }

  absl::StatusOr<BatchPtr> Next() override {
    const auto start = std::chrono::steady_clock::now();
    std::unique_lock lock(mutex_);
    CHECK_LT(held_, config_.max_held) << "batches held at once; see LoaderConfig::max_held";
    while (!FrontReady()) {
      if (config_.stop != nullptr && config_.stop->load(std::memory_order_relaxed)) {
        return absl::CancelledError("stopped while waiting for a batch");
      }
      if (threads_.empty()) {
        CHECK(RunTask(&lock)) << "the loader has nothing to do";
      } else {
        ready_cv_.wait_for(lock, kStopPeriod, [this] { return FrontReady(); });
      }
    }
    waited_seconds_ +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (outputs_.empty()) return failed_ ? absl::StatusOr<BatchPtr>(failure_) : BatchPtr();
    Output output = std::move(outputs_.front());
    outputs_.pop_front();
    if (output.buffer == nullptr) {
      state_ = {.epoch = output.ended_epoch + 1};
      bad_at_end_ = std::move(output.bad);
      return BatchPtr();
    }
    ++held_;
    state_ = output.buffer->batch.after;
    return BatchPtr(&output.buffer->batch, ReturnBatch{this});
  }

  void Recycle(Batch* batch) override {
    const std::lock_guard lock(mutex_);
    const auto it = std::find_if(buffers_.begin(), buffers_.end(),
                                 [&](const Buffer& b) { return &b.batch == batch; });
    CHECK(it != buffers_.end()) << "the batch is of another loader";
    --held_;
    free_buffers_.push_back(&*it);
    Resolve();
    WakeWorker();
  }

  SamplerState state() const override { return state_; }
  const std::vector<BadSample>& bad_at_end() const override { return bad_at_end_; }
  double waited_seconds() const override { return waited_seconds_; }
  const Sampler& sampler() const override { return sampler_; }
  int64_t num_workers() const override { return static_cast<int64_t>(threads_.size()); }

 private:
  struct Buffer {
    Batch batch;
    void* memory = nullptr;
    int64_t placed = 0;   // slots given
    int64_t written = 0;  // slots filled
    bool closed = false;
    bool ready() const { return closed && written == placed; }
  };

  // A sample on its way from the source into a batch.
  struct Item {
    enum class Stage { kFree, kPreparing, kPrepared, kPlaced, kBad, kWriting };
    Stage stage = Stage::kFree;
    int64_t index = 0;
    std::unique_ptr<SampleWork> work;
    absl::Status status;
    Buffer* buffer = nullptr;
    int64_t slot = 0;
    std::vector<void*> out;
  };

  // A batch, or (without a buffer) the end of an epoch.
  struct Output {
    Buffer* buffer = nullptr;
    int64_t ended_epoch = 0;
    std::vector<BadSample> bad;
  };

  absl::Status MakeBuffers(int64_t count) {
    const std::vector<SampleField> fields = BatchFields(*source_);
    const int64_t capacity = sampler_.options().batch_size;
    const int64_t bytes = BytesOf(fields, capacity);
    buffers_.resize(static_cast<size_t>(count));
    for (Buffer& buffer : buffers_) {
      buffer.memory = allocator_.allocate(static_cast<size_t>(bytes));
      if (buffer.memory == nullptr) {
        return ResourceExhausted(
            "no memory for {} batches of {} each; lower batch_size or loader.prefetch", count,
            HumanBytes(static_cast<double>(bytes)));
      }
      auto* data = static_cast<std::byte*>(buffer.memory);
      for (const SampleField& f : fields) {
        const TensorType type = f.BatchType(capacity);
        buffer.batch.tensors.push_back({f.name, {data, type}});
        data += AlignUp(type.bytes());
      }
      free_buffers_.push_back(&buffer);
    }
    return absl::OkStatus();
  }

  void BeginEpoch(const SamplerState& start, EpochOrder order) {
    order_ = std::move(order);
    epoch_ = start.epoch;
    skipped_ = start.skipped;
    next_place_ = fills_ ? start.skipped : 0;
    batch_in_epoch_ = 0;
    places_in_batch_ = 0;
    finished_ = start.epoch >= config_.end_epoch;
  }

  void WorkerLoop() {
    std::unique_lock lock(mutex_);
    while (!stop_) {
      if (RunTask(&lock)) continue;
      ++idle_;
      work_cv_.wait(lock);
      --idle_;
    }
  }

  // Does one piece of work; false when there is none now.
  bool RunTask(std::unique_lock<std::mutex>* lock) {
    if (Item* item = NextToWrite()) {
      WakeWorker();
      Write(item, lock);
    } else if (CanIssue()) {
      Item* issued = Issue();
      WakeWorker();
      Prepare(issued, lock);
    } else if (CanTurn()) {
      Turn(lock);
    } else {
      return false;
    }
    return true;
  }

  bool HasTask() const { return written_ < resolved_ || CanIssue() || CanTurn(); }
  void WakeWorker() {
    if (idle_ > 0 && HasTask()) work_cv_.notify_one();
  }

  Item& ItemAt(uint64_t number) { return items_[number % items_.size()]; }

  // Places of this epoch that are needed as far as is known.
  int64_t PlacesNeeded() const { return order_.count() + (fills_ ? skipped_ : 0); }

  bool CanIssue() const {
    return !failed_ && !finished_ && !turning_ && next_place_ < PlacesNeeded() &&
           items_[issued_ % items_.size()].stage == Item::Stage::kFree;
  }

  Item* Issue() {
    Item* item = &ItemAt(issued_++);
    item->stage = Item::Stage::kPreparing;
    item->index = order_.At(next_place_++);
    return item;
  }

  void Prepare(Item* item, std::unique_lock<std::mutex>* lock) {
    const RandomKey key = augmentation_key_.Mix(static_cast<uint64_t>(epoch_))
                              .Mix(static_cast<uint64_t>(item->index));
    lock->unlock();
    item->status = source_->Prepare(item->index, key, item->work.get());
    lock->lock();
    item->stage = Item::Stage::kPrepared;
    Resolve();
  }

  void Resolve() {
    while (!failed_ && resolved_ < issued_) {
      Item* item = &ItemAt(resolved_);
      if (item->stage != Item::Stage::kPrepared) return;
      if (item->status.ok()) {
        if (open_ == nullptr && !OpenBatch()) return;
        item->buffer = open_;
        item->slot = open_->placed++;
        item->stage = Item::Stage::kPlaced;
      } else {
        PassOver(item);
      }
      ++resolved_;
      ++places_in_batch_;
      const int64_t filled = !fills_ ? places_in_batch_ : open_ == nullptr ? 0 : open_->placed;
      if (filled == order_.BatchSize(batch_in_epoch_)) CloseBatch();
    }
  }

  bool OpenBatch() {
    if (free_buffers_.empty()) return false;
    open_ = free_buffers_.back();
    free_buffers_.pop_back();
    open_->placed = open_->written = 0;
    open_->closed = false;
    return true;
  }

  void CloseBatch() {
    ++batch_in_epoch_;
    places_in_batch_ = 0;
    if (open_ == nullptr) return;  // an evaluation batch without any sound sample
    Buffer* buffer = std::exchange(open_, nullptr);
    buffer->closed = true;
    Batch& batch = buffer->batch;
    batch.size = buffer->placed;
    batch.epoch = epoch_;
    batch.after = order_.StateAfter(batch_in_epoch_, skipped_);
    batch.bad = std::exchange(pending_bad_, {});
    for (BatchTensor& t : batch.tensors) t.view.type.shape[0] = batch.size;
    outputs_.push_back({.buffer = buffer});
    if (buffer->ready()) ready_cv_.notify_one();
  }

  void PassOver(Item* item) {
    item->stage = Item::Stage::kBad;
    ++skipped_;
    pending_bad_.push_back({.index = item->index,
                            .origin = source_->Describe(item->index),
                            .reason = MessageOf(item->status)});
    if (examples_.size() < kExamplesInMessage) examples_.push_back(pending_bad_.back());
    const int64_t samples = sampler_.samples_per_epoch();
    const BadSampleOptions& options = config_.bad_samples;
    const bool nothing_left = fills_ && skipped_ >= samples;
    if (options.policy == BadSampleOptions::Policy::kFail) {
      Fail("a sample cannot be read (bad_samples.policy: fail)");
    } else if (static_cast<double>(skipped_) > options.limit * static_cast<double>(samples) ||
               nothing_left) {
      Fail(fmt::format(
          "{} of {}{} samples{} cannot be read, more than bad_samples.limit {} allows; mend the "
          "files, take them out of the data set, or raise the limit",
          skipped_, sampler_.options().world > 1 ? "this rank's " : "", samples,
          fills_ ? fmt::format(" of epoch {}", epoch_ + 1) : "", options.limit));
    }
  }

  void Fail(std::string message) {
    for (const BadSample& bad : examples_) {
      message += fmt::format("\n  {}: {}", bad.origin, bad.reason);
    }
    failed_ = true;
    failure_ = DataLoss("{}", message);
    ready_cv_.notify_one();
  }

  // The next sample that has a slot; items of bad samples are freed on the way.
  Item* NextToWrite() {
    while (written_ < resolved_) {
      Item* item = &ItemAt(written_++);
      if (item->stage == Item::Stage::kPlaced) {
        item->stage = Item::Stage::kWriting;
        return item;
      }
      item->stage = Item::Stage::kFree;
    }
    return nullptr;
  }

  void Write(Item* item, std::unique_lock<std::mutex>* lock) {
    lock->unlock();
    const auto& tensors = item->buffer->batch.tensors;
    const std::span<const SampleField> fields = source_->fields();
    for (size_t i = 0; i < fields.size(); ++i) {
      const int64_t bytes = fields[i].shape.count() * static_cast<int64_t>(SizeOf(fields[i].dtype));
      item->out[i] = static_cast<std::byte*>(tensors[i].view.data) + item->slot * bytes;
    }
    source_->Finish(item->work.get(), item->out);
    static_cast<int64_t*>(tensors.back().view.data)[item->slot] = item->index;
    lock->lock();
    item->stage = Item::Stage::kFree;
    ++item->buffer->written;
    if (item->buffer->ready()) ready_cv_.notify_one();
  }

  bool CanTurn() const {
    return !failed_ && !finished_ && !turning_ && next_place_ == PlacesNeeded() &&
           resolved_ == issued_;
  }

  void Turn(std::unique_lock<std::mutex>* lock) {
    turning_ = true;
    outputs_.push_back({.ended_epoch = epoch_, .bad = std::exchange(pending_bad_, {})});
    ready_cv_.notify_one();
    const SamplerState next{.epoch = epoch_ + 1};
    lock->unlock();
    EpochOrder order = sampler_.Order(next);  // long for a large set
    lock->lock();
    BeginEpoch(next, std::move(order));
    examples_.clear();
    turning_ = false;
    WakeWorker();
  }

  bool FrontReady() const {
    if (outputs_.empty()) return failed_ || finished_;
    return outputs_.front().buffer == nullptr || outputs_.front().buffer->ready();
  }

  const std::shared_ptr<const SampleSource> source_;
  const LoaderConfig config_;
  const Sampler sampler_;
  const bool fills_;
  const HostAllocator allocator_;
  const RandomKey augmentation_key_;

  // The user's side; touched by Next only.
  SamplerState state_;
  std::vector<BadSample> bad_at_end_;
  double waited_seconds_ = 0;

  std::mutex mutex_;
  std::condition_variable work_cv_;   // workers wait for a task
  std::condition_variable ready_cv_;  // Next waits for an output
  bool stop_ = false;
  int64_t idle_ = 0;
  int64_t held_ = 0;

  // Where the epoch that is being read stands.
  EpochOrder order_;
  int64_t epoch_ = 0;
  int64_t next_place_ = 0;       // to issue
  int64_t skipped_ = 0;          // bad samples of this epoch
  int64_t batch_in_epoch_ = 0;   // that is being resolved
  int64_t places_in_batch_ = 0;  // resolved of it
  bool turning_ = false;
  bool finished_ = false;  // no further epoch is read
  bool failed_ = false;
  absl::Status failure_;
  std::vector<BadSample> pending_bad_;
  std::vector<BadSample> examples_;

  // A ring: the numbers count items since the start; written_ <= resolved_ <= issued_.
  std::vector<Item> items_;
  uint64_t issued_ = 0, resolved_ = 0, written_ = 0;

  std::vector<Buffer> buffers_;
  std::vector<Buffer*> free_buffers_;
  Buffer* open_ = nullptr;
  std::deque<Output> outputs_;

  std::vector<std::thread> threads_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Loader>> Loader::Create(std::shared_ptr<const SampleSource> source,
                                                       const LoaderConfig& config) {
  SamplerOptions options = config.sampler;
  options.size = source->size();
  ASSIGN_OR_RETURN(const Sampler sampler, Sampler::Create(options));
  if (config.start.samples > options.size) {
    return InvalidArgument(
        "the data set has {} samples, but {} of this epoch were read before the stop; give it back "
        "its samples, or start anew",
        options.size, config.start.samples);
  }
  auto loader = std::make_unique<LoaderImpl>(std::move(source), config, sampler);
  RETURN_IF_ERROR(loader->Start());
  return loader;
}

int64_t Loader::BufferBytes(const SampleSource& source, const LoaderConfig& config) {
  return BufferCount(config) * BytesOf(BatchFields(source), config.sampler.batch_size);
}

}  // namespace capstan
