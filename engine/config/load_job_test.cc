#include "engine/config/load_job.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "engine/base/random.h"
#include "engine/base/status.h"
#include "engine/config/render.h"
#include "engine/config/sample_choices.h"

namespace capstan {
namespace {

// The example of the job format.
constexpr char kCanonical[] = R"(version: 1
name: resnet50-imagenet
model:      {name: resnet50, classes: 1000, pretrained: weights/resnet50.safetensors, freeze: []}
dataset:
  train:    {type: image_list, root: data/imagenet, list: train_list.txt, batch_size: 256,
             transforms: [{RandFlipImage: {flip_code: 1}}, ToCHWImage],
             loader: {num_workers: auto, prefetch: 4, cache: none},
             bad_samples: {policy: skip, limit: 0.001}}
  eval:     {type: image_list, root: data/imagenet, list: val_list.txt, batch_size: 256,
             transforms: []}
loss:       {name: cross_entropy, label_smoothing: 0.1}
optimizer:  {name: momentum, momentum: 0.9, weight_decay: 1.0e-4, no_decay: [bias, norm],
             grad_clip: null, layer_lr_decay: null,
             lr: {name: cosine, base: 0.8, warmup_epochs: 5}}
amp:        {dtype: bfloat16, level: O1, keep_fp32: [], allow_16: []}      # off | O1 | O2
hybrid_configs: {dp_degree: 4, mp_degree: 2, pp_degree: 2, sharding_degree: 1, sharding_stage: 1,
                 sequence_parallel: false}   # or: auto
strategy:   {accumulate: 1, micro_batches: 4, schedule: 1f1b, virtual_pp_degree: 1, recompute: none,
             fuse_grad_size_in_MB: 32, overlap: true,
             reduce_dtype: float32, sync_every: 1, dgc: null, offload: none}
train:      {epochs: 90, max_iterations: null, seed: 42, ema: null, deterministic: false}
eval:       {every_epochs: 1, every_iterations: null, start: 0, metric: top1}
checkpoint: {every_iterations: 1000, keep: 3, resume: auto}
log:        {every_iterations: 10}
watchdog_s: 30
output_dir: output/resnet50
device:     auto                                         # auto | cpu | cuda
)";

absl::StatusOr<JobSpec> Parse(std::string_view text,
                              const std::vector<std::string>& overrides = {}) {
  return ParseJob(text, "job.yaml", SampleChoices(), overrides);
}

std::string Errors(std::string_view text, const std::vector<std::string>& overrides = {}) {
  const absl::StatusOr<JobSpec> job = Parse(text, overrides);
  return job.ok() ? "no error" : MessageOf(job.status());
}

// A job of only a model and, on its second line, `line`.
std::string ErrorsOf(const std::string& line) { return Errors("model: crnn\n" + line + "\n"); }

TEST(LoadJob, ReadsTheCanonicalJob) {
  const absl::StatusOr<JobSpec> job = Parse(kCanonical);
  ASSERT_TRUE(job.ok()) << MessageOf(job.status());
  EXPECT_EQ(job->name, "resnet50-imagenet");
  EXPECT_EQ(job->model.choice.name, "resnet50");
  EXPECT_EQ(job->model.choice.options.As<SampleNet>().classes, 1000);
  EXPECT_EQ(job->model.pretrained, "weights/resnet50.safetensors");
  const TrainSetSpec& train = *job->dataset.train;
  EXPECT_EQ(train.choice.options.As<SampleImageList>().root, "data/imagenet");
  EXPECT_EQ(train.batch_size, 256);
  EXPECT_EQ(train.tokens_per_batch, std::nullopt);
  ASSERT_EQ(train.transforms.size(), 2u);
  EXPECT_EQ(train.transforms[0].name, "RandFlipImage");
  EXPECT_EQ(train.transforms[0].options.As<SampleFlip>().flip_code, 1);
  EXPECT_EQ(train.transforms[1].name, "ToCHWImage");
  EXPECT_EQ(train.loader.num_workers, std::nullopt);
  EXPECT_EQ(train.bad_samples.limit, 0.001);
  EXPECT_TRUE(train.drop_last);
  EXPECT_EQ(job->loss->choice.options.As<SampleCrossEntropy>().label_smoothing, 0.1);
  EXPECT_EQ(job->optimizer->choice.options.As<SampleMomentum>().weight_decay, 1e-4);
  EXPECT_EQ(job->optimizer->grad_clip, std::nullopt);
  EXPECT_EQ(job->optimizer->lr.choice.name, "cosine");
  EXPECT_EQ(job->optimizer->lr.choice.options.As<SampleRate>().base, 0.8);
  EXPECT_EQ(job->amp.level, AmpSpec::Level::kO1);
  EXPECT_EQ(job->hybrid_configs.dp_degree, 4);
  EXPECT_EQ(job->strategy.schedule, StrategySpec::Schedule::k1F1B);
  EXPECT_EQ(job->train.epochs, 90);
  EXPECT_EQ(job->eval.metric, "top1");
  EXPECT_EQ(job->checkpoint.every_iterations, 1000);
  EXPECT_EQ(job->device, JobSpec::Device::kAuto);
}

TEST(LoadJob, ValuesKnowTheirPlace) {
  const absl::StatusOr<JobSpec> job = Parse(kCanonical);
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->Where("dataset.train.root"), "job.yaml:5:38");
  EXPECT_EQ(job->Where("model.classes"), "job.yaml:3:39");
  EXPECT_EQ(job->Where("model.name"), "job.yaml:3:20");
  EXPECT_EQ(job->Where("dataset.train.transforms.0.RandFlipImage.flip_code"), "job.yaml:6:55");
  EXPECT_EQ(job->Where("dataset.train.drop_last"), "job.yaml:5:3");
  EXPECT_EQ(job->Where("nothing.of.this"), "job.yaml:1:1");
  EXPECT_FALSE(job->sources.Has("dataset.train.drop_last"));
}

