// Job files as users write them, through the real binary. What needs no binary (texts that look
// like other types, a list of types and values) is in engine/config.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/cases/run_trainer.h"

namespace capstan {
namespace {

using testing::HasSubstr;

// A whole job; each part may be replaced.
struct Parts {
  std::string model = "model: {name: resnet18, classes: 3, stem: small, width: 4}";
  std::string optimizer = "optimizer: {name: momentum, lr: 0.1}";
  std::string train = "train: {epochs: 1}";
  std::string more;

  std::string Text() const {
    return fmt::format(
        "version: 1\n{}\ndataset:\n  train: {{type: image_list, root: data, list: train.txt, "
        "batch_size: 2}}\nloss: {{name: cross_entropy}}\n{}\n{}\n{}",
        model, optimizer, train, more);
  }
};

Outcome Render(const std::string& text, const std::string& arguments = "") {
  const JobFolder job("config");
  job.Write("job.yaml", text);
  return job.Run("render", arguments);
}

// Renders a job with a fault: one message of status 2, soon.
std::string FaultOf(const std::string& text, const std::string& arguments = "") {
  const Outcome out = Render(text, arguments);
  EXPECT_EQ(out.status, 2) << text << "\n" << out.output;
  EXPECT_LT(out.seconds, 10);
  return out.output;
}

TEST(Config, ScientificNotationIsANumber) {  // CFG-01
  const std::vector<std::pair<std::string, std::string>> forms = {
      {"1e-4", "0.0001"},  {"1E-4", "0.0001"},  {"1.0e-4", "0.0001"}, {"0.0001", "0.0001"},
      {"1e-04", "0.0001"}, {".0001", "0.0001"}, {"5.e-5", "5.0e-05"}};
  for (const auto& [written, shown] : forms) {
    const Outcome out =
        Render(Parts{.optimizer = fmt::format("optimizer: {{name: sgd, lr: {}}}", written)}.Text());
    EXPECT_EQ(out.status, 0) << out.output;
    EXPECT_THAT(out.output, HasSubstr(fmt::format("    base: {}\n", shown))) << written;
  }
  EXPECT_THAT(
      FaultOf(Parts{.optimizer = "optimizer: {name: sgd, lr: \"1e-4\"}"}.Text()),
      HasSubstr("job.yaml:6:28: optimizer.lr.base: expected a number, found the quoted text "
                "'1e-4'; remove the quotes"));
}

TEST(Config, SwitchesAreTrueOrFalse) {  // CFG-02
  const auto shuffle = [](const std::string& value) {
    return Parts{.more = "strategy: {overlap: " + value + "}\n"}.Text();
  };
  EXPECT_THAT(Render(shuffle("true")).output, HasSubstr("  overlap: true\n"));
  EXPECT_THAT(Render(shuffle("false")).output, HasSubstr("  overlap: false\n"));
  for (const char* value : {"tRuE", "2", "no", "off", "y"}) {
    EXPECT_THAT(
        FaultOf(shuffle(value)),
        HasSubstr(fmt::format("job.yaml:8:21: strategy.overlap: '{}' is not a switch; write "
                              "true or false",
                              value)));
  }
}

TEST(Config, AKeyGivenTwice) {  // CFG-03
  EXPECT_THAT(
      FaultOf(Parts{.more = std::string(39, '\n') + "optimizer: {name: sgd, lr: 0.01}\n"}.Text()),
      HasSubstr("job.yaml:47:1: the key 'optimizer' is given twice, at lines 6 and 47"));
  for (const char* twin : {"lr", "\"lr\""}) {
    EXPECT_THAT(FaultOf(Parts{.optimizer = fmt::format("optimizer:\n  name: sgd\n  lr: 0.1\n  {}: "
                                                       "0.2",
                                                       twin)}
                            .Text()),
                HasSubstr("job.yaml:9:3: the key 'lr' is given twice, at lines 8 and 9"));
  }
}

TEST(Config, MergeKeys) {  // CFG-04
  const Outcome one = Render(Parts{.optimizer = "base: &b {lr: 0.1, weight_decay: 0.0005}\n"
                                                "optimizer: {name: sgd, <<: *b, lr: 0.2}"}
                                 .Text());
  EXPECT_THAT(one.output, HasSubstr("    base: 0.2\n"));
  EXPECT_THAT(one.output, HasSubstr("  weight_decay: 0.0005\n"));
  const Outcome list = Render(Parts{.optimizer = "base: &b {lr: 0.1}\n"
                                                 "other: &c {lr: 0.3, weight_decay: 0.0005}\n"
                                                 "optimizer: {name: sgd, <<: [*b, *c]}"}
                                  .Text());
  EXPECT_THAT(list.output, HasSubstr("    base: 0.1\n"));
  EXPECT_THAT(list.output, HasSubstr("  weight_decay: 0.0005\n"));
}

TEST(Config, MisspelledAndMisplacedKeys) {  // CFG-05
  const auto optimizer = [](const std::string& key) {
    return FaultOf(
        Parts{.optimizer = fmt::format("optimizer: {{name: sgd, lr: 0.1, {}}}", key)}.Text());
  };
  EXPECT_THAT(optimizer("weight_dekay: 0.3"),
              HasSubstr("job.yaml:6:33: optimizer.weight_dekay: unknown key; did you mean "
                        "'weight_decay'?"));
  EXPECT_THAT(optimizer("epochs: 3"),
              HasSubstr("optimizer.epochs: unknown key here; 'epochs' belongs under 'train'"));
  EXPECT_THAT(
      FaultOf(Parts{.optimizer = "optimizer: {name: sgd, lr: {name: cosine, learning_rte: 0.3}}"}
                  .Text()),
      HasSubstr("optimizer.lr.learning_rte: unknown key; the keys here are name, base,"));
  EXPECT_THAT(
      FaultOf(Parts{.optimizer = "optimizer: {name: sgd, lr: {name: cosine, warmup-epochs: 5}}"}
                  .Text()),
      HasSubstr("optimizer.lr.warmup-epochs: unknown key; did you mean 'warmup_epochs'?"));
  std::string text = Parts().Text();
  text.replace(text.find("cross_entropy"), 13, "cross_entropy, Label_Smooth: 0.1");
  EXPECT_THAT(FaultOf(text),
              HasSubstr("loss.Label_Smooth: unknown key; did you mean 'label_smoothing'?"));
}

TEST(Config, FullWidthPunctuationBlanksAndTabs) {  // CFG-06
  const auto train = [](const std::string& line) {
    return FaultOf(Parts{.train = "train:\n" + line}.Text());
  };
  EXPECT_THAT(train("  epochs：5"), HasSubstr("job.yaml:8:3: "));
  EXPECT_THAT(train("  epochs：5"), HasSubstr("U+FF1A, full-width colon"));
  EXPECT_THAT(train("  epochs:5"), HasSubstr("job.yaml:8:3: "));
  EXPECT_THAT(train("  epochs:5"), HasSubstr("a blank is missing after ':'"));
  EXPECT_THAT(train("  epochs:\xE3\x80\x80"
                    "5"),
              HasSubstr("job.yaml:8:"));
  EXPECT_THAT(train("  epochs:\xE3\x80\x80"
                    "5"),
              HasSubstr("U+3000 (ideographic space)"));
  EXPECT_THAT(train("  epochs: ５"),
              HasSubstr("job.yaml:8:11: train.epochs: '５' is not an integer"));
  EXPECT_THAT(train("  epochs: ５"), HasSubstr("U+FF15, full-width digit"));
  EXPECT_THAT(train("  epochs: \xC2\xA0"
                    "5"),
              HasSubstr("job.yaml:8:11: "));
  EXPECT_THAT(train("\tepochs: 5"), HasSubstr("job.yaml:8:1: "));
  EXPECT_EQ(Render(Parts{.train = "train:\n  epochs:\t5"}.Text()).status, 0);
}

TEST(Config, ByteOrderMarkAndCrLf) {  // CFG-07
  const std::string text = Parts{.more = "output_dir: output/文件夹\nname: 试\n"}.Text();
  std::string windows = "\xEF\xBB\xBF";
  for (const char c : text) windows += c == '\n' ? "\r\n" : std::string(1, c);
  const Outcome a = Render(text), b = Render(windows);
  EXPECT_EQ(a.status, 0) << a.output;
  EXPECT_EQ(a.output, b.output);
}

TEST(Config, WrongTypesAndSenselessValues) {  // CFG-08
  const auto batch = [](const std::string& value) {
    std::string text = Parts().Text();
    return FaultOf(text.replace(text.find("size: 2") + 6, 1, value));
  };
  const std::string at = "job.yaml:4:70: dataset.train.batch_size: ";
  for (const char* value : {"-1", "0", "99999999999"}) {
    EXPECT_THAT(batch(value), HasSubstr(at + value + " is out of range; it must be from 1 to"));
  }
  for (const char* value : {"3.5", "1e3", "32.0"}) {
    EXPECT_THAT(batch(value), HasSubstr(at + "'" + value + "' is not an integer"));
  }
  for (const char* value : {"nan", "-0.1", "1e400"}) {
    EXPECT_THAT(
        FaultOf(Parts{.optimizer = fmt::format("optimizer: {{name: sgd, lr: {}}}", value)}.Text()),
        HasSubstr("job.yaml:6:28: optimizer.lr.base: "));
  }
  EXPECT_THAT(FaultOf(Parts{.train = "train: {epochs: ten}"}.Text()),
              HasSubstr("job.yaml:7:17: train.epochs: 'ten' is not an integer"));
  EXPECT_THAT(FaultOf(Parts{.optimizer = "optimizer: {name: adam, lr: 1, beta1: [0.9]}"}.Text()),
              HasSubstr("job.yaml:6:39: optimizer.beta1: expected a number, found a list"));
  EXPECT_THAT(FaultOf(Parts{.more = "amp: maybe\n"}.Text()),
              HasSubstr("job.yaml:8:6: amp: expected a map, found 'maybe'"));
  EXPECT_THAT(FaultOf("model: {name: resnet18}\ndataset: [a]\n"),
              HasSubstr("job.yaml:2:10: dataset: expected a map, found a list"));
}

TEST(Config, OverridePaths) {  // CFG-10
  const std::string text = Parts{.optimizer =
                                     "optimizer: {name: sgd, lr: {name: piecewise, values: [1, 2], "
                                     "decay_epochs: [5]}}"}
                               .Text();
  const Outcome out =
      Render(text, "-o optimizer.lr.base=1e-3 optimizer.lr.values.1=0.5 -o 'name=\"no\"'");
  EXPECT_EQ(out.status, 0) << out.output;
  EXPECT_THAT(out.output, HasSubstr("    base: 0.001\n"));
  EXPECT_THAT(out.output, HasSubstr("    values: [1, 0.5]\n"));
  EXPECT_THAT(out.output, HasSubstr("name: \"no\"\n"));
  const std::string faults = FaultOf(text, "-o optimizer.lr.values.9=1 optimzer.lr=1");
  EXPECT_THAT(faults,
              HasSubstr("optimizer.lr.values.9: the list has 2 items; the last index is 1"));
  EXPECT_THAT(faults, HasSubstr("optimzer: unknown key; did you mean 'optimizer'?"));
}

// The rates that the run logs; 5 updates.
TEST(Config, WarmUpAsLongAsTraining) {  // CFG-11
  for (const int warmup : {5, 6}) {
    const JobFolder job("warmup");
    std::string list;
    for (int i = 0; i < 10; ++i) list += "a.png 0\n";
    job.CopyPicture("really_png.JPEG", "a.png");
    job.Write("train.txt", list);
    job.Write("val.txt", "a.png 0\n");
    job.Write("job.yaml", job.Classification(3));
    const Outcome out = job.Run(
        "train", fmt::format("-o 'optimizer.lr={{name: cosine, base: 0.1, warmup_iterations: {}}}' "
                             "log.every_iterations=1",
                             warmup));
    if (warmup == 6) {
      EXPECT_EQ(out.status, 2) << out.output;
      EXPECT_THAT(out.output, HasSubstr("warm-up takes 6 updates, but training has 5"));
      continue;
    }
    EXPECT_EQ(out.status, 0) << out.output;
    const std::string metrics = job.Read("output/metrics.jsonl");
    for (const char* rate : {"0.0", "0.02", "0.04", "0.06", "0.08"}) {
      EXPECT_THAT(metrics, testing::ContainsRegex(fmt::format("\"lr\":{}[0-9]*[,}}]", rate)));
    }
    EXPECT_EQ(metrics.find("null"), std::string::npos) << metrics;
  }
}

// A long job with mistakes of twelve kinds far apart: one run names them all.
TEST(Config, ALongJobNamesAllItsMistakes) {
  std::string text;
  int lines = 0;
  std::vector<std::string> expected;
  const auto add = [&](const std::string& line) {
    text += line + "\n";
    ++lines;
  };
  const auto wrong = [&](const std::string& line, int column, const std::string& message) {
    add(line);
    expected.push_back(fmt::format("job.yaml:{}:{}: {}", lines, column, message));
  };
  add("version: 1");
  wrong("nam: long", 1, "nam: unknown key; did you mean 'name'?");
  add("model:");
  add("  name: resnet18");
  wrong("  clases: 3", 3, "model.clases: unknown key; did you mean 'classes'?");
  add("dataset:");
  add("  train:");
  add("    type: image_list");
  add("    list: train.txt");
  wrong("    batch_size: 3.5", 17, "dataset.train.batch_size: '3.5' is not an integer");
  add("    transforms:");
  add("      - DecodeImage:");
  const int kSteps = 55;
  for (int i = 1; i <= kSteps; ++i) {
    const std::string path = fmt::format("dataset.train.transforms.{}", i);
    if (i == 20) {
      wrong("      - RandCropImag:", 9, path + ": 'RandCropImag' is not a transform");
    } else {
      add("      - RandCropImage:");
    }
    if (i == 30) {
      wrong("          siz: 32", 11,
            path + ".RandCropImage.siz: unknown key; did you mean 'size'?");
    } else {
      add("          size: 32");
    }
    if (i == 40) {
      wrong("          scale: 0.5", 18, path + ".RandCropImage.scale: expected a list");
    } else {
      add("          scale: [0.5, 1]");
    }
    add("          # 说明");
    if (i == 50) {
      wrong("          ratio: [0.5, -1]", 24, path + ".RandCropImage.ratio.1: -1 is out of range");
    } else if (i == 52) {
      add("          ratio: [0.5, 1]");
      wrong("          size: 33", 11, "the key 'size' is given twice, at lines ");
    } else {
      add("          ratio: [0.5, 1]");
    }
  }
  add("loss: {name: cross_entropy}");
  wrong("optimizer: {name: momentun, lr: 0.1}", 19,
        "optimizer.name: 'momentun' is not an optimizer");
  wrong("train: {epochs: ten}", 17, "train.epochs: 'ten' is not an integer");
  wrong("strategy: {overlap: tRuE}", 21, "strategy.overlap: 'tRuE' is not a switch");
  for (int i = 0; i < 20; ++i) add("# 还有一行");
  wrong("device: gpu", 9, "device: 'gpu' is not allowed");
  ASSERT_GE(lines, 300);
  ASSERT_EQ(expected.size(), 12u);
  const std::string faults = FaultOf(text);
  for (const std::string& fault : expected) EXPECT_THAT(faults, HasSubstr(fault));
  EXPECT_EQ(std::count(faults.begin(), faults.end(), '\n'), 12) << faults;
}

}  // namespace
}  // namespace capstan
