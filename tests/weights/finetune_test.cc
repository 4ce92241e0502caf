// Fine-tuning, resuming, comparing and exporting with weights of others, through the real binary.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/weights/weights_file.h"
#include "tests/cases/run_trainer.h"

namespace capstan {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Golden(const std::string& name) {
  return std::filesystem::absolute("tests/weights/goldens/" + name).string();
}

// Trains two iterations from the golden network; `more` are keys of the model.
void WriteJob(const JobFolder& job, int classes, const std::string& more = "") {
  job.Write("job.yaml", fmt::format(R"(version: 1
model: {{name: resnet18, classes: {0}, width: 2, pretrained: '{1}'{2}}}
dataset:
  train: {{type: synthetic, classes: {0}, shape: [3, 40, 40], samples: 8, batch_size: 4}}
loss: {{name: cross_entropy}}
optimizer: {{name: momentum, weight_decay: 0.1, lr: 0.1}}
train: {{epochs: 1}}
output_dir: '{3}'
device: cpu
)",
                                    classes, Golden("torchvision.pth"), more, job.Path("output")));
}

std::map<std::string, std::vector<float>> ReadAll(const std::string& path) {
  const auto file = WeightsFile::Open(path);
  CHECK_OK(file);
  std::map<std::string, std::vector<float>> tensors;
  for (const WeightEntry& entry : file->entries()) {
    if (!IsFloat(entry.type.dtype)) continue;
    const HostTensor tensor(TensorType{DType::kF32, entry.type.shape});
    CHECK_OK(file->Read(entry, tensor.view()));
    const auto values = tensor.Elements<float>();
    tensors[entry.name] = {values.begin(), values.end()};
  }
  return tensors;
}

TEST(FineTune, AnotherHeadIsListedAndCannotBeResumed) {  // CKPT-04
  const JobFolder job("head");
  WriteJob(job, 3);
  const Outcome first = job.Run("train");
  EXPECT_EQ(first.status, 0) << first.output;
  EXPECT_THAT(first.output, HasSubstr("pretrained: 100 of 102 tensors"));
  EXPECT_THAT(first.output, HasSubstr("skipped fc.weight: [5,16] in the file, [3,16]"));
  EXPECT_THAT(first.output, HasSubstr("skipped fc.bias: [5] in the file, [3]"));

  // A run that goes on takes its checkpoint.
  const Outcome again = job.Run("train", "-o train.epochs=2");
  EXPECT_EQ(again.status, 0) << again.output;
  EXPECT_THAT(again.output, HasSubstr("resumed from"));
  EXPECT_THAT(again.output, Not(HasSubstr("pretrained: ")));

  WriteJob(job, 5);
  const Outcome other = job.Run("train");
  EXPECT_EQ(other.status, 2) << other.output;
  EXPECT_THAT(other.output, HasSubstr("job.yaml:2:34: model.classes: was 3"));
}

TEST(FineTune, AnotherNetworkIsRefused) {
  const JobFolder job("network");
  WriteJob(job, 5);
  const Outcome out = job.Run("train", "-o model.name=resnet34");
  EXPECT_EQ(out.status, 2) << out.output;
  EXPECT_THAT(out.output, HasSubstr("another network"));
  EXPECT_THAT(out.output, HasSubstr("job.yaml:2:"));
}

TEST(FineTune, FrozenParametersStayAndStatisticsMove) {
  const JobFolder job("freeze");
  WriteJob(job, 5, ", freeze: [conv1, 'bn1', layer1/0, '*.downsample.1']");
  const Outcome train = job.Run("train");
  ASSERT_EQ(train.status, 0) << train.output;
  const Outcome exported = job.Run("export", "--to " + job.Path("w.safetensors"));
  ASSERT_EQ(exported.status, 0) << exported.output;
  const auto before = ReadAll(Golden("torchvision.pth")),
             after = ReadAll(job.Path("w.safetensors"));
  ASSERT_EQ(after.size(), before.size());
  for (const char* frozen : {"conv1.weight", "bn1.weight", "bn1.bias", "layer1.0.conv2.weight",
                             "layer1.0.bn2.bias", "layer3.0.downsample.1.weight"}) {
    EXPECT_EQ(after.at(frozen), before.at(frozen)) << frozen;
  }
  for (const char* moved : {"layer1.1.conv1.weight", "layer3.0.downsample.0.weight", "fc.weight",
                            "bn1.running_mean", "layer1.0.bn2.running_var"}) {
    EXPECT_NE(after.at(moved), before.at(moved)) << moved;
  }

  WriteJob(job, 5, ", freeze: [layr1]");
  const Outcome unknown = job.Run("train", "-o checkpoint.resume=none");
  EXPECT_EQ(unknown.status, 2) << unknown.output;
  EXPECT_THAT(unknown.output, HasSubstr("model.freeze: 'layr1' matches no parameter"));
}

