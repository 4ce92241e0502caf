// ImagePipeline: a job's list of transforms, checked and ready to run.
//
// Pixels are 8-bit and HWC from DecodeImage on; NormalizeImage makes floats of them, ToCHWImage
// says CHW. Each step says what it works on, so a list is checked whole before anything is read: a
// step at the wrong place, one that is missing, pictures of different sizes at the end. What is
// written to memory is the same with and without ToCHWImage: models see [c, h, w] in any case.
// Immutable; safe from any thread.
//
//   ASSIGN_OR_RETURN(ImagePipeline pipeline, ImagePipeline::Create(job.transforms));
//   pipeline.output();                                                       // 3x224x224
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/random.h"
#include "engine/base/reflect.h"
#include "engine/data/choice.h"
#include "engine/data/image.h"

namespace capstan {

struct TransformRow;

// What is wrong with a list of transforms.
struct TransformFault {
  size_t step = 0;  // at fault; the number of steps where one is missing at the end
  std::string problem;
};

// The choices of `transforms`.
std::span<const DataChoice> TransformChoices();

class ImagePipeline {
 public:
  // `generated` is the shape of pictures that need no decoding; for those, the list may be empty:
  // pixels then become values from -1 to 1. Errors name the place in the list ("transforms[2],
  // CropImage: ...").
  static absl::StatusOr<ImagePipeline> Create(std::span<const Section> transforms,
                                              std::optional<ImageShape> generated = std::nullopt);

  const ImageShape& output() const { return output_; }

  // From a decoded picture up to the first transform that draws, in place; `scratch` is memory to
  // work in. Fails where this picture cannot be transformed.
  absl::Status TransformFixed(Image* image, Image* scratch) const;
  // From there up to normalisation.
  absl::Status TransformRandom(const RandomKey& key, Image* image, Image* scratch) const;
  // The rest: output().count() values in HWC order.
  void WriteValues(const RandomKey& key, const Image& image, float* values) const;

 private:
  struct Step {
    const TransformRow* row;
    AnyStruct options;
    uint64_t number;  // in the list; part of its random key
  };

  absl::Status Apply(std::span<const Step> steps, const RandomKey& key, Image* image,
                     Image* scratch) const;
  std::optional<TransformFault> Build(std::span<const Section> transforms,
                                      std::optional<ImageShape> generated);

  friend std::optional<TransformFault> FindTransformFault(std::span<const Section> transforms,
                                                          std::optional<ImageShape> generated);

  std::vector<Step> pixel_steps_;
  size_t fixed_steps_ = 0;  // how many of them come before the first that draws
  AnyStruct normalize_;
  std::vector<Step> value_steps_;
  bool swap_red_and_blue_ = false;
  ImageShape output_;
};

// What is wrong with a list of transforms, if anything; nothing is read.
std::optional<TransformFault> FindTransformFault(
    std::span<const Section> transforms, std::optional<ImageShape> generated = std::nullopt);

}  // namespace capstan
