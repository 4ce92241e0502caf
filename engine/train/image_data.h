// The picture data sets of a job: from a `dataset` section to sources, loaders and batch shapes.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/config/job_spec.h"
#include "engine/data/image_pipeline.h"
#include "engine/data/image_source.h"
#include "engine/data/loader.h"

namespace capstan {

// What is wrong with the lists of transforms, each at its place in the job. Reads no data.
absl::Status CheckTransforms(const JobSpec& job);

// Opens and checks a data set; class ids must stay below `classes`.
absl::StatusOr<std::shared_ptr<const ImageSource>> OpenImages(const DatasetSpec& spec,
                                                              int64_t classes);

struct LoaderRequest {
  SamplerMode mode = SamplerMode::kTrain;
  uint64_t seed = 0;
  SamplerState start;
  int64_t end_epoch = 1;
  int64_t max_held = 2;                     // batches held at the same time
  const std::atomic<bool>* stop = nullptr;  // LoaderConfig::stop
  bool shuffle = true;
  bool drop_last = true;
};

absl::StatusOr<std::unique_ptr<Loader>> OpenLoader(const DatasetSpec& spec,
                                                   std::shared_ptr<const ImageSource> source,
                                                   const LoaderRequest& request);

// Memory of the batches that such a loader keeps, in bytes.
int64_t LoaderBytes(const DatasetSpec& spec, const ImageSource& source,
                    const LoaderRequest& request);

// The shapes of an epoch's batches: whole ones, and the tail where it differs.
absl::StatusOr<std::vector<Shape>> TrainBatchShapes(const TrainSetSpec& spec,
                                                    const ImageSource& source);
absl::StatusOr<std::vector<Shape>> EvaluateBatchShapes(const DatasetSpec& spec,
                                                       const ImageSource& source);

}  // namespace capstan
