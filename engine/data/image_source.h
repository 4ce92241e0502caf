// ImageSource: pictures of a data set, transformed, as samples for the loader.
//
// Fields: "image" f32 [channels, height, width] (channels_last), "label" i64 [].
//
//   ASSIGN_OR_RETURN(auto source,
//                    ImageSource::Create(std::move(set), pipeline, SampleCache::kNone));
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/data/image_dataset.h"
#include "engine/data/image_pipeline.h"
#include "engine/data/loader_options.h"
#include "engine/data/sample_source.h"
#include "engine/tensor/tensor_view.h"

namespace capstan {

class ImageSource final : public SampleSource {
 public:
  // With kRam every decoded picture is kept in memory after its first use.
  static absl::StatusOr<std::unique_ptr<ImageSource>> Create(std::unique_ptr<ImageDataset> dataset,
                                                             ImagePipeline pipeline,
                                                             SampleCache cache);
  ~ImageSource() override;

  int64_t size() const override { return dataset_->size(); }
  std::span<const SampleField> fields() const override { return fields_; }
  std::string Describe(int64_t index) const override { return dataset_->Describe(index); }
  std::unique_ptr<SampleWork> NewWork() const override;
  absl::Status Prepare(int64_t index, const RandomKey& key, SampleWork* work) const override;
  void Finish(SampleWork* work, std::span<void* const> out) const override;

  const ImageDataset& dataset() const { return *dataset_; }
  const ImageShape& image_shape() const { return pipeline_.output(); }

 private:
  ImageSource(std::unique_ptr<ImageDataset> dataset, ImagePipeline pipeline, SampleCache cache);

  absl::Status Load(int64_t index, std::string* bytes, Image* image) const;

  const std::unique_ptr<ImageDataset> dataset_;
  const ImagePipeline pipeline_;
  const std::vector<SampleField> fields_;
  // By dataset index; null until first use. Set once, then never changed.
  mutable std::vector<std::atomic<const Image*>> cache_;
};

// One picture file through a pipeline, as a batch of one: f32 [1, c, h, w] (channels_last). Meant
// for pipelines without random transforms.
absl::StatusOr<HostTensor> ReadPicture(const std::string& path, const ImagePipeline& pipeline);

}  // namespace capstan