TEST(LoadJob, DefaultsNeedOnlyAModel) {
  const absl::StatusOr<JobSpec> job = Parse("model: crnn\n");
  ASSERT_TRUE(job.ok()) << MessageOf(job.status());
  EXPECT_FALSE(job->optimizer.has_value());
  EXPECT_EQ(job->train.seed, 42);
  EXPECT_EQ(job->hybrid_configs.dp_degree, 1);
  EXPECT_EQ(job->eval.every_epochs, 1);
}

TEST(LoadJob, ReadsShortForms) {
  const absl::StatusOr<JobSpec> job = Parse(
      "model: crnn\n"
      "optimizer: {name: momentum, lr: 1e-3, grad_clip: 5}\n"
      "hybrid_configs: auto\n"
      "strategy: {overlap_communication: false}\n"
      "train: {ema: 0.99}\n");
  ASSERT_TRUE(job.ok()) << MessageOf(job.status());
  EXPECT_EQ(job->optimizer->lr.choice.name, "constant");
  EXPECT_EQ(job->optimizer->lr.choice.options.As<SampleRate>().base, 1e-3);
  EXPECT_EQ(job->optimizer->grad_clip->global_norm, 5);
  EXPECT_EQ(job->hybrid_configs.mode, HybridSpec::Mode::kAuto);
  EXPECT_FALSE(job->strategy.overlap);
  EXPECT_EQ(job->train.ema->decay, 0.99);
  EXPECT_EQ(job->Where("optimizer.lr.base"), "job.yaml:2:33");
}

TEST(LoadJob, EmptyMeansNotSet) {
  const absl::StatusOr<JobSpec> job =
      Parse("model: crnn\ntrain:\n  seed:\n  epochs:\namp:\neval: {every_epochs: null}\n");
  ASSERT_TRUE(job.ok()) << MessageOf(job.status());
  EXPECT_EQ(job->train.seed, 42);
  EXPECT_EQ(job->train.epochs, std::nullopt);
  EXPECT_EQ(job->eval.every_epochs, std::nullopt);
  EXPECT_EQ(ErrorsOf("dataset:\n  train:\n    type: image_list\n    root:\n    batch_size: 1"),
            "job.yaml:5:5: dataset.train.root: missing; give it (folder of the images)");
}

