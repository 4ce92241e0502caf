#include "engine/train/image_data.h"

#include <algorithm>

#include "engine/base/status.h"

namespace capstan {
namespace {

SampleCache CacheOf(LoaderSpec::Cache cache) {
  switch (cache) {
    case LoaderSpec::Cache::kNone:
      return SampleCache::kNone;
    case LoaderSpec::Cache::kRam:
      return SampleCache::kRam;
    case LoaderSpec::Cache::kDisk:
      return SampleCache::kDisk;
  }
  return SampleCache::kNone;
}

absl::StatusOr<std::vector<Shape>> BatchShapes(const SamplerOptions& options,
                                               const ImageShape& image) {
  ASSIGN_OR_RETURN(const Sampler sampler, Sampler::Create(options));
  const EpochOrder order = sampler.Order({});
  std::vector<Shape> shapes;
  for (int64_t k = 0; k < order.batches(); ++k) {
    const Shape shape = {order.BatchSize(k), image.channels, image.height, image.width};
    if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
  }
  return shapes;
}

LoaderConfig ConfigOf(const DatasetSpec& spec, const LoaderRequest& request) {
  return {.sampler = {.mode = request.mode,
                      .batch_size = spec.batch_size.value_or(1),
                      .shuffle = request.shuffle,
                      .drop_last = request.drop_last,
                      .seed = request.seed},
          .loader = {.num_workers = spec.loader.num_workers, .prefetch = spec.loader.prefetch},
          .bad_samples = {.policy = spec.bad_samples.policy == BadSamplesSpec::Policy::kSkip
                                        ? BadSampleOptions::Policy::kSkip
                                        : BadSampleOptions::Policy::kFail,
                          .limit = spec.bad_samples.limit},
          .seed = request.seed,
          .start = request.start,
          .end_epoch = request.end_epoch,
          .max_held = request.max_held,
          .stop = request.stop};
}

}  // namespace

absl::Status CheckTransforms(const JobSpec& job) {
  Diagnostics diagnostics;
  const auto check = [&](const DatasetSpec& set, const std::string& path) -> absl::Status {
    ASSIGN_OR_RETURN(const std::optional<ImageShape> generated, GeneratedShape(set.choice),
                     "while reading {}", job.Where(path));
    const std::optional<TransformFault> fault = FindTransformFault(set.transforms, generated);
    if (!fault.has_value()) return absl::OkStatus();
    std::string at = path + ".transforms";
    if (fault->step < set.transforms.size()) {
      at += fmt::format(".{}.{}", fault->step, set.transforms[fault->step].name);
    }
    diagnostics.Add(job.sources.Find(at), at, fault->problem);
    return absl::OkStatus();
  };
  if (job.dataset.train.has_value()) {
    RETURN_IF_ERROR(check(*job.dataset.train, "dataset.train"));
  }
  if (job.dataset.eval.has_value()) {
    RETURN_IF_ERROR(check(*job.dataset.eval, "dataset.eval"));
  }
  return diagnostics.ToStatus();
}

absl::StatusOr<std::shared_ptr<const ImageSource>> OpenImages(const DatasetSpec& spec,
                                                              int64_t classes) {
  ASSIGN_OR_RETURN(const std::optional<ImageShape> generated, GeneratedShape(spec.choice));
  ASSIGN_OR_RETURN(ImagePipeline pipeline, ImagePipeline::Create(spec.transforms, generated));
  absl::StatusOr<std::unique_ptr<ImageDataset>> opened = OpenImageDataset(spec.choice, classes);
  // What is wrong in a data set is no fault of the job; a list that is not there belongs to it.
  if (absl::IsInvalidArgument(opened.status()) || absl::IsNotFound(opened.status())) {
    return WithCode(opened.status(), absl::StatusCode::kDataLoss);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<ImageDataset> set, std::move(opened));
  ASSIGN_OR_RETURN(
      std::unique_ptr<ImageSource> source,
      ImageSource::Create(std::move(set), std::move(pipeline), CacheOf(spec.loader.cache)));
  return std::shared_ptr<const ImageSource>(std::move(source));
}

absl::StatusOr<std::unique_ptr<Loader>> OpenLoader(const DatasetSpec& spec,
                                                   std::shared_ptr<const ImageSource> source,
                                                   const LoaderRequest& request) {
  return Loader::Create(std::move(source), ConfigOf(spec, request));
}

int64_t LoaderBytes(const DatasetSpec& spec, const ImageSource& source,
                    const LoaderRequest& request) {
  return Loader::BufferBytes(source, ConfigOf(spec, request));
}

absl::StatusOr<std::vector<Shape>> TrainBatchShapes(const TrainSetSpec& spec,
                                                    const ImageSource& source) {
  return BatchShapes({.mode = SamplerMode::kTrain,
                      .size = source.size(),
                      .batch_size = spec.batch_size.value_or(1),
                      .shuffle = spec.shuffle,
                      .drop_last = spec.drop_last},
                     source.image_shape());
}

absl::StatusOr<std::vector<Shape>> EvaluateBatchShapes(const DatasetSpec& spec,
                                                       const ImageSource& source) {
  return BatchShapes({.mode = SamplerMode::kEvaluate,
                      .size = source.size(),
                      .batch_size = spec.batch_size.value_or(1)},
                     source.image_shape());
}

}  // namespace capstan