// What evaluation reads is what leaves the run.
TEST(Export, TakesMovingAverages) {
  const JobFolder job("averages");
  WriteJob(job, 5, ", freeze: [conv1]");
  const std::string more =
      "-o train.ema=0.5 'dataset.eval={type: synthetic, classes: 5, shape: [3, 40, 40], samples: "
      "4, batch_size: 4}'";
  const Outcome train = job.Run("train", more);
  ASSERT_EQ(train.status, 0) << train.output;
  const Outcome exported = job.Run("export", "--to " + job.Path("w.safetensors"));
  EXPECT_THAT(exported.output, HasSubstr("102 tensors"));
  EXPECT_THAT(exported.output, HasSubstr("(iteration 2, averaged weights)"));
  const std::string checkpoint = "output/checkpoints/iteration_000000002/";
  const auto all = ReadAll(job.Path("w.safetensors")),
             averages = ReadAll(job.Path(checkpoint + "ema.safetensors")),
             weights = ReadAll(job.Path(checkpoint + "weights.safetensors"));
  EXPECT_EQ(averages.size() + 1, all.size());
  EXPECT_FALSE(averages.contains("conv1.weight"));
  EXPECT_EQ(all.at("conv1.weight"), weights.at("conv1.weight"));
  for (const auto& [name, values] : averages) EXPECT_EQ(all.at(name), values) << name;
  EXPECT_NE(averages.at("fc.weight"), weights.at("fc.weight"));
  EXPECT_NE(averages.at("bn1.running_mean"), weights.at("bn1.running_mean"));

  // The line of the training run and that of `eval` agree.
  const Outcome eval = job.Run("eval", more);
  EXPECT_THAT(eval.output, HasSubstr("averaged weights"));
  const size_t at = train.output.find("  top1 ");
  ASSERT_NE(at, std::string::npos) << train.output;
  EXPECT_THAT(eval.output,
              HasSubstr(train.output.substr(at, train.output.find("  4 samples") - at)));
}

TEST(Compare, AgreesOrNamesTheFirstLayerThatDiffers) {
  const JobFolder job("compare");
  WriteJob(job, 5);
  const std::string golden = "--golden " + Golden("activations.safetensors");
  const Outcome same = job.Run("compare", golden);
  EXPECT_EQ(same.status, 0) << same.output;
  // 20 convolutions, 20 norms, pooling and the head; 8 blocks, 4 layers, 3 shortcuts around them.
  EXPECT_THAT(same.output, HasSubstr("57 activations agree"));

  // Another epsilon changes every norm, the first of them first.
  const Outcome other = job.Run("compare", golden + " -o model.batch_norm_epsilon=0.01");
  EXPECT_EQ(other.status, 1) << other.output;
  EXPECT_THAT(other.output, HasSubstr("first difference: bn1 by"));

  const Outcome weights = job.Run(
      "compare", golden + " --checkpoint " + Golden("paddle_clas.pdparams") + " --tolerance 0");
  EXPECT_EQ(weights.status, 1) << weights.output;
  EXPECT_THAT(weights.output, HasSubstr("PaddleClas names"));

  const Outcome none = job.Run("compare", "--golden " + Golden("torchvision.safetensors"));
  EXPECT_EQ(none.status, 2) << none.output;
  EXPECT_THAT(none.output, HasSubstr("no tensor `input`"));
}

}  // namespace
}  // namespace capstan