// Twelve mistakes, twelve messages.
TEST(LoadJob, ReportsAllMistakesAtOnce) {
  EXPECT_EQ(Errors(R"(version: 2
name: [a]
model: {name: resnet51, clases: 10}
dataset:
  train:
    type: image_list
    batch_size: -1
    transforms:
      - RandFlipImage: {flip: 1}
      - ToCHWimage:
      - RandFlipImage:
        flip_code: 1
loss: {name: cross_entropy, label_smoothing: 1.5}
optimizer:
  name: adam
  learning_rte: 0.3
  betas: 0.9
  epochs: 3
  lr: {name: cosine, base: nan, warmup-epochs: 5}
amp: maybe
train: {epochs: ten}
watchdog_s: "30"
)"),
            "job.yaml:1:10: version: 2 is out of range; it must be 1\n"
            "job.yaml:2:7: name: expected a text, found a list; quote it if it is one\n"
            "job.yaml:3:15: model.name: 'resnet51' is not a model; did you mean 'resnet50'? choose "
            "one of resnet50, crnn\n"
            "job.yaml:5:3: dataset.train.root: missing; give it (folder of the images)\n"
            "job.yaml:7:17: dataset.train.batch_size: -1 is out of range; it must be from 1 to "
            "16777216\n"
            "job.yaml:9:25: dataset.train.transforms.0.RandFlipImage.flip: unknown key; the keys "
            "here are flip_code\n"
            "job.yaml:10:9: dataset.train.transforms.1: 'ToCHWimage' is not a transform; did you "
            "mean 'ToCHWImage'? choose one of RandFlipImage, NormalizeImage, ToCHWImage\n"
            "job.yaml:11:9: dataset.train.transforms.2: expected one name with its options, found "
            "2 keys; indent the options below 'RandFlipImage:' or write 'RandFlipImage: {...}'\n"
            "job.yaml:13:46: loss.label_smoothing: 1.5 is out of range; it must be from 0 to 1\n"
            "job.yaml:16:3: optimizer.learning_rte: unknown key; the keys here are name, no_decay, "
            "grad_clip, layer_lr_decay, layer_lr_factors, lr, betas\n"
            "job.yaml:17:10: optimizer.betas: expected a list, found '0.9'; write [0.9]\n"
            "job.yaml:18:3: optimizer.epochs: unknown key here; 'epochs' belongs under 'train'\n"
            "job.yaml:19:28: optimizer.lr.base: 'nan' is not a finite number\n"
            "job.yaml:19:33: optimizer.lr.warmup-epochs: unknown key; did you mean "
            "'warmup_epochs'?\n"
            "job.yaml:20:6: amp: expected a map, found 'maybe'; write its keys as 'key: value'\n"
            "job.yaml:21:17: train.epochs: 'ten' is not an integer\n"
            "job.yaml:22:13: watchdog_s: expected a number, found the quoted text '30'; remove the "
            "quotes");
}

// CFG-02.
TEST(LoadJob, LabelsStayAsWritten) {
  const absl::StatusOr<JobSpec> job = Parse(
      "model: {name: crnn, label_names: [no, yes, on, 0123, 1.0, 北京, y, 'null', 1e3]}\n"
      "amp: {level: off}\n");
  ASSERT_TRUE(job.ok()) << MessageOf(job.status());
  EXPECT_EQ(
      job->model.choice.options.As<SampleNet>().label_names,
      (std::vector<std::string>{"no", "yes", "on", "0123", "1.0", "北京", "y", "null", "1e3"}));
  EXPECT_EQ(job->amp.level, AmpSpec::Level::kOff);
  EXPECT_EQ(Errors("model:\n  name: crnn\n  label_names: [a, \"\", null]\n"),
            "job.yaml:3:20: model.label_names.1: the item is empty or null; remove it, or quote it "
            "if it is a word\n"
            "job.yaml:3:24: model.label_names.2: the item is empty or null; remove it, or quote it "
            "if it is a word");
}

// CFG-03.
TEST(LoadJob, RefusesAKeyGivenTwice) {
  EXPECT_EQ(Errors("model: crnn\ntrain: {seed: 1}\n\ntrain: {seed: 2}\n"),
            "job.yaml:4:1: the key 'train' is given twice, at lines 2 and 4; keep one");
  EXPECT_EQ(ErrorsOf("strategy: {overlap: true, overlap_communication: true}"),
            "job.yaml:2:27: strategy.overlap: 'overlap' and 'overlap_communication' are the same "
            "key, at lines 2 and 2; keep one");
}

