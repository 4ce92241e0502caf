#include "engine/data/image_source.h"

#include <utility>

#include "engine/base/status.h"
#include "engine/data/decode.h"
#include "engine/data/file.h"

namespace capstan {
namespace {

struct ImageWork final : SampleWork {
  std::string bytes;
  Image image;
  Image scratch;
  RandomKey key{0};
  int64_t label = 0;
};

SampleField ImageField(const ImageShape& shape) {
  return {.name = "image",
          .dtype = DType::kF32,
          .shape = {shape.channels, shape.height, shape.width},
          .format = MemoryFormat::kChannelsLast};
}

}  // namespace

absl::StatusOr<std::unique_ptr<ImageSource>> ImageSource::Create(
    std::unique_ptr<ImageDataset> dataset, ImagePipeline pipeline, SampleCache cache) {
  if (cache == SampleCache::kDisk) {
    return InvalidArgument("loader.cache: disk is not supported yet; use ram or none");
  }
  return std::unique_ptr<ImageSource>(
      new ImageSource(std::move(dataset), std::move(pipeline), cache));
}

ImageSource::ImageSource(std::unique_ptr<ImageDataset> dataset, ImagePipeline pipeline,
                         SampleCache cache)
    : dataset_(std::move(dataset)),
      pipeline_(std::move(pipeline)),
      fields_{ImageField(pipeline_.output()), {.name = "label", .dtype = DType::kI64}},
      cache_(cache == SampleCache::kRam ? static_cast<size_t>(dataset_->size()) : 0) {}

ImageSource::~ImageSource() {
  for (const auto& entry : cache_) delete entry.load();
}

std::unique_ptr<SampleWork> ImageSource::NewWork() const { return std::make_unique<ImageWork>(); }

absl::Status ImageSource::Load(int64_t index, std::string* bytes, Image* image) const {
  if (cache_.empty()) return dataset_->Load(index, bytes, image);
  std::atomic<const Image*>& entry = cache_[static_cast<size_t>(index)];
  if (const Image* cached = entry.load(std::memory_order_acquire)) {
    *image = *cached;
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(dataset_->Load(index, bytes, image));
  auto kept = std::make_unique<const Image>(*image);
  const Image* expected = nullptr;
  // Where another thread was faster, its copy stays.
  if (entry.compare_exchange_strong(expected, kept.get(), std::memory_order_acq_rel)) {
    kept.release();
  }
  return absl::OkStatus();
}

absl::Status ImageSource::Prepare(int64_t index, const RandomKey& key, SampleWork* work) const {
  auto* w = static_cast<ImageWork*>(work);
  RETURN_IF_ERROR(Load(index, &w->bytes, &w->image));
  w->key = key;
  w->label = dataset_->Label(index);
  RETURN_IF_ERROR(pipeline_.TransformFixed(&w->image, &w->scratch));
  return pipeline_.TransformRandom(key, &w->image, &w->scratch);
}

void ImageSource::Finish(SampleWork* work, std::span<void* const> out) const {
  const auto* w = static_cast<const ImageWork*>(work);
  pipeline_.WriteValues(w->key, w->image, static_cast<float*>(out[0]));
  *static_cast<int64_t*>(out[1]) = w->label;
}

absl::StatusOr<HostTensor> ReadPicture(const std::string& path, const ImagePipeline& pipeline) {
  std::string bytes;
  Image image, scratch;
  RETURN_IF_ERROR(ReadFile(path, &bytes));
  const RandomKey key(0);
  absl::Status status = DecodePicture(bytes, &image);
  if (status.ok()) status = pipeline.TransformFixed(&image, &scratch);
  if (status.ok()) status = pipeline.TransformRandom(key, &image, &scratch);
  if (!status.ok()) return absl::Status(status.code(), path + ": " + MessageOf(status));
  HostTensor tensor(ImageField(pipeline.output()).BatchType(1));
  pipeline.WriteValues(key, image, tensor.Elements<float>().data());
  return tensor;
}

}  // namespace capstan
