// RandAugment and AutoAugment: changes of a picture drawn from a fixed set of fourteen.
//
// Signs of shears, shifts, turns and enhancements are drawn as well; shears and shifts are about
// the upper left corner, what comes from outside of the picture is mid-grey, and all maps are
// bilinear. Draws come from the key alone. Safe from any thread. Sources: Cubuk et al.,
// "RandAugment" (arXiv:1909.13719) and "AutoAugment" (arXiv:1805.09501, the policy of ImageNet),
// with PaddleClas' ranges.
#pragma once

#include "absl/status/status.h"
#include "engine/base/random.h"
#include "engine/base/reflect.h"
#include "engine/data/image.h"
#include "engine/data/transform_options.h"

namespace capstan {

enum class AugmentOp {
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kRotate,
  kColor,
  kPosterize,
  kSolarize,
  kContrast,
  kSharpness,
  kBrightness,
  kAutoContrast,
  kEqualize,
  kInvert,
};
inline constexpr int64_t kAugmentOps = 14;

// Changes a picture of 3 channels by one operation. `amount`: a slope (shears), a share of the side
// (shifts), degrees (rotate), distance of the factor from 1 (color, contrast, sharpness,
// brightness), bits (posterize), a threshold (solarize); its sign counts for the signed ones.
void Augment(AugmentOp op, double amount, Image* image);

absl::Status RandAugment(const RandAugmentOptions&, const RandomKey&, const Image& in, Image* out);
// One of the 25 pairs of operations that were found for ImageNet.
absl::Status AutoAugment(const NoAttrs&, const RandomKey&, const Image& in, Image* out);

}  // namespace capstan