// CFG-04.
TEST(LoadJob, AnchorsMayHaveAKeyOfTheirOwn) {
  const absl::StatusOr<JobSpec> job = Parse(
      "base: &b {momentum: 0.5, weight_decay: 0.0005}\n"
      "more:\n  inner: &c {momentum: 0.7, lr: 0.1}\n"
      "model: crnn\n"
      "optimizer: {name: momentum, <<: [*b, *c], momentum: 0.2}\n");
  ASSERT_TRUE(job.ok()) << MessageOf(job.status());
  const auto& options = job->optimizer->choice.options.As<SampleMomentum>();
  EXPECT_EQ(options.momentum, 0.2);
  EXPECT_EQ(options.weight_decay, 0.0005);
  EXPECT_EQ(job->optimizer->lr.choice.options.As<SampleRate>().base, 0.1);
  EXPECT_EQ(job->Where("optimizer.weight_decay"), "job.yaml:1:40");
  EXPECT_EQ(Errors("base: &b {seed: 3}\nmodel: crnn\n"),
            "job.yaml:1:1: base: unknown key; did you mean 'name'?");
}

// CFG-05.
TEST(LoadJob, NamesTheNearestKey) {
  EXPECT_EQ(ErrorsOf("loss: {name: cross_entropy, Label_Smooth: 0.1}"),
            "job.yaml:2:29: loss.Label_Smooth: unknown key; did you mean 'label_smoothing'?");
  EXPECT_EQ(ErrorsOf("optimizer: {name: momentum, lr: 1, momentun: 0.3}"),
            "job.yaml:2:36: optimizer.momentun: unknown key; did you mean 'momentum'?");
  EXPECT_EQ(ErrorsOf("seed: 3"),
            "job.yaml:2:1: seed: unknown key here; 'seed' belongs under "
            "'train'");
  EXPECT_EQ(ErrorsOf("train: {output_dir: x}"),
            "job.yaml:2:9: train.output_dir: unknown key here; 'output_dir' belongs at the top "
            "level");
  EXPECT_EQ(ErrorsOf("zzzzzzzzz: 1").substr(0, 62),
            "job.yaml:2:1: zzzzzzzzz: unknown key; the keys here are versio");
}

// CFG-06; the characters themselves are tested with the tree.
TEST(LoadJob, NamesLookalikes) {
  EXPECT_EQ(Errors("epochs：5\nmodel: crnn\n"),
            "job.yaml:1:7: not valid YAML: '：' (U+FF1A, full-width colon) is not ':'; type the "
            "plain character");
  EXPECT_EQ(Errors("train:\n  epochs:5\nmodel: crnn\n"),
            "job.yaml:2:3: train: expected a map, found 'epochs:5'; a blank is missing after ':'");
  EXPECT_EQ(Errors("epochs:\xE3\x80\x80"
                   "5\n"),
            "job.yaml:1:1: expected a map, found 'epochs:\xE3\x80\x80"
            "5'; U+3000 (ideographic "
            "space) is not a plain space");
  EXPECT_EQ(
      ErrorsOf("train:\n  epochs: ５"),
      "job.yaml:3:11: train.epochs: '５' is not an integer: '５' (U+FF15, full-width digit) is "
      "not '5'");
  EXPECT_EQ(
      ErrorsOf("optimizer: {name: adam, lr: 1, betas: [0.9，0.99]}"),
      "job.yaml:2:40: optimizer.betas.0: '0.9，0.99' is not a number: '，' (U+FF0C, full-width "
      "comma) is not ','");
  EXPECT_TRUE(Parse("model:\tcrnn\ntrain: {epochs:\t5}\n").ok());
}

// CFG-07.
TEST(LoadJob, WindowsFilesReadAlike) {
  std::string windows = "\xEF\xBB\xBF";
  for (const char c : std::string_view(kCanonical)) {
    if (c == '\n') windows += '\r';
    windows += c;
  }
  const absl::StatusOr<JobSpec> a = Parse(kCanonical), b = Parse(windows);
  ASSERT_TRUE(b.ok()) << MessageOf(b.status());
  EXPECT_EQ(Render(*a), Render(*b));
}

