// ImagePipeline: a job's list of transforms, checked and ready to run.
//
// Order of a list: DecodeImage, transforms of pixels (u8), NormalizeImage, transforms of values
// (f32). The list is checked before anything is read, and must fix the size of its result, since
// graphs are built from it. Immutable; safe from any thread.
//
//   ASSIGN_OR_RETURN(ImageShape shape, CheckTransforms(job.transforms));     // 3x224x224
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/random.h"
#include "engine/base/reflect.h"
#include "engine/data/choice.h"
#include "engine/data/image.h"

namespace capstan {

struct TransformRow;

// The choices of `transforms`.
std::span<const DataChoice> TransformChoices();

class ImagePipeline {
 public:
  // `generated` is the shape of pictures that need no decoding; for those, the list may be empty:
  // pixels then become values from -1 to 1. Errors name the place in the list.
  static absl::StatusOr<ImagePipeline> Create(std::span<const Section> transforms,
                                              std::optional<ImageShape> generated = std::nullopt);

  const ImageShape& output() const { return output_; }

  // From a decoded picture up to normalisation, in place; `scratch` is memory to work in.
  absl::Status TransformPixels(const RandomKey& key, Image* image, Image* scratch) const;
  // The rest: output().count() values in HWC order.
  void WriteValues(const RandomKey& key, const Image& image, float* values) const;

 private:
  struct Step {
    const TransformRow* row;
    AnyStruct options;
    uint64_t number;  // in the list; part of its random key
  };

  std::vector<Step> pixel_steps_;
  AnyStruct normalize_;
  std::vector<Step> value_steps_;
  bool swap_red_and_blue_ = false;
  ImageShape output_;
};

// The shape that a list of transforms gives, or what is wrong with the list.
absl::StatusOr<ImageShape> CheckTransforms(std::span<const Section> transforms,
                                           std::optional<ImageShape> generated = std::nullopt);

}  // namespace capstan
