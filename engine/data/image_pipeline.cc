#include "engine/data/image_pipeline.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/base/status.h"
#include "engine/data/transforms.h"

namespace capstan {

enum class TransformStage { kDecode, kPixels, kNormalize, kValues, kNothing };

// What is known of a picture on its way through the list; a size of 0 depends on the picture.
struct ImageFlow {
  bool decoded = false;
  bool normalized = false;
  ImageShape shape;
};

struct TransformRow {
  DataChoice choice;
  TransformStage stage;
  // Checks the options and sets the new shape.
  absl::Status (*check)(const AnyStruct& options, ImageFlow* flow);
  absl::Status (*pixels)(const AnyStruct& options, const RandomKey&, const Image& in, Image* out);
  void (*values)(const AnyStruct& options, const RandomKey&, const ImageShape&, float* values);
};

namespace {

absl::Status CheckRange(const char* name, const std::vector<double>& range) {
  if (range.size() == 2 && range[0] <= range[1]) return absl::OkStatus();
  return InvalidArgument("{}: wanted two numbers, the smaller one first", name);
}

void SetSize(int64_t size, ImageFlow* flow) { flow->shape.height = flow->shape.width = size; }

// A crop of `size` out of pictures that are known to be smaller is refused at once.
absl::Status CheckCrop(int64_t size, int64_t padding, ImageFlow* flow) {
  const ImageShape& s = flow->shape;
  if (s.height > 0 && std::min(s.height, s.width) + 2 * padding < size) {
    return InvalidArgument("size {} is larger than the picture, {}x{}", size, s.height, s.width);
  }
  SetSize(size, flow);
  return absl::OkStatus();
}

absl::Status Check(const DecodeImageOptions& o, ImageFlow* flow) {
  if (o.channel_first) {
    return InvalidArgument(
        "channel_first: true is not supported; the order in memory is chosen "
        "by the engine, so leave it out");
  }
  flow->decoded = true;
  if (flow->shape.channels == 0) flow->shape.channels = 3;
  return absl::OkStatus();
}

absl::Status Check(const ResizeImageOptions& o, ImageFlow* flow) {
  if ((o.resize_short > 0) == (o.size > 0)) {
    return InvalidArgument("give either resize_short or size");
  }
  SetSize(o.size, flow);
  return absl::OkStatus();
}

absl::Status Check(const CropImageOptions& o, ImageFlow* flow) {
  return CheckCrop(o.size, 0, flow);
}

absl::Status Check(const RandCropPadOptions& o, ImageFlow* flow) {
  return CheckCrop(o.size, o.padding, flow);
}

absl::Status Check(const RandCropImageOptions& o, ImageFlow* flow) {
  RETURN_IF_ERROR(CheckRange("scale", o.scale));
  RETURN_IF_ERROR(CheckRange("ratio", o.ratio));
  SetSize(o.size, flow);
  return absl::OkStatus();
}

absl::Status Check(const RandFlipImageOptions&, ImageFlow*) { return absl::OkStatus(); }

absl::Status Check(const RandAffineOptions& o, ImageFlow*) { return CheckRange("scale", o.scale); }

absl::Status Check(const ColorJitterOptions&, ImageFlow* flow) {
  if (flow->shape.channels == 3) return absl::OkStatus();
  return InvalidArgument("the pictures have {} channel(s), not 3", flow->shape.channels);
}

absl::Status Check(const NormalizeImageOptions& o, ImageFlow* flow) {
  const auto channels = static_cast<size_t>(flow->shape.channels);
  for (const auto& [name, list] : {std::pair("mean", &o.mean), std::pair("std", &o.std)}) {
    if (list->size() != 1 && list->size() != channels) {
      return InvalidArgument("{}: {} numbers for {} channel(s)", name, list->size(), channels);
    }
  }
  if (!o.order.empty() && o.order != "chw" && o.order != "hwc") {
    return InvalidArgument("order: '{}' is not one of chw, hwc", o.order);
  }
  flow->normalized = true;
  return absl::OkStatus();
}

absl::Status Check(const RandomErasingOptions& o, ImageFlow*) {
  RETURN_IF_ERROR(CheckRange("area", o.area));
  return CheckRange("ratio", o.ratio);
}

absl::Status Check(const NoAttrs&, ImageFlow*) { return absl::OkStatus(); }

template <typename Options>
TransformRow Row(const char* name, TransformStage stage, const char* doc) {
  return {.choice = {name, &TypeOf<Options>(), doc},
          .stage = stage,
          .check = +[](const AnyStruct& options, ImageFlow* flow) {
            return Check(options.As<Options>(), flow);
          }};
}

template <typename Options, auto kFunction>
TransformRow PixelRow(const char* name, const char* doc) {
  TransformRow row = Row<Options>(name, TransformStage::kPixels, doc);
  row.pixels = +[](const AnyStruct& options, const RandomKey& key, const Image& in, Image* out) {
    return kFunction(options.As<Options>(), key, in, out);
  };
  return row;
}

template <typename Options, auto kFunction>
TransformRow ValueRow(const char* name, const char* doc) {
  TransformRow row = Row<Options>(name, TransformStage::kValues, doc);
  row.values = +[](const AnyStruct& options, const RandomKey& key, const ImageShape& shape,
                   float* values) { kFunction(options.As<Options>(), key, shape, values); };
  return row;
}

std::span<const TransformRow> Rows() {
  static const TransformRow kRows[] = {
      Row<DecodeImageOptions>("DecodeImage", TransformStage::kDecode,
                              "decodes a JPEG or PNG file to upright pixels of 3 channels"),
      PixelRow<ResizeImageOptions, ResizeImage>("ResizeImage", "scales the whole picture"),
      PixelRow<CropImageOptions, CropImage>("CropImage", "keeps the centre"),
      PixelRow<RandCropImageOptions, RandCropImage>(
          "RandCropImage", "keeps a random part and scales it to a square"),
      PixelRow<RandFlipImageOptions, RandFlipImage>("RandFlipImage",
                                                    "mirrors half of the pictures"),
      PixelRow<RandCropPadOptions, RandCropPad>(
          "RandCropPad", "adds a black border, then keeps a random part of fixed size"),
      PixelRow<RandAffineOptions, RandAffine>(
          "RandAffine", "turns, shifts, magnifies and shears about the centre, over black"),
      PixelRow<ColorJitterOptions, ColorJitter>(
          "ColorJitter", "changes saturation, contrast and brightness, in this order"),
      Row<NormalizeImageOptions>("NormalizeImage", TransformStage::kNormalize,
                                 "pixels to values: (pixel * scale - mean) / std"),
      ValueRow<RandomErasingOptions, RandomErasing>(
          "RandomErasing", "sets a random rectangle to 0, after NormalizeImage"),
      Row<NoAttrs>("ToCHWImage", TransformStage::kNothing,
                   "accepted without effect: the order in memory is chosen by the engine"),
  };
  return kRows;
}

const TransformRow* FindRow(std::string_view name) {
  for (const TransformRow& row : Rows()) {
    if (name == row.choice.name) return &row;
  }
  return nullptr;
}

absl::Status CheckOrder(TransformStage stage, const ImageFlow& flow) {
  const bool of_pixels = stage == TransformStage::kPixels || stage == TransformStage::kNormalize;
  if (stage != TransformStage::kDecode && !flow.decoded) {
    return InvalidArgument("DecodeImage is missing; it must come first");
  }
  if (of_pixels && flow.normalized) return InvalidArgument("must come before NormalizeImage");
  if (stage == TransformStage::kValues && !flow.normalized) {
    return InvalidArgument("must come after NormalizeImage");
  }
  return absl::OkStatus();
}

}  // namespace

std::span<const DataChoice> TransformChoices() {
  static const std::vector<DataChoice> kChoices = [] {
    std::vector<DataChoice> choices;
    for (const TransformRow& row : Rows()) choices.push_back(row.choice);
    return choices;
  }();
  return kChoices;
}

absl::StatusOr<ImagePipeline> ImagePipeline::Create(std::span<const Section> transforms,
                                                    std::optional<ImageShape> generated) {
  ImagePipeline pipeline;
  if (generated.has_value() && transforms.empty()) {
    pipeline.output_ = *generated;
    pipeline.normalize_ =
        AnyStruct::Of(NormalizeImageOptions{.scale = 1 / 127.5, .mean = {1}, .std = {1}});
    return pipeline;
  }
  ImageFlow flow;
  if (generated.has_value()) flow = {.decoded = true, .shape = *generated};
  for (size_t i = 0; i < transforms.size(); ++i) {
    const auto& [name, options] = transforms[i];
    const TransformRow* row = FindRow(name);
    if (row == nullptr) return InvalidArgument("transforms[{}]: no transform is '{}'", i, name);
    const bool decoded_before = i > 0 && flow.decoded;
    RETURN_IF_ERROR(row->stage == TransformStage::kDecode && decoded_before
                        ? InvalidArgument("must come first, and once")
                        : CheckOrder(row->stage, flow),
                    "in transforms[{}], {}", i, name);
    RETURN_IF_ERROR(row->check(options, &flow), "in transforms[{}], {}", i, name);
    switch (row->stage) {
      case TransformStage::kDecode:
        pipeline.swap_red_and_blue_ = !options.As<DecodeImageOptions>().to_rgb;
        break;
      case TransformStage::kPixels:
        pipeline.pixel_steps_.push_back({row, options, i});
        break;
      case TransformStage::kNormalize:
        pipeline.normalize_ = options;
        break;
      case TransformStage::kValues:
        pipeline.value_steps_.push_back({row, options, i});
        break;
      case TransformStage::kNothing:
        break;
    }
  }
  if (!flow.decoded) return InvalidArgument("transforms: DecodeImage is missing");
  if (!flow.normalized) return InvalidArgument("transforms: NormalizeImage is missing");
  if (flow.shape.height == 0) {
    return InvalidArgument(
        "transforms: the size of the result depends on the picture; add one that fixes it, such as "
        "CropImage, RandCropImage, RandCropPad or ResizeImage with `size`");
  }
  pipeline.output_ = flow.shape;
  return pipeline;
}

absl::Status ImagePipeline::TransformPixels(const RandomKey& key, Image* image,
                                            Image* scratch) const {
  if (swap_red_and_blue_ && image->shape.channels == 3) {
    for (size_t i = 0; i < image->pixels.size(); i += 3) {
      std::swap(image->pixels[i], image->pixels[i + 2]);
    }
  }
  for (const Step& step : pixel_steps_) {
    RETURN_IF_ERROR(step.row->pixels(step.options, key.Mix(step.number), *image, scratch), "in {}",
                    step.row->choice.name);
    std::swap(*image, *scratch);
  }
  return absl::OkStatus();
}

void ImagePipeline::WriteValues(const RandomKey& key, const Image& image, float* values) const {
  CHECK(image.shape == output_) << image.shape.ToString() << " instead of " << output_.ToString();
  NormalizeImage(normalize_.As<NormalizeImageOptions>(), image, values);
  for (const Step& step : value_steps_) {
    step.row->values(step.options, key.Mix(step.number), output_, values);
  }
}

absl::StatusOr<ImageShape> CheckTransforms(std::span<const Section> transforms,
                                           std::optional<ImageShape> generated) {
  ASSIGN_OR_RETURN(const ImagePipeline pipeline, ImagePipeline::Create(transforms, generated));
  return pipeline.output();
}

}  // namespace capstan