// CFG-08.
TEST(LoadJob, RefusesSenselessValues) {
  const auto batch = [](const std::string& value) {
    return ErrorsOf("dataset: {eval: {type: image_list, root: r, batch_size: " + value + "}}");
  };
  const std::string at = "job.yaml:2:57: dataset.eval.batch_size: ";
  for (const char* value : {"-1", "0", "99999999999"}) {
    EXPECT_EQ(batch(value), at + value + " is out of range; it must be from 1 to 16777216");
  }
  for (const char* value : {"3.5", "1e3", "32.0"}) {
    EXPECT_EQ(batch(value),
              at + "'" + value + "' is not an integer; integers take no point and no exponent");
  }
  const auto rate = [](const std::string& value) {
    return ErrorsOf("optimizer: {name: adam, lr: " + value + "}");
  };
  EXPECT_EQ(rate("nan"), "job.yaml:2:29: optimizer.lr.base: 'nan' is not a finite number");
  EXPECT_EQ(rate(".inf"), "job.yaml:2:29: optimizer.lr.base: '.inf' is not a finite number");
  EXPECT_EQ(rate("-0.1"),
            "job.yaml:2:29: optimizer.lr.base: -0.1 is out of range; it must be at least 0");
  EXPECT_EQ(rate("1e400"), "job.yaml:2:29: optimizer.lr.base: '1e400' does not fit in a double");
  EXPECT_EQ(ErrorsOf("dataset: [a]"),
            "job.yaml:2:10: dataset: expected a map, found a list; write its keys as 'key: value'");
  EXPECT_EQ(Errors("- a\n"),
            "job.yaml:1:1: expected a map, found a list; write its keys as 'key: value'");
  EXPECT_EQ(Errors(""), "job.yaml:1:1: model: missing; give it (what is trained)");
  EXPECT_EQ(ErrorsOf("loss: {label_smoothing: 0.1}"),
            "job.yaml:2:1: loss.name: missing; choose one of cross_entropy");
  EXPECT_EQ(ErrorsOf("optimizer: {name: adam}"),
            "job.yaml:2:1: optimizer.lr: missing; give it (learning rate; a number is a constant "
            "rate)");
}

// CFG-10.
TEST(LoadJob, AppliesOverrides) {
  const std::vector<std::string> overrides = {
      "optimizer.lr=1e-3",
      "dataset.train.transforms.0.RandFlipImage.flip_code=0",
      "dataset.train.loader={num_workers: 2}",
      "name=\"no\"",
      "model.pretrained=a=b",
      "train.ema.decay=0.5",
      "strategy.overlap_communication=false",
      "log.every_iterations=",
      "train.epochs=1",
      "train.epochs=2"};
  const absl::StatusOr<JobSpec> job = Parse(kCanonical, overrides);
  ASSERT_TRUE(job.ok()) << MessageOf(job.status());
  EXPECT_EQ(job->optimizer->lr.choice.options.As<SampleRate>().base, 1e-3);
  EXPECT_EQ(job->dataset.train->transforms[0].options.As<SampleFlip>().flip_code, 0);
  EXPECT_EQ(job->dataset.train->loader.num_workers, 2);
  EXPECT_EQ(job->name, "no");
  EXPECT_EQ(job->model.pretrained, "a=b");
  EXPECT_EQ(job->train.ema->decay, 0.5);
  EXPECT_FALSE(job->strategy.overlap);
  EXPECT_EQ(job->log.every_iterations, 10);
  EXPECT_EQ(job->train.epochs, 2);
  EXPECT_EQ(job->Where("optimizer.lr.base"), "-o optimizer.lr=1e-3");
  EXPECT_EQ(job->Where("train.seed"), "job.yaml:21:54");
}

TEST(LoadJob, RefusesSenselessOverrides) {
  EXPECT_EQ(
      Errors(kCanonical, {"optimzer.lr=1", "dataset.train.transforms.9.X=1", "train.epochs=0",
                          "dataset.train.transforms.1.RandFlipImage.flip_code=1", "foo",
                          "train.seed.x=1", "model.classes=[", "dataset.train.transforms.x=1",
                          "dataset.eval.transforms.0=ToCHWImage", "=1", "eval.start=010"}),
      "-o optimzer.lr=1: optimzer: unknown key; did you mean 'optimizer'?\n"
      "-o dataset.train.transforms.9.X=1: dataset.train.transforms.9: the list has 2 items; the "
      "last index is 1\n"
      "-o dataset.train.transforms.1.RandFlipImage.flip_code=1: "
      "dataset.train.transforms.1.RandFlipImage: this item is 'ToCHWImage'; write that name here\n"
      "-o foo: an override is written path=value\n"
      "-o train.seed.x=1: train.seed.x: the value has no keys inside; end the path before this "
      "part\n"
      "-o model.classes=[: not valid YAML: this '[' is never closed\n"
      "-o dataset.train.transforms.x=1: dataset.train.transforms.x: the items of a list are named "
      "by index, from 0\n"
      "-o dataset.eval.transforms.0=ToCHWImage: dataset.eval.transforms.0: the list is empty; set "
      "it as a whole\n"
      "-o =1: an override is written path=value\n"
      "-o train.epochs=0: train.epochs: 0 is out of range; it must be from 1 to 1000000000\n"
      "-o eval.start=010: eval.start: '010' has a leading zero, which some readers take for octal; "
      "remove it");
}

