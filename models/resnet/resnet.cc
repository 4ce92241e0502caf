#include "models/resnet/resnet.h"

#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "ops/add/add.h"
#include "ops/bias_add/bias_add.h"
#include "ops/conv2d/conv2d.h"
#include "ops/dropout/dropout.h"
#include "ops/global_avg_pool/global_avg_pool.h"
#include "ops/matmul/matmul.h"
#include "ops/max_pool/max_pool.h"
#include "ops/relu/relu.h"
#include "ops/reshape/reshape.h"

namespace capstan {
namespace {

// A bottleneck's last convolution has this many times the channels of its others.
constexpr int64_t kExpansion = 4;

double Square(int64_t x) { return static_cast<double>(x * x); }

// No bias: batch norm follows. Padding keeps the size at stride 1. Weights start as in "Delving
// Deep into Rectifiers" (arXiv:1502.01852), by fan-out.
ValueId Conv(Builder& b, std::string_view name, ValueId x, int64_t channels, int64_t kernel,
             int64_t stride) {
  if (!b.ok()) return kNoValue;
  const auto scope = b.Enter(name);
  const double fan_out = static_cast<double>(channels) * Square(kernel);
  const ValueId weight = b.Param("weight", {channels, b.shape(x)[1], kernel, kernel}, Role::kWeight,
                                 Normal(std::sqrt(2.0 / fan_out)));
  return Conv2d(b, x, weight, {.stride = {stride, stride}, .padding = {kernel / 2, kernel / 2}});
}

ValueId Norm(Builder& b, std::string_view name, ValueId x, const ResNetOptions& options,
             Init weight = Constant(1)) {
  const auto scope = b.Enter(name);
  return BatchNorm(b, x,
                   {.momentum = options.batch_norm_momentum,
                    .epsilon = options.batch_norm_epsilon,
                    .stats = options.batch_norm_stats,
                    .scale = weight});
}

// [n, features] -> [n, classes], x · weight' + bias.
ValueId Linear(Builder& b, std::string_view name, ValueId x, int64_t classes) {
  if (!b.ok()) return kNoValue;
  const auto scope = b.Enter(name);
  const int64_t features = b.shape(x)[1];
  const Init init = Uniform(1.0 / std::sqrt(static_cast<double>(features)));
  const ValueId weight = b.Param("weight", {classes, features}, Role::kWeight, init);
  const ValueId bias = b.Param("bias", {classes}, Role::kBias, init);
  return BiasAdd(b, MatMul(b, x, weight, {.transpose_b = true}), bias, -1);
}

// The first part: relu(norm(conv(image))), then max pooling where images are large.
ValueId Stem(Builder& b, ValueId image, const ResNetOptions& options) {
  const bool small = options.stem == ResNetStem::kSmall;
  ValueId x = Conv(b, "conv1", image, options.width, small ? 3 : 7, small ? 1 : 2);
  x = Relu(b, Norm(b, "bn1", x, options));
  if (small) return x;
  const auto scope = b.Enter("maxpool");
  return MaxPool(b, x, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
}

// Of the last norm of a residual branch; 0 makes the block begin as the identity
// ("Accurate, Large Minibatch SGD", arXiv:1706.02677, 5.1).
Init LastWeight(const ResNetOptions& options) {
  return Constant(options.zero_init_residual ? 0 : 1);
}

// F(x) of a basic block: two 3x3 convolutions.
ValueId Basic(Builder& b, ValueId x, int64_t channels, int64_t stride,
              const ResNetOptions& options) {
  x = Conv(b, "conv1", x, channels, 3, stride);
  x = Relu(b, Norm(b, "bn1", x, options));
  x = Conv(b, "conv2", x, channels, 3, 1);
  return Norm(b, "bn2", x, options, LastWeight(options));
}

// F(x) of a bottleneck: 1x1 to fewer channels, 3x3, 1x1 back to more.
ValueId Bottleneck(Builder& b, ValueId x, int64_t channels, int64_t stride,
                   const ResNetOptions& options) {
  x = Conv(b, "conv1", x, channels, 1, 1);
  x = Relu(b, Norm(b, "bn1", x, options));
  x = Conv(b, "conv2", x, channels, 3, stride);
  x = Relu(b, Norm(b, "bn2", x, options));
  x = Conv(b, "conv3", x, channels * kExpansion, 1, 1);
  return Norm(b, "bn3", x, options, LastWeight(options));
}

// x itself, or a strided 1x1 convolution of it where F(x) has another shape (option B).
ValueId Shortcut(Builder& b, ValueId x, ValueId residual, int64_t stride,
                 const ResNetOptions& options) {
  if (!b.ok() || b.shape(x) == b.shape(residual)) return x;
  const auto scope = b.Enter("downsample");
  return Norm(b, "1", Conv(b, "0", x, b.shape(residual)[1], 1, stride), options);
}

// relu(F(x) + x).
ValueId Block(Builder& b, ValueId x, bool bottleneck, int64_t channels, int64_t stride,
              const ResNetOptions& options) {
  const ValueId residual = bottleneck ? Bottleneck(b, x, channels, stride, options)
                                      : Basic(b, x, channels, stride, options);
  return Relu(b, Add(b, residual, Shortcut(b, x, residual, stride, options)));
}

// The image as the model wants it; otherwise an error that names the key to change.
void CheckImage(Builder& b, ValueId image, const ResNetOptions& options) {
  if (!b.ok()) return;
  const Shape& shape = b.shape(image);
  if (shape.ndim() != 4) {
    b.Fail(InvalidArgument("a residual network needs images [n,channels,height,width], not {}",
                           shape.ToString()));
  } else if (shape[1] != options.in_channels) {
    b.Fail(
        InvalidArgument("images {} have {} channels, the model takes {}; change "
                        "model.in_channels or the transforms",
                        shape.ToString(), shape[1], options.in_channels));
  }
}

template <const ResNetDepth& kDepth>
ValueId Build(Builder& b, ValueId image, const AnyStruct& options) {
  return ResNet(b, image, kDepth, options.As<ResNetOptions>());
}

template <const ResNetDepth& kDepth>
std::vector<WeightNames> Names() {
  return ResNetWeightNames(kDepth);
}

// The stem, the four stages, the classifier.
std::vector<ModelLayer> Layers() {
  return {{{"conv1", "bn1"}}, {{"layer1"}}, {{"layer2"}}, {{"layer3"}}, {{"layer4"}}, {{"fc"}}};
}

template <const ResNetDepth& kDepth>
ModelRow Row(const char* name, const char* doc) {
  return {.name = name,
          .doc = doc,
          .options = &TypeOf<ResNetOptions>(),
          .build = Build<kDepth>,
          .classes = [](const AnyStruct& options) { return options.As<ResNetOptions>().classes; },
          .weight_names = Names<kDepth>,
          .layers = Layers};
}

}  // namespace

ValueId ResNet(Builder& b, ValueId image, const ResNetDepth& depth, const ResNetOptions& options) {
  CheckImage(b, image, options);
  ValueId x = Stem(b, image, options);
  for (size_t stage = 0; stage < depth.blocks.size(); ++stage) {
    const auto stage_scope = b.Enter("layer" + std::to_string(stage + 1));
    for (int64_t block = 0; block < depth.blocks[stage]; ++block) {
      const auto block_scope = b.Enter(block);
      const int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      x = Block(b, x, depth.bottleneck, options.width << stage, stride, options);
    }
  }
  x = Flatten(b, GlobalAvgPool(b, x));
  x = Dropout(b, x, options.dropout);
  return Linear(b, "fc", x, options.classes);
}

std::vector<WeightNames> ResNetWeightNames(const ResNetDepth& depth) {
  const WeightNames torchvision = {.family = "torchvision", .ignored = {"num_batches_tracked"}};
  const WeightNames paddle = {.family = "paddle.vision",
                              .leaves = {{"_mean", "running_mean"}, {"_variance", "running_var"}},
                              .transposed = {"fc.weight"}};
  // PaddleClas counts blocks through all stages and convolutions from 0.
  WeightNames clas = paddle;
  clas.family = "PaddleClas";
  const auto add = [&](const std::string& theirs, const std::string& conv,
                       const std::string& norm) {
    clas.modules.push_back({theirs + ".conv", conv});
    clas.modules.push_back({theirs + ".bn", norm});
  };
  add("stem.0", "conv1", "bn1");
  int64_t count = 0;
  for (size_t stage = 0; stage < depth.blocks.size(); ++stage) {
    for (int64_t block = 0; block < depth.blocks[stage]; ++block, ++count) {
      const std::string theirs = "blocks." + std::to_string(count) + ".";
      const std::string ours =
          "layer" + std::to_string(stage + 1) + "." + std::to_string(block) + ".";
      for (int conv = 0; conv < (depth.bottleneck ? 3 : 2); ++conv) {
        const std::string number = std::to_string(conv + 1);
        add(theirs + "conv" + std::to_string(conv), ours + "conv" + number, ours + "bn" + number);
      }
      add(theirs + "short", ours + "downsample.0", ours + "downsample.1");
    }
  }
  return {torchvision, paddle, std::move(clas)};
}

std::vector<ModelRow> ResNetModels() {
  return {Row<kResNet18>("resnet18", "residual network of 18 layers, 11.7 M parameters"),
          Row<kResNet34>("resnet34", "residual network of 34 layers, 21.8 M parameters"),
          Row<kResNet50>("resnet50", "residual network of 50 layers, 25.6 M parameters"),
          Row<kResNet101>("resnet101", "residual network of 101 layers, 44.5 M parameters"),
          Row<kResNet152>("resnet152", "residual network of 152 layers, 60.2 M parameters")};
}

}  // namespace capstan
