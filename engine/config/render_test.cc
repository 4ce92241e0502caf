#include "engine/config/render.h"

#include <gtest/gtest.h>

#include "engine/base/status.h"
#include "engine/config/load_job.h"
#include "engine/config/sample_choices.h"

namespace capstan {
namespace {

absl::StatusOr<JobSpec> Parse(std::string_view text) {
  return ParseJob(text, "job.yaml", SampleChoices());
}

// Every kind of value, away from its default where that is interesting.
constexpr char kJob[] = R"(name: no
model: {name: crnn, label_names: [no, "1.0", a b, 北京, x_1], pretrained: "null"}
dataset:
  train:
    type: image_list
    root: C:\data
    batch_size: 8
    transforms: [ToCHWImage, NormalizeImage: {scale: 1./255., mean: [0.5, 1e-7]}]
    loader: {num_workers: 0}
optimizer:
  name: momentum
  lr: 1e-4
  grad_clip: {value: 5}
  no_decay: []
strategy: {dgc: {rampup_begin_step: 10}}
hybrid_configs: auto
eval: {every_epochs: null, every_iterations: 500}
watchdog_s: 0.5
)";

constexpr char kRendered[] = R"(version: 1
name: "no"
model:
  name: crnn
  classes: 1000
  label_names: ["no", "1.0", "a b", "北京", x_1]
  pretrained: "null"
  freeze: []
dataset:
  train:
    type: image_list
    root: "C:\\data"
    list: null
    batch_size: 8
    tokens_per_batch: null
    transforms:
      - ToCHWImage: {}
      - NormalizeImage: {scale: 0.00392156862745098, mean: [0.5, 1.0e-07]}
    loader:
      num_workers: 0
      prefetch: 4
      cache: none
    bad_samples:
      policy: skip
      limit: 0.001
    shuffle: true
    drop_last: true
  eval: null
loss: null
optimizer:
  name: momentum
  momentum: 0.9
  weight_decay: 0
  no_decay: []
  grad_clip:
    global_norm: null
    norm: null
    value: 5
  layer_lr_decay: null
  layer_lr_factors: []
  lr:
    name: constant
    base: 0.0001
    warmup_epochs: 0
amp:
  dtype: bfloat16
  level: "off"
  keep_fp32: []
  allow_16: []
  scale_loss: 65536
  use_dynamic_loss_scaling: true
  max_skips_in_a_row: 50
hybrid_configs: auto
strategy:
  accumulate: 1
  micro_batches: 1
  schedule: "1f1b"
  virtual_pp_degree: 1
  recompute: none
  fuse_grad_size_in_MB: 32
  overlap: true
  reduce_dtype: float32
  sync_every: 1
  dgc:
    rampup_begin_iteration: 10
    rampup_iterations: 1
    sparsity: [0.999]
  offload: none
train:
  epochs: null
  max_iterations: null
  seed: 42
  ema: null
  deterministic: false
eval:
  every_epochs: null
  every_iterations: 500
  start: 0
  metric: null
checkpoint:
  every_iterations: 1000
  keep: 3
  resume: auto
log:
  every_iterations: 10
watchdog_s: 0.5
output_dir: output
device: auto
)";

TEST(Render, ShowsEveryKey) {
  const absl::StatusOr<JobSpec> job = Parse(kJob);
  ASSERT_TRUE(job.ok()) << MessageOf(job.status());
  EXPECT_EQ(Render(*job), kRendered);
}

TEST(Render, LoadsBackToTheSameJob) {
  const absl::StatusOr<JobSpec> first = Parse(kJob), job = Parse(kRendered);
  ASSERT_TRUE(job.ok()) << MessageOf(job.status());
  EXPECT_EQ(Render(*job), kRendered);
  const TypeInfo& type = TypeOf<JobSpec>();
  EXPECT_EQ(PrintValue(type, &*job, true), PrintValue(type, &*first, true));
}

// CFG-01: the same number in, the same text out.
TEST(Render, SpellsEqualNumbersAlike) {
  for (const char* text : {"1e-4", "1E-4", "1.0e-4", "0.0001", "1e-04", ".0001", "1/10000"}) {
    const absl::StatusOr<JobSpec> job =
        Parse("model: crnn\noptimizer: {name: adam, lr: " + std::string(text) + "}\n");
    ASSERT_TRUE(job.ok()) << MessageOf(job.status());
    EXPECT_NE(Render(*job).find("\n    base: 0.0001\n"), std::string::npos) << text;
  }
}

TEST(ChangedKeys, ShowsOldAndNew) {
  const auto a = Parse(
      "model: crnn\ntrain: {epochs: 90}\noptimizer: {name: momentum, momentum: 0.5, lr: 1}\n");
  const auto b = Parse(
      "model: crnn\n"
      "train: {epochs: 120, ema: 0.9}\n"
      "optimizer: {name: adam, lr: 1, no_decay: []}\n");
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_TRUE(ChangedKeys(*a, *a).empty());
  std::string text;
  for (const ChangedKey& key : ChangedKeys(*a, *b)) {
    text += key.path + ": " + key.before + " -> " + key.after + "\n";
  }
  EXPECT_EQ(text,
            "optimizer.name: momentum -> adam\n"
            "optimizer.betas: not set -> [0.9, 0.999]\n"
            "optimizer.no_decay: [bias, norm] -> []\n"
            "train.epochs: 90 -> 120\n"
            "train.ema.decay: not set -> 0.9\n"
            "optimizer.momentum: 0.5 -> not set\n"
            "optimizer.weight_decay: 0 -> not set\n"
            "train.ema: null -> not set\n");
}

}  // namespace
}  // namespace capstan
