#include "engine/data/check_images.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "engine/base/status.h"
#include "engine/data/loader.h"
#include "engine/data/sample_source.h"

namespace capstan {
namespace {

constexpr int64_t kBatchSize = 64;

struct CheckWork final : SampleWork {
  std::string bytes;
  Image image;
  Image scratch;
};

PictureFaultKind KindOf(const absl::Status& status, bool empty) {
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
      return PictureFaultKind::kMissing;
    case absl::StatusCode::kInvalidArgument:
      return empty ? PictureFaultKind::kEmpty : PictureFaultKind::kNoPicture;
    case absl::StatusCode::kDataLoss:
      return PictureFaultKind::kDamaged;
    default:
      return PictureFaultKind::kUnreadable;
  }
}

// Samples without tensors; faults are noted, so that to the loader every sample is sound.
class CheckSource final : public SampleSource {
 public:
  CheckSource(std::shared_ptr<const ImageDataset> set, const ImagePipeline& pipeline)
      : set_(std::move(set)), pipeline_(pipeline) {}

  int64_t size() const override { return set_->size(); }
  std::span<const SampleField> fields() const override { return {}; }
  std::string Describe(int64_t index) const override { return set_->Describe(index); }
  std::unique_ptr<SampleWork> NewWork() const override { return std::make_unique<CheckWork>(); }

  absl::Status Prepare(int64_t index, const RandomKey& key, SampleWork* work) const override {
    auto* w = static_cast<CheckWork*>(work);
    if (const absl::Status loaded = set_->Load(index, &w->bytes, &w->image); !loaded.ok()) {
      Note(index, KindOf(loaded, w->bytes.empty()), loaded);
      return absl::OkStatus();
    }
    absl::Status transformed = pipeline_.TransformFixed(&w->image, &w->scratch);
    if (transformed.ok()) transformed = pipeline_.TransformRandom(key, &w->image, &w->scratch);
    if (!transformed.ok()) Note(index, PictureFaultKind::kUnfit, transformed);
    return absl::OkStatus();
  }

  void Finish(SampleWork*, std::span<void* const>) const override {}

  std::vector<PictureFault> TakeFaults() {
    const std::lock_guard lock(mutex_);
    std::ranges::sort(faults_, {}, &PictureFault::index);
    return std::move(faults_);
  }

 private:
  void Note(int64_t index, PictureFaultKind kind, const absl::Status& status) const {
    const std::lock_guard lock(mutex_);
    faults_.push_back({index, kind, MessageOf(status)});
  }

  const std::shared_ptr<const ImageDataset> set_;
  const ImagePipeline pipeline_;
  mutable std::mutex mutex_;
  mutable std::vector<PictureFault> faults_;
};

}  // namespace

absl::StatusOr<std::vector<PictureFault>> CheckImages(std::shared_ptr<const ImageDataset> set,
                                                      const ImagePipeline& pipeline,
                                                      const LoaderOptions& options, uint64_t seed) {
  if (set->size() == 0) return std::vector<PictureFault>();
  const auto source = std::make_shared<CheckSource>(std::move(set), pipeline);
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Loader> loader,
      Loader::Create(source, {.sampler = {.mode = SamplerMode::kEvaluate, .batch_size = kBatchSize},
                              .loader = options,
                              .seed = seed,
                              .end_epoch = 1}));
  while (true) {
    ASSIGN_OR_RETURN(const BatchPtr batch, loader->Next());
    if (batch == nullptr) break;
  }
  return source->TakeFaults();
}

}  // namespace capstan
