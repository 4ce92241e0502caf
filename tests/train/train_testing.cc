#include "tests/train/train_testing.h"

#include <spng.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/base/status.h"
#include "engine/config/job_checks.h"
#include "engine/config/load_job.h"
#include "engine/train/model_state.h"
#include "ops/batch_norm/batch_norm.h"
#include "ops/bias_add/bias_add.h"
#include "ops/conv2d/conv2d.h"
#include "ops/dropout/dropout.h"
#include "ops/global_avg_pool/global_avg_pool.h"
#include "ops/matmul/matmul.h"
#include "ops/relu/relu.h"
#include "ops/reshape/reshape.h"
#include "tools/trainer/registry.h"

namespace capstan {
namespace {

constexpr int64_t kPlainChannels = 8;

struct TestModelOptions {
  int64_t classes = 3;
  double dropout = 0;

  static constexpr auto Fields() {
    return std::array{Field<&TestModelOptions::classes>("classes", "number of classes"),
                      Field<&TestModelOptions::dropout>("dropout", "share of features dropped")};
  }
};

ValueId Channels(Builder& b, ValueId image, const AnyStruct& options) {
  const ValueId w =
      b.Param("w", {options.As<TestModelOptions>().classes}, Role::kWeight, Constant(1));
  return BiasAdd(b, Flatten(b, GlobalAvgPool(b, image)), w);
}

ValueId Features(Builder& b, ValueId image) {
  if (!b.ok()) return kNoValue;
  const int64_t in = b.shape(image)[1];
  const ValueId w = b.Param("conv.weight", {kPlainChannels, in, 3, 3}, Role::kWeight,
                            Normal(std::sqrt(2.0 / static_cast<double>(9 * in))));
  const ValueId x = Relu(b, Conv2d(b, image, w, {.padding = {1, 1}}));
  return Flatten(b, GlobalAvgPool(b, x));
}

ValueId Linear(Builder& b, ValueId x, const AnyStruct& options) {
  const int64_t classes = options.As<TestModelOptions>().classes;
  const ValueId w = b.Param("fc.weight", {classes, kPlainChannels}, Role::kWeight, Uniform(0.3));
  const ValueId bias = b.Param("fc.bias", {classes}, Role::kBias, Constant(0));
  return BiasAdd(b, MatMul(b, x, w, {.transpose_b = true}), bias, -1);
}

ValueId Plain(Builder& b, ValueId image, const AnyStruct& options) {
  const ValueId x = Features(b, image);
  return Linear(b, Dropout(b, x, options.As<TestModelOptions>().dropout), options);
}

ValueId PooledNorm(Builder& b, ValueId image, const AnyStruct& options) {
  const ValueId x = Features(b, image);
  const auto scope = b.Enter("bn");
  return Linear(b, BatchNorm(b, x), options);
}

ModelRow Row(const char* name, ValueId (*build)(Builder&, ValueId, const AnyStruct&)) {
  return {.name = name,
          .doc = "for tests",
          .options = &TypeOf<TestModelOptions>(),
          .build = build,
          .classes = [](const AnyStruct& o) { return o.As<TestModelOptions>().classes; }};
}

}  // namespace

const EngineTables& TestTables() {
  static const EngineTables& tables = *[] {
    auto* t = new EngineTables(MakeTables());
    for (const ModelRow& row :
         {Row("channels", Channels), Row("plain", Plain), Row("pooled_norm", PooledNorm)}) {
      t->models.push_back(row);
      t->choices["model"].push_back({row.name, row.options, row.doc});
    }
    return t;
  }();
  return tables;
}

JobSpec MakeJob(std::string_view yaml, const std::string& folder,
                const std::vector<std::string>& overrides) {
  absl::StatusOr<JobSpec> job = ParseJob(yaml, "test.yaml", TestTables().choices, overrides);
  CHECK_OK(job);
  CHECK_OK(CheckCanTrain(*job));
  job->output_dir = folder;
  return *std::move(job);
}

absl::StatusOr<std::unique_ptr<TrainRun>> TrainRun::Open(const JobSpec& job,
                                                         const EngineTables& tables,
                                                         const std::atomic<bool>* stop) {
  std::unique_ptr<TrainRun> run(new TrainRun());
  ASSIGN_OR_RETURN(run->store_, CheckpointStore::Create(
                                    {.output_dir = job.output_dir, .keep = job.checkpoint.keep}));
  ASSIGN_OR_RETURN(run->log_, RunLog::Create({.output_dir = job.output_dir, .quiet = true}));
  run->device_ = MakeCpuDevice(1);
  run->comm_ = MakeSingleComm();
  run->options_ = {.device = run->device_.get(),
                   .comm = run->comm_.get(),
                   .log = run->log_.get(),
                   .store = run->store_.get(),
                   .stop = stop};
  ASSIGN_OR_RETURN(run->trainer_, Trainer::Create(job, tables, run->options_));
  return run;
}

std::unique_ptr<TrainRun> TrainToEnd(const JobSpec& job) {
  absl::StatusOr<std::unique_ptr<TrainRun>> run = TrainRun::Open(job);
  CHECK_OK(run);
  const absl::StatusOr<TrainEnd> end = (*run)->trainer().Train();
  CHECK_OK(end);
  CHECK(*end == TrainEnd::kFinished);
  return *std::move(run);
}

std::vector<double> Numbers(const std::string& output_dir, std::string_view event,
                            std::string_view key) {
  std::string pointer = "/" + std::string(key);
  std::replace(pointer.begin(), pointer.end(), '.', '/');
  std::vector<double> numbers;
  std::ifstream file(output_dir + "/metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.at("event") != event) continue;
    numbers.push_back(json.at(nlohmann::json::json_pointer(pointer)).get<double>());
  }
  return numbers;
}

std::string LogText(const std::string& output_dir) { return Slurp(output_dir + "/train.log"); }

std::vector<float> ValuesOf(Session& session, const std::string& name) {
  const TensorView state = session.executor().State(name);
  const HostTensor host({state.type.dtype, state.type.shape});
  CopyTensor(state, host.view());
  const auto values = host.Elements<float>();
  return {values.begin(), values.end()};
}

void WritePixel(const std::string& path, uint8_t red, uint8_t green, uint8_t blue) {
  const std::array<uint8_t, 3> pixel = {red, green, blue};
  spng_ctx* png = spng_ctx_new(SPNG_CTX_ENCODER);
  spng_set_option(png, SPNG_ENCODE_TO_BUFFER, 1);
  spng_ihdr header{.width = 1, .height = 1};
  header.bit_depth = 8;
  header.color_type = SPNG_COLOR_TYPE_TRUECOLOR;
  CHECK_EQ(spng_set_ihdr(png, &header), 0);
  CHECK_EQ(spng_encode_image(png, pixel.data(), pixel.size(), SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE),
           0);
  size_t size = 0;
  int error = 0;
  void* buffer = spng_get_png_buffer(png, &size, &error);
  CHECK(buffer != nullptr) << error;
  Spill(path, std::string(static_cast<const char*>(buffer), size));
  std::free(buffer);
  spng_ctx_free(png);
}

testing::AssertionResult Contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "no '" << part << "' in\n" << text;
}

}  // namespace capstan
