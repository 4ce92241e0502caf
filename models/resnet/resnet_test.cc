#include "models/resnet/resnet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/ir/verify.h"
#include "models/model_table.h"

namespace capstan {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

// A model's graph over f32 images of the given shape.
struct Built {
  Graph graph;
  absl::Status status;
  ValueId logits = kNoValue;

  std::vector<std::string> Names(InputKind kind) const {
    std::vector<std::string> names;
    for (const GraphInput& in : graph.inputs()) {
      if (in.kind == kind) names.push_back(in.name);
    }
    return names;
  }
  int64_t ParameterCount() const {
    int64_t count = 0;
    for (const GraphInput& in : graph.inputs()) {
      if (in.kind == InputKind::kParam) count += graph.type(in.value).count();
    }
    return count;
  }
  const GraphInput& Input(std::string_view name) const {
    const GraphInput* input = graph.FindInput(name);
    CHECK(input != nullptr) << name;
    return *input;
  }
  Shape ShapeOf(std::string_view name) const { return graph.type(Input(name).value).shape; }
  // What the last node of a part of the model makes.
  Shape ResultOf(std::string_view scope) const {
    Shape shape;
    for (const Node& node : graph.nodes()) {
      if (node.scope == scope) shape = graph.type(node.outputs[0]).shape;
    }
    return shape;
  }
};

Built Build(std::string_view name, Shape image, const ResNetOptions& options = {},
            Mode mode = Mode::kTrain) {
  const OpTable ops;  // models name their rows by header, so no table is asked
  Built built;
  Builder b(&built.graph, &ops, mode);
  for (const ModelRow& model : AllModels()) {
    if (name != model.name) continue;
    built.logits = model.build(b, b.Data("image", {DType::kF32, image}), AnyStruct::Of(options));
  }
  built.status = b.status();
  return built;
}

// Numbers of weights, biases and norm parameters (no statistics), as published with torchvision's
// weights for 1000 classes.
TEST(ResNet, ParameterCountsAreThePublishedOnes) {
  const std::vector<std::pair<const char*, int64_t>> published = {{"resnet18", 11'689'512},
                                                                  {"resnet34", 21'797'672},
                                                                  {"resnet50", 25'557'032},
                                                                  {"resnet101", 44'549'160},
                                                                  {"resnet152", 60'192'808}};
  for (const auto& [name, count] : published) {
    for (const Mode mode : {Mode::kTrain, Mode::kEvaluate}) {
      const Built built = Build(name, {2, 3, 224, 224}, {}, mode);
      ASSERT_TRUE(built.status.ok()) << built.status.ToString();
      EXPECT_EQ(built.ParameterCount(), count) << name;
      EXPECT_EQ(built.graph.type(built.logits).shape, (Shape{2, 1000})) << name;
      EXPECT_TRUE(VerifyGraph(built.graph, Stage::kLogical).ok()) << name;
    }
  }
}

TEST(ResNet, NamesAndShapesAreTorchvisions) {
  const Built built = Build("resnet50", {2, 3, 224, 224});
  const std::vector<std::string> params = built.Names(InputKind::kParam);
  EXPECT_EQ(params.size(), 161u);
  EXPECT_THAT(params, IsSupersetOf({"conv1.weight", "bn1.weight", "bn1.bias",
                                    "layer1.0.conv1.weight", "layer1.0.bn3.bias",
                                    "layer1.0.downsample.1.bias", "layer3.5.conv2.weight",
                                    "layer4.2.bn3.weight", "fc.weight", "fc.bias"}));
  EXPECT_EQ(built.ShapeOf("conv1.weight"), (Shape{64, 3, 7, 7}));
  EXPECT_EQ(built.ShapeOf("layer1.0.conv3.weight"), (Shape{256, 64, 1, 1}));
  EXPECT_EQ(built.ShapeOf("layer2.0.downsample.0.weight"), (Shape{512, 256, 1, 1}));
  EXPECT_EQ(built.ShapeOf("fc.weight"), (Shape{1000, 2048}));
  EXPECT_EQ(built.graph.FindInput("layer1.1.downsample.0.weight"), nullptr);

  const std::vector<std::string> states = built.Names(InputKind::kState);
  EXPECT_EQ(states.size(), 2u * 53u);  // 53 norms
  EXPECT_THAT(states, IsSupersetOf({"bn1.running_mean", "bn1.running_var",
                                    "layer4.0.downsample.1.running_var"}));
}

TEST(ResNet, BottlenecksStrideInTheir3x3Convolution) {
  const Built built = Build("resnet50", {2, 3, 224, 224});
  EXPECT_EQ(built.ResultOf("conv1"), (Shape{2, 64, 112, 112}));
  EXPECT_EQ(built.ResultOf("maxpool"), (Shape{2, 64, 56, 56}));
  EXPECT_EQ(built.ResultOf("layer2/0/conv1"), (Shape{2, 128, 56, 56}));
  EXPECT_EQ(built.ResultOf("layer2/0/conv2"), (Shape{2, 128, 28, 28}));
  EXPECT_EQ(built.ResultOf("layer4/2"), (Shape{2, 2048, 7, 7}));
}

TEST(ResNet, SmallStemKeepsTheSize) {
  const Built built =
      Build("resnet18", {8, 1, 28, 28},
            {.classes = 10, .stem = ResNetStem::kSmall, .width = 16, .in_channels = 1});
  ASSERT_TRUE(built.status.ok()) << built.status.ToString();
  EXPECT_EQ(built.ShapeOf("conv1.weight"), (Shape{16, 1, 3, 3}));
  EXPECT_EQ(built.ResultOf("layer1/1"), (Shape{8, 16, 28, 28}));
  EXPECT_EQ(built.ResultOf("layer4/1"), (Shape{8, 128, 4, 4}));
  EXPECT_EQ(built.graph.type(built.logits).shape, (Shape{8, 10}));
}

TEST(ResNet, OddSizesRoundUpAndShareParameters) {
  const Built odd = Build("resnet34", {2, 3, 225, 97});
  ASSERT_TRUE(odd.status.ok()) << odd.status.ToString();
  EXPECT_EQ(odd.ResultOf("layer4/2"), (Shape{2, 512, 8, 4}));
  EXPECT_EQ(odd.Names(InputKind::kParam),
            Build("resnet34", {2, 3, 224, 224}).Names(InputKind::kParam));
  // One pixel is left of a small image: fine in evaluation.
  EXPECT_TRUE(Build("resnet50", {1, 3, 1, 1}, {}, Mode::kEvaluate).status.ok());
}

TEST(ResNet, TooSmallImagesAreAnErrorThatNamesSizesAndPlace) {
  const Built built = Build("resnet50", {1, 3, 32, 32});
  EXPECT_THAT(MessageOf(built.status), HasSubstr("one value per channel"));
  EXPECT_THAT(MessageOf(built.status), HasSubstr("f32[1,512,1,1]"));
  EXPECT_THAT(MessageOf(built.status), HasSubstr("layer4/0/bn2"));
  EXPECT_EQ(built.logits, kNoValue);
}

TEST(ResNet, WrongChannelsNameTheKey) {
  const Built built = Build("resnet18", {2, 1, 28, 28});
  EXPECT_THAT(MessageOf(built.status), HasSubstr("model.in_channels"));
  EXPECT_THAT(MessageOf(built.status), HasSubstr("[2,1,28,28]"));
  EXPECT_THAT(MessageOf(Build("resnet18", {2, 3}).status), HasSubstr("[n,channels,height,width]"));
}

TEST(ResNet, FirstValuesAndRoles) {
  const Built built = Build("resnet50", {2, 3, 64, 64}, {.zero_init_residual = true});
  const GraphInput& conv = built.Input("layer1.0.conv2.weight");
  EXPECT_EQ(conv.role, Role::kWeight);
  EXPECT_EQ(conv.init.kind, InitKind::kNormal);
  EXPECT_DOUBLE_EQ(conv.init.value, std::sqrt(2.0 / (64 * 9)));
  EXPECT_EQ(built.Input("bn1.weight").role, Role::kNorm);
  EXPECT_EQ(built.Input("bn1.weight").init.value, 1.0);
  EXPECT_EQ(built.Input("layer1.0.bn2.weight").init.value, 1.0);
  EXPECT_EQ(built.Input("layer1.0.bn3.weight").init.value, 0.0);
  EXPECT_EQ(built.Input("layer1.0.downsample.1.weight").init.value, 1.0);
  const GraphInput& bias = built.Input("fc.bias");
  EXPECT_EQ(bias.role, Role::kBias);
  EXPECT_EQ(bias.init.kind, InitKind::kUniform);
  EXPECT_DOUBLE_EQ(bias.init.value, 1.0 / std::sqrt(2048.0));
}

TEST(ResNet, DropoutIsThereInTrainingOnly) {
  const auto dropouts = [](Mode mode) {
    const Built built = Build("resnet18", {2, 3, 64, 64}, {.dropout = 0.2}, mode);
    return std::count_if(built.graph.nodes().begin(), built.graph.nodes().end(),
                         [](const Node& n) { return std::string_view(n.op->name) == "dropout"; });
  };
  EXPECT_EQ(dropouts(Mode::kTrain), 1);
  EXPECT_EQ(dropouts(Mode::kEvaluate), 0);
}

// Names in paddle.vision and PaddleClas, from their sources.
TEST(ResNet, WeightNamesOfOtherFrameworks) {
  const auto ours_of = [](const ResNetDepth& depth, const std::string& theirs) -> std::string {
    const std::vector<WeightNames> families = ResNetWeightNames(depth);
    EXPECT_EQ(families.back().family, "PaddleClas");
    for (const WeightName& m : families.back().modules) {
      if (m.theirs == theirs) return m.ours;
    }
    return "";
  };
  EXPECT_EQ(ours_of(kResNet50, "stem.0.conv"), "conv1");
  EXPECT_EQ(ours_of(kResNet50, "stem.0.bn"), "bn1");
  EXPECT_EQ(ours_of(kResNet50, "blocks.0.conv2.bn"), "layer1.0.bn3");
  EXPECT_EQ(ours_of(kResNet50, "blocks.0.short.conv"), "layer1.0.downsample.0");
  EXPECT_EQ(ours_of(kResNet50, "blocks.7.short.bn"), "layer3.0.downsample.1");
  EXPECT_EQ(ours_of(kResNet50, "blocks.15.conv1.conv"), "layer4.2.conv2");
  EXPECT_EQ(ours_of(kResNet50, "blocks.16.conv0.conv"), "");
  EXPECT_EQ(ours_of(kResNet18, "blocks.7.conv1.bn"), "layer4.1.bn2");
  EXPECT_EQ(ours_of(kResNet18, "blocks.7.conv2.bn"), "");
  EXPECT_EQ(ours_of(kResNet152, "blocks.49.conv0.conv"), "layer4.2.conv1");
}

// Rates by layer reach every parameter, each in one layer.
TEST(ResNet, LayersHoldEveryParameterOnce) {
  const auto models = AllModels();
  for (const char* name : {"resnet18", "resnet50"}) {
    const auto row = std::find_if(models.begin(), models.end(),
                                  [&](const ModelRow& m) { return m.name == std::string(name); });
    const std::vector<ModelLayer> layers = row->layers();
    EXPECT_EQ(layers.size(), 6u);
    for (const std::string& param : Build(name, {1, 3, 64, 64}).Names(InputKind::kParam)) {
      int found = 0;
      for (const ModelLayer& layer : layers) {
        for (const std::string& prefix : layer.names) found += param.starts_with(prefix + ".");
      }
      EXPECT_EQ(found, 1) << param;
    }
  }
}

TEST(ModelTable, NamesAreUniqueAndRowsAreComplete) {
  std::set<std::string> names;
  for (const ModelRow& model : AllModels()) {
    EXPECT_TRUE(names.insert(model.name).second) << model.name;
    EXPECT_FALSE(std::string_view(model.doc).empty()) << model.name;
    ASSERT_NE(model.options, nullptr) << model.name;
    EXPECT_GT(model.classes(AnyStruct::Create(*model.options)), 0) << model.name;
  }
  EXPECT_EQ(names.count("resnet50"), 1u);
}

}  // namespace
}  // namespace capstan
