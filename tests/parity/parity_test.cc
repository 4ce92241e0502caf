// Trains the network of the goldens here and compares with what PyTorch computed; README.md says
// what the job is and how the numbers were chosen.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/config/job_spec.h"
#include "engine/runtime/device.h"
#include "engine/train/loss_options.h"
#include "engine/train/model_state.h"
#include "engine/train/optimizer_options.h"
#include "engine/train/session.h"
#include "models/resnet/resnet.h"
#include "tests/parity/closed_form.h"
#include "tools/trainer/registry.h"

namespace capstan {
namespace {

using nlohmann::json;

struct Case {
  const char* name;
  const char* goldens;
  DType dtype;
  const char* impl;  // kernels to use; "": the best
  // Largest differences allowed: of losses, relative; of tensors, in parts of their root mean
  // square; of logits, absolute.
  double losses;
  double gradients;
  double weights;
  double logits;
};

// For float 1e-4, and less where nothing grows over the iterations. For double only the order of
// sums differs.
constexpr Case kCases[] = {
    {"F32Fast", "resnet18_narrow_f32.json", DType::kF32, "", 1e-4, 1e-4, 1e-5, 1e-4},
    {"F64Reference", "resnet18_narrow_f64.json", DType::kF64, "reference", 1e-9, 1e-9, 1e-9, 1e-9},
};

json Load(const std::string& name) {
  std::ifstream file("tests/parity/goldens/" + name);
  EXPECT_TRUE(file.good()) << name;
  return json::parse(file);
}

double ValueAt(const TensorView& host, int64_t i) {
  const auto k = static_cast<size_t>(i);
  return host.type.dtype == DType::kF64 ? host.Elements<double>()[k]
                                        : static_cast<double>(host.Elements<float>()[k]);
}

// Fills a row-major tensor with f(index), rounded once where it holds floats.
template <typename F>
void Fill(const HostTensor& tensor, F&& f) {
  for (int64_t i = 0; i < tensor.type().count(); ++i) {
    const auto k = static_cast<size_t>(i);
    if (tensor.type().dtype == DType::kF64) {
      tensor.Elements<double>()[k] = f(i);
    } else {
      tensor.Elements<float>()[k] = static_cast<float>(f(i));
    }
  }
}

// One of the fixed batches, in the memory order in which the loader hands images over.
struct FixedBatch {
  HostTensor image;
  HostTensor label;

  FixedBatch(int64_t batch, DType dtype, const Shape& shape, int64_t classes)
      : image({dtype, shape, MemoryFormat::kChannelsLast}), label({DType::kI64, {shape[0]}}) {
    const HostTensor plain({dtype, shape});
    Fill(plain, [&](int64_t i) { return closed_form::Image(batch, i); });
    CopyTensor(plain.view(), image.view());
    for (int64_t i = 0; i < shape[0]; ++i) {
      label.Elements<int64_t>()[static_cast<size_t>(i)] = closed_form::Label(batch, i, classes);
    }
  }
  MicroBatch view() const { return {image.view(), label.view()}; }
};

class Parity : public ::testing::TestWithParam<Case> {
 protected:
  Parity() : goldens_(Load(GetParam().goldens)), tables_(MakeTables()), device_(MakeCpuDevice(0)) {}

  const json& spec() const { return goldens_["spec"]; }
  Shape ImageShape() const { return Shape(spec()["image"].get<std::vector<int64_t>>()); }

  CompileRequest Request() const {
    const ResNetOptions model = {
        .classes = spec()["classes"],
        .stem = ResNetStem::kSmall,
        .width = spec()["width"],
        .batch_norm_momentum = spec()["batch_norm_momentum"],
        .batch_norm_epsilon = spec()["batch_norm_epsilon"],
    };
    OptimizerSpec optimizer;
    optimizer.choice = {"momentum",
                        AnyStruct::Of(MomentumOptions{.momentum = spec()["momentum"],
                                                      .weight_decay = spec()["weight_decay"]})};
    return {.model = {spec()["model"], AnyStruct::Of(model)},
            .loss = DefaultLoss(),
            .update = MakeUpdateRule(optimizer),
            .train_batches = {ImageShape()},
            .evaluate_batches = {ImageShape()},
            .dtype = GetParam().dtype};
  }

