// Deep residual networks for images: ResNet-18, -34, -50, -101 and -152.
//
// K. He, X. Zhang, S. Ren, J. Sun: "Deep Residual Learning for Image Recognition", CVPR 2016
// (arXiv:1512.03385), Table 1. Bottlenecks stride in their 3x3 convolution ("v1.5"), and
// parameters bear torchvision's names, so its weights fit as they are.
//
//   ValueId logits = ResNet(b, image, kResNet50, {.classes = 1000});   // [n,3,224,224] -> [n,1000]
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/ir/builder.h"
#include "engine/train/model_row.h"
#include "engine/weights/weight_names.h"
#include "ops/batch_norm/batch_norm.h"

namespace capstan {

// What comes before the first block.
enum class ResNetStem : uint8_t {
  kImagenet,  // 7x7 convolution of stride 2, 3x3 max pooling of stride 2: a quarter of the size
  kSmall,     // 3x3 convolution of stride 1: for images of 28 to 64 pixels
};
constexpr std::array<const char*, 2> EnumNamesOf(ResNetStem) { return {"imagenet", "small"}; }

// The keys of `model: {name: resnet50, ...}`.
struct ResNetOptions {
  int64_t classes = 1000;
  ResNetStem stem = ResNetStem::kImagenet;
  int64_t width = 64;
  int64_t in_channels = 3;
  double dropout = 0.0;
  bool zero_init_residual = false;
  double batch_norm_momentum = 0.9;
  double batch_norm_epsilon = 1e-5;
  BatchStats batch_norm_stats = BatchStats::kLocal;

  static constexpr auto Fields() {
    return std::array{
        Field<&ResNetOptions::classes>("classes", "number of classes", kAtLeastOne),
        Field<&ResNetOptions::stem>("stem",
                                    "imagenet: 7x7 convolution and pooling, a quarter of the size; "
                                    "small: 3x3 convolution, for images of 28 to 64 pixels"),
        Field<&ResNetOptions::width>("width", "channels of the first stage; each next has twice",
                                     Bounds{.min = 1, .max = 65536}),
        Field<&ResNetOptions::in_channels>("in_channels",
                                           "channels of the images: 3 colour, 1 grey", kAtLeastOne),
        Field<&ResNetOptions::dropout>("dropout", "share of features dropped before the classifier",
                                       Bounds{.min = 0, .max = 1}),
        Field<&ResNetOptions::zero_init_residual>(
            "zero_init_residual", "start every block as the identity: its last norm scales by 0"),
        Field<&ResNetOptions::batch_norm_momentum>(
            "batch_norm_momentum", "share of the running statistics kept in each iteration",
            Bounds{.min = 0, .max = 1}),
        Field<&ResNetOptions::batch_norm_epsilon>("batch_norm_epsilon", "added to variances",
                                                  kPositive),
        Field<&ResNetOptions::batch_norm_stats>(
            "batch_norm_stats",
            "local: statistics of each rank's samples; global: of all samples")};
  }
};

// One column of the paper's Table 1.
struct ResNetDepth {
  bool bottleneck;                // blocks of 1x1, 3x3, 1x1 convolutions, else of two 3x3
  std::array<int64_t, 4> blocks;  // in each stage
};
inline constexpr ResNetDepth kResNet18 = {false, {2, 2, 2, 2}};
inline constexpr ResNetDepth kResNet34 = {false, {3, 4, 6, 3}};
inline constexpr ResNetDepth kResNet50 = {true, {3, 4, 6, 3}};
inline constexpr ResNetDepth kResNet101 = {true, {3, 4, 23, 3}};
inline constexpr ResNetDepth kResNet152 = {true, {3, 8, 36, 3}};

// image [n, in_channels, h, w] -> logits [n, classes]. Any h and w; the last stage sees 1/32 of
// them (1/8 with the small stem), rounded up. Errors stay in b.status().
ValueId ResNet(Builder& b, ValueId image, const ResNetDepth& depth, const ResNetOptions& options);

// Names in weights files of torchvision, paddle.vision and PaddleClas.
std::vector<WeightNames> ResNetWeightNames(const ResNetDepth& depth);

// "resnet18" to "resnet152".
std::vector<ModelRow> ResNetModels();

}  // namespace capstan
