// A small table of choices for tests of the job reader: one or two parts of each category, shaped
// like real ones. Not for use outside tests.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/config/choice_table.h"

namespace capstan {

struct SampleNet {
  int64_t classes = 1000;
  std::vector<std::string> label_names;
  static constexpr auto Fields() {
    return std::array{Field<&SampleNet::classes>("classes", "number of classes", kAtLeastOne),
                      Field<&SampleNet::label_names>("label_names", "one text a class")};
  }
};

struct SampleImageList {
  std::string root;
  std::optional<std::string> list;
  static constexpr auto Fields() {
    return std::array{Field<&SampleImageList::root>("root", "folder of the images").Required(),
                      Field<&SampleImageList::list>("list", "label file below root")};
  }
};

struct SampleFlip {
  int64_t flip_code = 1;
  static constexpr auto Fields() {
    return std::array{Field<&SampleFlip::flip_code>("flip_code", "1: left to right")};
  }
};

struct SampleNormalize {
  double scale = 1;
  std::vector<double> mean;
  static constexpr auto Fields() {
    return std::array{Field<&SampleNormalize::scale>("scale", "factor before the mean"),
                      Field<&SampleNormalize::mean>("mean", "one number a channel")};
  }
};

struct SampleCrossEntropy {
  double label_smoothing = 0;
  static constexpr auto Fields() {
    return std::array{Field<&SampleCrossEntropy::label_smoothing>(
        "label_smoothing", "share spread over all classes", Bounds{.min = 0, .max = 1})};
  }
};

struct SampleMomentum {
  double momentum = 0.9;
  double weight_decay = 0;
  static constexpr auto Fields() {
    return std::array{
        Field<&SampleMomentum::momentum>("momentum", "share kept", Bounds{.min = 0, .max = 1}),
        Field<&SampleMomentum::weight_decay>("weight_decay", "decoupled", kNonNegative)};
  }
};

struct SampleAdam {
  std::vector<double> betas = {0.9, 0.999};
  static constexpr auto Fields() {
    return std::array{Field<&SampleAdam::betas>("betas", "shares kept of both moments",
                                                Bounds{.min = 0, .max = 1})};
  }
};

struct SampleRate {
  double base = 0.1;
  int64_t warmup_epochs = 0;
  static constexpr auto Fields() {
    return std::array{
        Field<&SampleRate::base>("base", "highest rate", kNonNegative),
        Field<&SampleRate::warmup_epochs>("warmup_epochs", "of linear warm-up", kNonNegative)};
  }
};

inline ChoiceTable SampleChoices() {
  return {{"model",
           {{"resnet50", &TypeOf<SampleNet>(), "ResNet, 50 layers"},
            {"crnn", &TypeOf<SampleNet>(), "text recognition"}}},
          {"dataset", {{"image_list", &TypeOf<SampleImageList>(), "images and a label file"}}},
          {"transform",
           {{"RandFlipImage", &TypeOf<SampleFlip>(), "flips half of the images"},
            {"NormalizeImage", &TypeOf<SampleNormalize>(), "scales and centres"},
            {"ToCHWImage", &TypeOf<NoAttrs>(), "channels first"}}},
          {"loss", {{"cross_entropy", &TypeOf<SampleCrossEntropy>(), "softmax cross-entropy"}}},
          {"optimizer",
           {{"momentum", &TypeOf<SampleMomentum>(), "SGD with momentum"},
            {"adam", &TypeOf<SampleAdam>(), "Adam"}}},
          {"lr",
           {{"constant", &TypeOf<SampleRate>(), "the same always"},
            {"cosine", &TypeOf<SampleRate>(), "half a cosine"}}}};
}

}  // namespace capstan