  void Start() {
    auto session = Session::Create(Request(), tables_, {.impl = GetParam().impl}, device_.get());
    ASSERT_TRUE(session.ok()) << session.status().ToString();
    session_ = std::move(*session);
    // Statistics as ever; then all parameters by the closed form.
    ASSERT_TRUE(InitializeState(session_->executor(), 0).ok());
    for (const StateEntry& entry : session_->plan().state) {
      if (entry.kind != InputKind::kParam || entry.flat) continue;
      const HostTensor host({entry.type.dtype, entry.type.shape});
      Fill(host,
           [&](int64_t i) { return closed_form::Parameter(entry.name, entry.type.shape, i); });
      ASSERT_TRUE(WriteState(session_->executor(), entry, host.view()).ok()) << entry.name;
    }
    for (int64_t k = 0; k < spec()["batches"]; ++k) {
      batches_.emplace_back(k, GetParam().dtype, ImageShape(), spec()["classes"]);
    }
  }

  double Iterate(int64_t iteration) {
    const FixedBatch& batch = batches_[static_cast<size_t>(iteration) % batches_.size()];
    const double inv_targets = 1.0 / static_cast<double>(ImageShape()[0]);
    const auto loss = session_->RunMicro(
        batch.view(), {.first = true, .inv_targets = inv_targets, .iteration = iteration});
    CHECK_OK(loss);
    if (iteration == 0) ExpectStates("gradients", "@grad", GetParam().gradients);
    CHECK_OK(session_->RunUpdate(spec()["lr"], iteration));
    return *loss;
  }

  // Compares the state `name + suffix` with each tensor of a section of the goldens.
  void ExpectStates(const char* section, const std::string& suffix, double tolerance) {
    const json& tensors = goldens_[section];
    EXPECT_FALSE(tensors.empty()) << section;
    for (const auto& [name, tensor] : tensors.items()) {
      SCOPED_TRACE(std::string(section) + " " + name);
      const TensorView state = session_->executor().State(name + suffix);
      ASSERT_EQ(state.type.shape, Shape(tensor["shape"].get<std::vector<int64_t>>()));
      const HostTensor host({state.type.dtype, state.type.shape});
      CopyTensor(state, host.view());
      ExpectTensor(host.view(), tensor, tolerance);
    }
  }

  static void ExpectTensor(const TensorView& host, const json& tensor, double tolerance) {
    double squares = 0;
    for (int64_t i = 0; i < host.type.count(); ++i) squares += std::pow(ValueAt(host, i), 2);
    const double norm = tensor["norm"];
    EXPECT_NEAR(std::sqrt(squares), norm, tolerance * norm);
    const double rms = norm / std::sqrt(static_cast<double>(host.type.count()));
    for (size_t i = 0; i < tensor["index"].size(); ++i) {
      const int64_t index = tensor["index"][i];
      EXPECT_NEAR(ValueAt(host, index), tensor["value"][i].get<double>(), tolerance * rms) << index;
    }
  }

  json goldens_;
  EngineTables tables_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Session> session_;
  std::vector<FixedBatch> batches_;
};

TEST_P(Parity, FollowsPyTorch) {
  ASSERT_NO_FATAL_FAILURE(Start());
  const auto losses = goldens_["losses"].get<std::vector<double>>();
  ASSERT_EQ(static_cast<int64_t>(losses.size()), spec()["iterations"].get<int64_t>());
  for (size_t i = 0; i < losses.size(); ++i) {
    EXPECT_NEAR(Iterate(static_cast<int64_t>(i)), losses[i], GetParam().losses * losses[i])
        << "iteration " << i;
  }
  ExpectStates("weights", "", GetParam().weights);
  ExpectStates("statistics", "", GetParam().weights);

  const auto result = session_->RunEvaluate(batches_[0].view());
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  const auto samples = static_cast<double>(ImageShape()[0]);
  EXPECT_NEAR(result->loss_sum / samples, goldens_["eval_loss"].get<double>(), GetParam().logits);
  const auto logits = goldens_["eval_logits"].get<std::vector<std::vector<double>>>();
  int64_t i = 0;
  for (const std::vector<double>& row : logits) {
    for (const double value : row) {
      EXPECT_NEAR(ValueAt(result->logits, i), value, GetParam().logits) << i;
      ++i;
    }
  }
  EXPECT_EQ(i, result->logits.type.count());
}

INSTANTIATE_TEST_SUITE_P(All, Parity, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace capstan
