// Job files of other tools, unchanged, through the real binary.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "tests/cases/run_trainer.h"

namespace capstan {
namespace {

using testing::HasSubstr;

std::string ClasJob() {
  std::ostringstream text;
  text << std::ifstream("tests/cases/jobs/paddleclas_resnet50.yaml").rdbuf();
  return text.str();
}

// `old` of the job's text replaced, which must be there.
std::string With(const std::string& old, const std::string& text) {
  std::string job = ClasJob();
  const size_t at = job.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return job.replace(at, old.size(), text);
}

size_t Count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(PaddleClas, AnUnchangedFileRendersToOurForm) {
  const JobFolder job("clas");
  job.Write("job.yaml", ClasJob());
  const Outcome out = job.Run("render");
  ASSERT_EQ(out.status, 0) << out.output;
  for (const char* line : {"  name: resnet50\n",
                           "  classes: 1000\n",
                           "    type: image_list\n",
                           "    root: \"./dataset/ILSVRC2012/\"\n",
                           "    list: train_list.txt\n",
                           "    list: val_list.txt\n",
                           "    batch_size: 64\n",
                           "    drop_last: false\n",
                           "      num_workers: 4\n",
                           "  name: cross_entropy\n",
                           "  label_smoothing: 0.1\n",
                           "  name: momentum\n",
                           "  momentum: 0.9\n",
                           "  weight_decay: 0.0001\n",
                           "  no_decay: []\n",
                           "    name: piecewise\n",
                           "    decay_epochs: [30, 60, 90]\n",
                           "    values: [0.1, 0.01, 0.001, 0.0001]\n",
                           "  epochs: 120\n",
                           "  every_epochs: 1\n",
                           "  metric: top1\n",
                           "  level: \"off\"\n",
                           "device: cuda\n"}) {
    EXPECT_THAT(out.output, HasSubstr(line));
  }
  // Both spellings of the quotient, and the anchor with a key of its own.
  EXPECT_EQ(Count(out.output, "scale: 0.00392156862745098,"), 2u) << out.output;
  EXPECT_THAT(out.output,
              HasSubstr("job.yaml:12:3: Global.use_visualdl: ignored, because metrics.jsonl"));
  for (const char* key :
       {"Global.save_interval", "Global.image_shape", "Global.save_inference_dir",
        "Global.to_static", "Loss.Eval", "DataLoader.Train.sampler.name",
        "DataLoader.Train.loader.use_shared_memory", "DataLoader.Eval.sampler.drop_last",
        "DataLoader.Eval.sampler.shuffle", "Infer", "Metric.Train"}) {
    EXPECT_THAT(out.output, HasSubstr(fmt::format(": {}: ignored, because ", key)));
  }
}

// Epochs of change count from the end of warm-up there.
TEST(PaddleClas, RatesByItsNames) {
  const auto rendered = [](const std::string& lr) {
    std::string text = ClasJob();
    const size_t begin = text.find("    name: Piecewise\n"), last = text.find("    values: [");
    EXPECT_TRUE(begin != std::string::npos && last != std::string::npos);
    const JobFolder job("clas_rates");
    job.Write("job.yaml", text.replace(begin, text.find('\n', last) + 1 - begin, lr));
    const Outcome out = job.Run("render");
    EXPECT_EQ(out.status, 0) << out.output;
    return out.output;
  };
  std::string out = rendered(
      "    name: MultiStepDecay\n    learning_rate: 0.4\n    milestones: [30, 60.5]\n"
      "    gamma: 0.2\n    warmup_epoch: 5\n");
  for (const char* line : {"    name: multi_step\n", "    base: 0.4\n", "    gamma: 0.2\n",
                           "    decay_epochs: [35, 65.5]\n", "    warmup_epochs: 5\n"}) {
    EXPECT_THAT(out, HasSubstr(line));
  }
  out = rendered("    name: Step\n    learning_rate: 0.4\n    step_size: 30\n    gamma: 0.1\n");
  for (const char* line : {"    name: step\n", "    step_epochs: 30\n", "    gamma: 0.1\n"}) {
    EXPECT_THAT(out, HasSubstr(line));
  }
  out = rendered("    power: 0.9\n    name: Linear\n    learning_rate: 0.4\n    end_lr: 0.01\n");
  for (const char* line : {"    name: polynomial\n", "    power: 0.9\n", "    end: 0.01\n"}) {
    EXPECT_THAT(out, HasSubstr(line));
  }
  out = rendered("    name: Linear\n    power: 1\n    learning_rate: 0.4\n");
  EXPECT_THAT(out, HasSubstr("    name: linear\n"));
}

TEST(PaddleClas, WhatItRendersIsTheSameJob) {
  const JobFolder job("clas_again");
  job.Write("job.yaml", ClasJob());
  const std::string output = job.Run("render").output;
  // What is ignored is told first, on standard error.
  ASSERT_THAT(output, HasSubstr("\nversion: 1\n"));
  const std::string rendered = output.substr(output.find("version: 1\n"));
  job.Write("job.yaml", rendered);
  EXPECT_EQ(job.Run("render").output, rendered);
}

// 20 iterations of the file as it stands, made small by -o only.
TEST(PaddleClas, AnUnchangedFileTrains) {
  const JobFolder job("clas_train");
  job.Write("job.yaml", ClasJob());
  std::string list;
  for (int i = 0; i < 8; ++i) {
    const std::string name = fmt::format("train/n0{}/n0{}_{}.JPEG", i % 2, i % 2, i);
    job.CopyPicture(i % 2 == 0 ? "red.jpg" : "cmyk_mid.jpg", "imagenet/" + name);
    list += fmt::format("{} {}\n", name, i % 2);
  }
  job.Write("imagenet/train_list.txt", list);
  job.Write("imagenet/val_list.txt", list);
  std::string overrides = fmt::format(
      "-o Global.output_dir={0}/output Global.device=cpu Global.epochs=10 Global.eval_interval=10 "
      "Global.print_batch_step=1 Arch.class_num=2 model.width=4",
      job.Path(""));
  for (const auto& [part, name] : {std::pair{"Train", "train"}, std::pair{"Eval", "val"}}) {
    overrides += fmt::format(
        " DataLoader.{0}.dataset.image_root={2}/imagenet "
        "DataLoader.{0}.dataset.cls_label_path={2}/imagenet/{1}_list.txt "
        "DataLoader.{0}.sampler.batch_size=4",
        part, name, job.Path(""));
  }
  overrides +=
      " DataLoader.Train.dataset.transform_ops.1.RandCropImage.size=32"
      " DataLoader.Eval.dataset.transform_ops.1.ResizeImage.resize_short=36"
      " DataLoader.Eval.dataset.transform_ops.2.CropImage.size=32";
  const Outcome out = job.Run("train", overrides);
  ASSERT_EQ(out.status, 0) << out.output;
  const std::string metrics = job.Read("output/metrics.jsonl");
  EXPECT_EQ(Count(metrics, "\"event\":\"train\""), 20u) << metrics;
  EXPECT_EQ(Count(metrics, "\"event\":\"eval\""), 1u) << metrics;
  EXPECT_THAT(metrics, HasSubstr("\"iteration\":20"));
}

TEST(PaddleClas, OverridesWorkInBothForms) {
  const JobFolder job("clas_overrides");
  job.Write("job.yaml", ClasJob());
  const Outcome theirs = job.Run("render", "-o Global.epochs=3 -o Optimizer.lr.learning_rate=1e-3");
  EXPECT_THAT(theirs.output, HasSubstr("  epochs: 3\n"));
  EXPECT_THAT(theirs.output, HasSubstr("    base: 0.001\n"));
  const Outcome ours = job.Run("render", "-o train.epochs=4 optimizer.lr.base=2e-3");
  EXPECT_THAT(ours.output, HasSubstr("  epochs: 4\n"));
  EXPECT_THAT(ours.output, HasSubstr("    base: 0.002\n"));
  const Outcome wrong =
      job.Run("render",
              "-o Global.epchs=3 Global.epochs=x Optimizer.lr.name.x=1 "
              "DataLoader.Train.dataset.transform_ops.9.CropImage.size=1 "
              "DataLoader.Train.dataset.transform_ops.2.RandFlipImage.flip_cod=1");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.output,
              HasSubstr("-o Global.epchs=3: Global.epchs: unknown key; did you mean 'epochs'?"));
  EXPECT_THAT(wrong.output, HasSubstr("-o Global.epochs=x: train.epochs: 'x' is not an integer"));
  EXPECT_THAT(wrong.output, HasSubstr("Optimizer.lr.name.x: the value has no keys inside"));
  EXPECT_THAT(wrong.output, HasSubstr("transform_ops.9: the list has 5 items"));
  EXPECT_THAT(wrong.output, HasSubstr("RandFlipImage.flip_cod: unknown key"));
}

TEST(PaddleClas, MistakesAreNamedWhereTheyStand) {
  const auto error = [](const std::string& old, const std::string& text) {
    const JobFolder job("clas_mistakes");
    job.Write("job.yaml", With(old, text));
    const Outcome out = job.Run("render");
    EXPECT_EQ(out.status, 2) << out.output;
    return out.output;
  };
  EXPECT_THAT(error("  epochs: 120", "  epoch: 120"),
              HasSubstr("job.yaml:10:3: Global.epoch: unknown key; did you mean 'epochs'?"));
  EXPECT_THAT(error("    learning_rate: ", "    learning_rte: "),  // CFG-05
              HasSubstr("Optimizer.lr.learning_rte: unknown key; did you mean 'learning_rate'?"));
  EXPECT_THAT(error("Optimizer:\n", "Optimizer:\n  epochs: 3\n"),
              HasSubstr("Optimizer.epochs: unknown key here; in a PaddleClas job 'epochs' belongs "
                        "under 'Global'"));
  EXPECT_THAT(error("Metric:\n", "Slim:\n  name: prune\nMetric:\n"),
              HasSubstr(": Slim: unknown key"));
  EXPECT_THAT(error("name: 'L2'", "name: 'L1'"),
              HasSubstr("Optimizer.regularizer.name: the quoted text 'L1' cannot be honoured"));
  EXPECT_THAT(error("ResNet50", "ResNet50_vd"), HasSubstr("'ResNet50_vd' is not a model"));
  EXPECT_THAT(error("        epsilon: 0.1", "        epsilom: 0.1"),
              HasSubstr("Loss.Train.0.CELoss.epsilom: unknown key"));
  EXPECT_THAT(error("        weight: 1.0\n        eps", "        weight: 0\n        eps"),
              HasSubstr("loss.weight: 0 is out of range"));
  EXPECT_THAT(error("- CELoss:\n        weight: 1.0\n        eps", "- DMLLoss:\n        eps"),
              HasSubstr("'DMLLoss' is not a loss"));
  EXPECT_THAT(error("size: 224", "size: 0"), HasSubstr("0 is out of range"));
  EXPECT_THAT(error("Global:", "Global: [1]\nGlobal2:"), HasSubstr("expected a map, found a list"));
  EXPECT_THAT(error("    sampler:",
                    "      batch_transform_ops: [{MixupOperator: {alpha: 0.2}}]\n"
                    "    sampler:"),
              HasSubstr("batch_transform_ops: cannot be honoured yet"));
}

TEST(PaddleClas, LossWeightRatesOfStagesAndClipping) {
  const auto render = [](const std::string& from, const std::string& to) {
    const JobFolder job("clas_options");
    job.Write("job.yaml", With(from, to));
    const Outcome out = job.Run("render");
    EXPECT_EQ(out.status, 0) << out.output;
    return out.output;
  };
  EXPECT_THAT(render("        weight: 1.0\n        eps", "        weight: 0.5\n        eps"),
              HasSubstr("  weight: 0.5\n"));
  EXPECT_THAT(render("  class_num:", "  lr_mult_list: [0.1, 0.1, 0.2, 0.2, 0.3]\n  class_num:"),
              HasSubstr("  layer_lr_factors: [0.1, 0.1, 0.2, 0.2, 0.3]\n"));
  // There the plain name clips each gradient by itself.
  EXPECT_THAT(render("  momentum: 0.9\n", "  momentum: 0.9\n  clip_norm: 10\n"),
              HasSubstr("  grad_clip:\n    global_norm: null\n    norm: 10\n"));
  EXPECT_THAT(render("  momentum: 0.9\n", "  momentum: 0.9\n  clip_norm_global: 10\n"),
              HasSubstr("  grad_clip: 10\n"));
}

TEST(PaddleClas, MixedPrecisionIsFloat16UnlessSaid) {
  const JobFolder job("clas_amp");
  job.Write("job.yaml",
            "AMP:\n  scale_loss: 128.0\n  use_dynamic_loss_scaling: True\n" + ClasJob());
  const Outcome out = job.Run("render");
  EXPECT_THAT(out.output, HasSubstr("  dtype: float16\n  level: O1\n"));
  EXPECT_THAT(out.output, HasSubstr("  scale_loss: 128\n"));
  EXPECT_THAT(job.Run("render", "-o AMP.use_amp=False").output, HasSubstr("  level: \"off\"\n"));
  EXPECT_THAT(job.Run("render", "-o AMP.level=O2").output, HasSubstr("  level: O2\n"));
}

TEST(PaddleClas, NoEvaluationUnlessSaid) {
  const JobFolder job("clas_eval");
  job.Write("job.yaml", With("  eval_during_train: True\n", ""));
  const Outcome out = job.Run("render");
  EXPECT_EQ(out.status, 0);
  EXPECT_THAT(out.output, HasSubstr("  every_epochs: null\n"));
}

TEST(PaddleClas, WindowsFilesReadAlike) {
  std::string windows = "\xEF\xBB\xBF";
  for (const char c : ClasJob()) windows += c == '\n' ? "\r\n" : std::string(1, c);
  const JobFolder job("clas_windows");
  job.Write("job.yaml", ClasJob());
  const Outcome plain = job.Run("render");
  job.Write("job.yaml", windows);
  EXPECT_EQ(job.Run("render").output, plain.output);
}

}  // namespace
}  // namespace capstan
