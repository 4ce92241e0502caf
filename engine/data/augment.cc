#include "engine/data/augment.h"

#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "engine/data/pixel_ops.h"
#include "engine/data/warp.h"

namespace capstan {
namespace {

constexpr uint8_t kFill = 128;

void WarpInPlace(const Affine& source, Image* image) {
  Image warped;
  Warp(*image, source, kFill, &warped);
  std::swap(*image, warped);
}

Affine RotationAboutCentre(double degrees, const ImageShape& shape) {
  const double angle = degrees * std::numbers::pi / 180;
  const double c = std::cos(angle), s = std::sin(angle);
  const double x = static_cast<double>(shape.width) / 2, y = static_cast<double>(shape.height) / 2;
  return {.xx = c, .xy = s, .x0 = x - c * x - s * y, .yx = -s, .yy = c, .y0 = y + s * x - c * y};
}

bool IsSigned(AugmentOp op) {
  return op <= AugmentOp::kColor || (op >= AugmentOp::kContrast && op <= AugmentOp::kBrightness);
}

// The largest amounts of the signed operations.
double Range(AugmentOp op) {
  switch (op) {
    case AugmentOp::kShearX:
    case AugmentOp::kShearY:
      return 0.3;
    case AugmentOp::kTranslateX:
    case AugmentOp::kTranslateY:
      return 150.0 / 331;
    case AugmentOp::kRotate:
      return 30;
    default:
      return 0.9;
  }
}

double Signed(AugmentOp op, double amount, const RandomKey& key, uint64_t draw) {
  return IsSigned(op) && key.Below(draw, 2) == 1 ? -amount : amount;
}

// What magnitude 0..10 means in RandAugment.
double AmountOf(AugmentOp op, double magnitude) {
  const double level = magnitude / 10;
  if (op == AugmentOp::kPosterize) return std::max(1.0, std::floor(4 * level));
  if (op == AugmentOp::kSolarize) return 256 * level;
  return Range(op) * level;
}

// A step of an AutoAugment policy: magnitudes run from 0 to 9.
struct PolicyStep {
  double probability;
  AugmentOp op;
  int magnitude;

  double amount() const {
    const double level = magnitude / 9.0;
    if (op == AugmentOp::kPosterize) return std::round(8 - 4 * level);
    if (op == AugmentOp::kSolarize) return 256 - 256 * level;
    return Range(op) * level;
  }
};

using enum AugmentOp;
constexpr std::array<std::array<PolicyStep, 2>, 25> kImageNetPolicy = {{
    {{{0.4, kPosterize, 8}, {0.6, kRotate, 9}}},  {{{0.6, kSolarize, 5}, {0.6, kAutoContrast, 5}}},
    {{{0.8, kEqualize, 8}, {0.6, kEqualize, 3}}}, {{{0.6, kPosterize, 7}, {0.6, kPosterize, 6}}},
    {{{0.4, kEqualize, 7}, {0.2, kSolarize, 4}}}, {{{0.4, kEqualize, 4}, {0.8, kRotate, 8}}},
    {{{0.6, kSolarize, 3}, {0.6, kEqualize, 7}}}, {{{0.8, kPosterize, 5}, {1.0, kEqualize, 2}}},
    {{{0.2, kRotate, 3}, {0.6, kSolarize, 8}}},   {{{0.6, kEqualize, 8}, {0.4, kPosterize, 6}}},
    {{{0.8, kRotate, 8}, {0.4, kColor, 0}}},      {{{0.4, kRotate, 9}, {0.6, kEqualize, 2}}},
    {{{0.0, kEqualize, 7}, {0.8, kEqualize, 8}}}, {{{0.6, kInvert, 4}, {1.0, kEqualize, 8}}},
    {{{0.6, kColor, 4}, {1.0, kContrast, 8}}},    {{{0.8, kRotate, 8}, {1.0, kColor, 2}}},
    {{{0.8, kColor, 8}, {0.8, kSolarize, 7}}},    {{{0.4, kSharpness, 7}, {0.6, kInvert, 8}}},
    {{{0.6, kShearX, 5}, {1.0, kEqualize, 9}}},   {{{0.4, kColor, 0}, {0.6, kEqualize, 3}}},
    {{{0.4, kEqualize, 7}, {0.2, kSolarize, 4}}}, {{{0.6, kSolarize, 5}, {0.6, kAutoContrast, 5}}},
    {{{0.6, kInvert, 4}, {1.0, kEqualize, 8}}},   {{{0.6, kColor, 4}, {1.0, kContrast, 8}}},
    {{{0.8, kEqualize, 8}, {0.6, kEqualize, 3}}},
}};

}  // namespace

void Augment(AugmentOp op, double amount, Image* image) {
  switch (op) {
    case kShearX:
      return WarpInPlace({.xy = amount}, image);
    case kShearY:
      return WarpInPlace({.yx = amount}, image);
    case kTranslateX:
      return WarpInPlace({.x0 = amount * static_cast<double>(image->shape.width)}, image);
    case kTranslateY:
      return WarpInPlace({.y0 = amount * static_cast<double>(image->shape.height)}, image);
    case kRotate:
      return WarpInPlace(RotationAboutCentre(amount, image->shape), image);
    case kColor:
      return AdjustColor(1 + amount, image);
    case kPosterize:
      return Posterize(static_cast<int64_t>(amount), image);
    case kSolarize:
      return Solarize(amount, image);
    case kContrast:
      return AdjustContrast(1 + amount, image);
    case kSharpness:
      return AdjustSharpness(1 + amount, image);
    case kBrightness:
      return AdjustBrightness(1 + amount, image);
    case kAutoContrast:
      return AutoContrast(image);
    case kEqualize:
      return Equalize(image);
    case kInvert:
      return Invert(image);
  }
}

absl::Status RandAugment(const RandAugmentOptions& options, const RandomKey& key, const Image& in,
                         Image* out) {
  *out = in;
  for (int64_t layer = 0; layer < options.num_layers; ++layer) {
    const RandomKey draws = key.Mix(static_cast<uint64_t>(layer));
    const auto op = static_cast<AugmentOp>(draws.Below(0, kAugmentOps));
    Augment(op, Signed(op, AmountOf(op, options.magnitude), draws, 1), out);
  }
  return absl::OkStatus();
}

absl::Status AutoAugment(const NoAttrs&, const RandomKey& key, const Image& in, Image* out) {
  *out = in;
  const auto& steps = kImageNetPolicy[key.Below(0, kImageNetPolicy.size())];
  for (uint64_t i = 0; i < steps.size(); ++i) {
    const PolicyStep& step = steps[i];
    if (key.UniformDouble(1 + 2 * i) >= step.probability) continue;
    Augment(step.op, Signed(step.op, step.amount(), key, 2 + 2 * i), out);
  }
  return absl::OkStatus();
}

}  // namespace capstan