// An override changes one use of an alias, not the anchor.
TEST(LoadJob, OverridesDoNotWriteThroughAliases) {
  const absl::StatusOr<JobSpec> job = Parse(
      "model: crnn\n"
      "dataset:\n"
      "  train: {type: image_list, root: r, batch_size: 8, loader: &l {prefetch: 2}}\n"
      "  eval: {type: image_list, root: r, batch_size: 8, loader: *l}\n",
      {"dataset.eval.loader.prefetch=7"});
  ASSERT_TRUE(job.ok()) << MessageOf(job.status());
  EXPECT_EQ(job->dataset.train->loader.prefetch, 2);
  EXPECT_EQ(job->dataset.eval->loader.prefetch, 7);
}

class LoadJobFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / "capstan_load_job_test";
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path) << text;
    return path;
  }

  std::filesystem::path folder_;
};

TEST_F(LoadJobFiles, MergesABase) {
  const std::string base =
      Write("base.yaml", "model: {name: crnn, classes: 7}\ntrain: {epochs: 3, seed: 1}\nname: a\n");
  const std::string job = Write(
      "job.yaml", "_base_: base.yaml\ntrain: {seed: 5, epochs: null}\nmodel: {pretrained: x}\n");
  const absl::StatusOr<JobSpec> spec = LoadJob(job, SampleChoices());
  ASSERT_TRUE(spec.ok()) << MessageOf(spec.status());
  EXPECT_EQ(spec->model.choice.options.As<SampleNet>().classes, 7);
  EXPECT_EQ(spec->model.pretrained, "x");
  EXPECT_EQ(spec->train.seed, 5);
  EXPECT_EQ(spec->train.epochs, std::nullopt);
  EXPECT_EQ(spec->name, "a");
  EXPECT_EQ(spec->Where("model.classes"), base + ":1:30");
  EXPECT_EQ(spec->Where("train.seed"), job + ":2:15");
}

TEST_F(LoadJobFiles, RefusesABaseOfABase) {
  const std::string base = Write("base.yaml", "_base_: other.yaml\nmodel: crnn\n");
  const std::string job = Write("job.yaml", "_base_: base.yaml\nmodel: crnn\n");
  EXPECT_EQ(MessageOf(LoadJob(job, SampleChoices()).status()),
            base + ":1:1: _base_: " + base +
                " is a base itself; a base has no base, merge the two files");
  EXPECT_EQ(
      MessageOf(
          LoadJob(Write("b.yaml", "_base_: none.yaml\nmodel: crnn\n"), SampleChoices()).status()),
      (folder_ / "b.yaml").string() + ":1:9: _base_: open " + (folder_ / "none.yaml").string() +
          ": No such file or directory");
  EXPECT_EQ(LoadJob((folder_ / "no.yaml").string(), SampleChoices()).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(MessageOf(LoadJob(folder_.string(), SampleChoices()).status()),
            "open " + folder_.string() + ": it is a folder");
}

// Whatever the bytes, there is a job that survives rendering or a message with a place.
TEST(LoadJob, SurvivesDamagedText) {
  const std::string canonical = kCanonical;
  const std::string bytes =
      "{}[]:,&*!|>'\"%@` \t\n#-?0<~\xEF\xBC\x9A"
      "a";
  const RandomKey key(11);
  for (uint64_t i = 0; i < 1500; ++i) {
    std::string text = canonical;
    const RandomKey draw = key.Mix(i);
    for (uint64_t k = 0; k <= draw.Below(0, 3); ++k) {
      const size_t at = draw.Below(10 + k, text.size());
      const size_t cut = std::min<size_t>(draw.Below(20 + k, 4), text.size() - at);
      text.replace(at, cut, 1, bytes[draw.Below(30 + k, bytes.size())]);
    }
    const absl::StatusOr<JobSpec> job = Parse(text);
    if (!job.ok()) {
      EXPECT_EQ(MessageOf(job.status()).substr(0, 9), "job.yaml:") << text;
      continue;
    }
    const std::string rendered = Render(*job);
    const absl::StatusOr<JobSpec> again = Parse(rendered);
    ASSERT_TRUE(again.ok()) << MessageOf(again.status()) << "\n" << text;
    EXPECT_EQ(Render(*again), rendered);
  }
}

}  // namespace
}  // namespace capstan
