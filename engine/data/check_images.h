// CheckImages: reads and transforms every picture of a data set with the loader's threads, as the
// first epoch of a training does, and gathers what is wrong.
//
//   ASSIGN_OR_RETURN(auto faults, CheckImages(set, pipeline, {.num_workers = 4}, seed));
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/data/image_dataset.h"
#include "engine/data/image_pipeline.h"
#include "engine/data/loader_options.h"

namespace capstan {

enum class PictureFaultKind { kMissing, kUnreadable, kEmpty, kNoPicture, kDamaged, kUnfit };
constexpr std::array<const char*, 6> EnumNamesOf(PictureFaultKind) {
  return {"missing file",    "unreadable file",
          "empty file",      "file that is no picture",
          "damaged picture", "picture that a transform refuses"};
}

struct PictureFault {
  int64_t index = 0;  // in the data set
  PictureFaultKind kind = PictureFaultKind::kMissing;
  std::string reason;
};

// By ascending index. `seed` is the job's, so that random transforms draw as in its first epoch.
absl::StatusOr<std::vector<PictureFault>> CheckImages(std::shared_ptr<const ImageDataset> set,
                                                      const ImagePipeline& pipeline,
                                                      const LoaderOptions& options, uint64_t seed);

}  // namespace capstan
