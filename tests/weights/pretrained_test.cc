// Pretrained weights in a network: the answers are those of the frameworks that wrote the files,
// and what does not fit is refused or listed.
#include "engine/train/pretrained.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/runtime/device.h"
#include "engine/train/model_state.h"
#include "engine/train/session.h"
#include "models/resnet/resnet.h"
#include "tools/trainer/registry.h"

namespace capstan {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Golden(const std::string& name) { return "tests/weights/goldens/" + name; }

HostTensor ReadTensor(const std::string& file, const std::string& name) {
  const auto files = TensorFiles::Open(Golden(file));
  CHECK_OK(files);
  const SafetensorsEntry* entry = files->Find(name);
  CHECK(entry != nullptr) << name;
  HostTensor tensor(entry->type);
  CHECK_OK(files->Read(name, tensor.view()));
  return tensor;
}

class Pretrained : public ::testing::Test {
 protected:
  Pretrained() : tables_(MakeTables()), device_(MakeCpuDevice(1)) {}

  std::unique_ptr<Session> Start(const std::string& model, const ResNetOptions& options,
                                 int64_t batch = 2) {
    row_ = FindModel(tables_.models, model);
    CHECK(row_ != nullptr) << model;
    const CompileRequest request{.model = {model, AnyStruct::Of(options)},
                                 .evaluate_batches = {{batch, 3, 40, 40}}};
    auto session = Session::Create(request, tables_, {}, device_.get());
    CHECK_OK(session);
    CHECK_OK(InitializeState((*session)->executor(), 0));
    return *std::move(session);
  }
  absl::StatusOr<PretrainedReport> Load(Session& session, const std::string& file) {
    return LoadPretrained(session.executor(), *row_, Golden(file));
  }

  const EngineTables tables_;
  const std::unique_ptr<Device> device_;
  const ModelRow* row_ = nullptr;
};

constexpr ResNetOptions kNarrow{.classes = 5, .width = 2};

struct FormatCase {
  const char* file;
  const char* names;
  const char* peer;
  double tolerance;
};
class PretrainedFormats : public Pretrained, public ::testing::WithParamInterface<FormatCase> {};

TEST_P(PretrainedFormats, GiveThePeersLogits) {
  const auto session = Start("resnet18", kNarrow);
  const auto report = Load(*session, GetParam().file);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->loaded, 102u);
  EXPECT_EQ(report->left(), 0u);
  EXPECT_THAT(report->problems, IsEmpty());
  EXPECT_THAT(report->source, HasSubstr(GetParam().names));

  const HostTensor input = ReadTensor("peers.safetensors", "input");
  const HostTensor image({DType::kF32, input.type().shape, MemoryFormat::kChannelsLast});
  CopyTensor(input.view(), image.view());
  const auto result = session->RunEvaluate({.image = image.view()});
  ASSERT_TRUE(result.ok()) << result.status();
  const HostTensor peer = ReadTensor("peers.safetensors", GetParam().peer);
  ASSERT_EQ(result->logits.type.shape, peer.type().shape);
  for (size_t i = 0; i < peer.Elements<float>().size(); ++i) {
    EXPECT_NEAR(result->logits.Elements<float>()[i], peer.Elements<float>()[i],
                GetParam().tolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, PretrainedFormats,
    ::testing::Values(FormatCase{"torchvision.safetensors", "torchvision names", "torch", 1e-5},
                      FormatCase{"torchvision.pth", "torchvision names", "torch", 1e-5},
                      FormatCase{"torchvision_old.pth", "torchvision names", "torch", 1e-5},
                      // Its weights were rounded to 11 bits.
                      FormatCase{"wrapped_half.pth", "torchvision names", "torch", 1e-2},
                      FormatCase{"paddle_vision.pdparams", "paddle.vision names", "paddle", 1e-5},
                      FormatCase{"paddle_clas.pdparams", "PaddleClas names", "paddle", 1e-5}),
    [](const auto& info) {
      const std::string name = info.param.file;
      return name.substr(0, name.find('.')) + (name.ends_with(".pth") ? "_pth" : "");
    });

TEST_F(Pretrained, AnotherHeadKeepsItsFirstValues) {
  for (const char* file : {"torchvision.pth", "paddle_clas.pdparams"}) {
    const auto session = Start("resnet18", {.classes = 3, .width = 2});
    const TensorView head = session->executor().State("fc.weight");
    const std::vector<float> before(head.Elements<float>().begin(), head.Elements<float>().end());
    const auto report = Load(*session, file);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->loaded, 100u);
    EXPECT_EQ(report->left(), 2u);
    EXPECT_THAT(report->problems, Contains(HasSubstr("fc.weight: [")));
    EXPECT_THAT(report->problems,
                Contains(HasSubstr("fc.bias: [5] in the file, [3] in the model")));
    EXPECT_EQ(std::vector<float>(head.Elements<float>().begin(), head.Elements<float>().end()),
              before);
  }
}

TEST_F(Pretrained, OtherNetworksAreRefused) {
  const auto error = [&](const std::string& model, const ResNetOptions& options) {
    return MessageOf(Load(*Start(model, options), "torchvision.pth").status());
  };
  EXPECT_THAT(error("resnet34", kNarrow), HasSubstr("another network: 102 of the model's 182"));
  EXPECT_THAT(error("resnet50", kNarrow), HasSubstr("another network"));
  EXPECT_THAT(error("resnet18", {.classes = 5, .width = 4}),
              HasSubstr("[2,3,7,7] in the file, [4,3,7,7] in the model"));
}

}  // namespace
}  // namespace capstan
