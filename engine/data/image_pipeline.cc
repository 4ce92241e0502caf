#include "engine/data/image_pipeline.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/base/status.h"
#include "engine/data/augment.h"
#include "engine/data/transforms.h"

namespace capstan {

enum class TransformKind { kDecode, kPixels, kNormalize, kValues, kToChw };

// What is known of a picture on its way through the list; a size of 0 depends on the picture.
struct ImageFlow {
  bool decoded = false;
  std::string floats_since;  // the step that made floats of 8-bit pixels; empty: none yet
  std::string chw_since;     // the step that made HWC to CHW
  std::string open_since;    // the last step that left the size open
  ImageShape shape;
};

struct TransformRow {
  DataChoice choice;
  TransformKind kind;
  bool draws = false;  // from its key; kPixels only
  // Checks the options and sets what is known afterwards.
  absl::Status (*check)(const AnyStruct& options, const std::string& step, ImageFlow* flow);
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

absl::Status CheckNumbers(const char* name, size_t count, int64_t channels) {
  if (count == 1 || count == static_cast<size_t>(channels)) return absl::OkStatus();
  return InvalidArgument("{}: {} numbers for {} channel(s)", name, count, channels);
}

absl::Status CheckColor(const ImageFlow& flow) {
  if (flow.shape.channels == 3) return absl::OkStatus();
  return InvalidArgument("the pictures have {} channel(s), not 3", flow.shape.channels);
}

absl::Status Check(const DecodeImageOptions& o, const std::string& step, ImageFlow* flow) {
  flow->decoded = true;
  if (flow->shape.channels == 0) flow->shape.channels = 3;
  flow->open_since = step;
  if (o.channel_first) flow->chw_since = step + " {channel_first: true}";
  return absl::OkStatus();
}

absl::Status Check(const ResizeImageOptions& o, const std::string& step, ImageFlow* flow) {
  if ((o.resize_short > 0) == (o.size > 0)) {
    return InvalidArgument("give either resize_short or size");
  }
  SetSize(o.size, flow);
  if (o.size == 0) flow->open_since = step + " {resize_short: ...}";
  return absl::OkStatus();
}

absl::Status Check(const CropImageOptions& o, const std::string&, ImageFlow* flow) {
  return CheckCrop(o.size, 0, flow);
}

absl::Status Check(const RandCropPadOptions& o, const std::string&, ImageFlow* flow) {
  return CheckCrop(o.size, o.padding, flow);
}

absl::Status Check(const RandCropImageOptions& o, const std::string&, ImageFlow* flow) {
  RETURN_IF_ERROR(CheckRange("scale", o.scale));
  RETURN_IF_ERROR(CheckRange("ratio", o.ratio));
  SetSize(o.size, flow);
  return absl::OkStatus();
}

absl::Status Check(const RandFlipImageOptions&, const std::string&, ImageFlow*) {
  return absl::OkStatus();
}

absl::Status Check(const RandAffineOptions& o, const std::string&, ImageFlow*) {
  return CheckRange("scale", o.scale);
}

absl::Status Check(const ColorJitterOptions& o, const std::string&, ImageFlow* flow) {
  if (o.brightness == 0 && o.contrast == 0 && o.saturation == 0 && o.hue == 0) {
    return InvalidArgument("changes nothing; give brightness, contrast, saturation or hue");
  }
  return CheckColor(*flow);
}

absl::Status Check(const RandAugmentOptions&, const std::string&, ImageFlow* flow) {
  return CheckColor(*flow);
}

absl::Status Check(const NormalizeImageOptions& o, const std::string& step, ImageFlow* flow) {
  RETURN_IF_ERROR(CheckNumbers("mean", o.mean.size(), flow->shape.channels));
  RETURN_IF_ERROR(CheckNumbers("std", o.std.size(), flow->shape.channels));
  const int64_t channels = o.channel_num.value_or(flow->shape.channels);
  if (channels != flow->shape.channels) {
    return InvalidArgument("channel_num: {}, but the pictures have {} channel(s)", channels,
                           flow->shape.channels);
  }
  if (o.order == "chw" && flow->chw_since.empty()) {
    return InvalidArgument(
        "order: chw, but the pixels are HWC here, for ToCHWImage is missing before it; use "
        "order: hwc or leave it out");
  }
  if (o.order == "hwc" && !flow->chw_since.empty()) {
    return InvalidArgument(
        "order: hwc, but the pixels are CHW since {}; use order: chw or leave "
        "it out",
        flow->chw_since);
  }
  if (!o.order.empty() && o.order != "chw" && o.order != "hwc") {
    return InvalidArgument("order: '{}' is not one of chw, hwc", o.order);
  }
  flow->floats_since = step;
  return absl::OkStatus();
}

absl::Status Check(const RandomErasingOptions& o, const std::string&, ImageFlow* flow) {
  if (o.sl > o.sh) return InvalidArgument("sl {} is more than sh {}", o.sl, o.sh);
  return CheckNumbers("mean", o.mean.size(), flow->shape.channels);
}

// AutoAugment has no options.
absl::Status Check(const NoAttrs&, const std::string&, ImageFlow* flow) {
  return CheckColor(*flow);
}

absl::Status CheckToChw(const AnyStruct&, const std::string& step, ImageFlow* flow) {
  if (!flow->chw_since.empty()) {
    return InvalidArgument("the picture is CHW already, since {}; remove one of the two",
                           flow->chw_since);
  }
  flow->chw_since = step;
  return absl::OkStatus();
}

template <typename Options>
TransformRow Row(const char* name, TransformKind kind, const char* doc) {
  return {.choice = {name, &TypeOf<Options>(), doc},
          .kind = kind,
          .check = +[](const AnyStruct& options, const std::string& step, ImageFlow* flow) {
            return Check(options.As<Options>(), step, flow);
          }};
}

template <typename Options, auto kFunction>
TransformRow PixelRow(const char* name, const char* doc) {
  TransformRow row = Row<Options>(name, TransformKind::kPixels, doc);
  row.pixels = +[](const AnyStruct& options, const RandomKey& key, const Image& in, Image* out) {
    return kFunction(options.As<Options>(), key, in, out);
  };
  return row;
}

template <typename Options, auto kFunction>
TransformRow RandomPixelRow(const char* name, const char* doc) {
  TransformRow row = PixelRow<Options, kFunction>(name, doc);
  row.draws = true;
  return row;
}

template <typename Options, auto kFunction>
TransformRow ValueRow(const char* name, const char* doc) {
  TransformRow row = Row<Options>(name, TransformKind::kValues, doc);
  row.values = +[](const AnyStruct& options, const RandomKey& key, const ImageShape& shape,
                   float* values) { kFunction(options.As<Options>(), key, shape, values); };
  return row;
}

std::span<const TransformRow> Rows() {
  static const TransformRow kRows[] = {
      Row<DecodeImageOptions>("DecodeImage", TransformKind::kDecode,
                              "decodes a JPEG or PNG file to upright pixels of 3 channels"),
      PixelRow<ResizeImageOptions, ResizeImage>("ResizeImage", "scales the whole picture"),
      PixelRow<CropImageOptions, CropImage>("CropImage", "keeps the centre"),
      RandomPixelRow<RandCropImageOptions, RandCropImage>(
          "RandCropImage", "keeps a random part and scales it to a square"),
      RandomPixelRow<RandFlipImageOptions, RandFlipImage>("RandFlipImage",
                                                          "mirrors half of the pictures"),
      RandomPixelRow<RandCropPadOptions, RandCropPad>(
          "RandCropPad", "adds a black border, then keeps a random part of fixed size"),
      RandomPixelRow<RandAffineOptions, RandAffine>(
          "RandAffine", "turns, shifts, magnifies and shears about the centre, over black"),
      RandomPixelRow<ColorJitterOptions, ColorJitter>(
          "ColorJitter", "changes brightness, contrast, saturation and hue in a random order"),
      RandomPixelRow<RandAugmentOptions, RandAugment>(
          "RandAugment", "changes each picture in some of fourteen ways"),
      RandomPixelRow<NoAttrs, AutoAugment>(
          "AutoAugment", "changes each picture by one of the pairs found for ImageNet"),
      Row<NormalizeImageOptions>("NormalizeImage", TransformKind::kNormalize,
                                 "pixels to values: (pixel * scale - mean) / std"),
      ValueRow<RandomErasingOptions, RandomErasing>(
          "RandomErasing", "overwrites a random rectangle, after NormalizeImage"),
      {.choice = {"ToCHWImage", &TypeOf<NoAttrs>(), "HWC to CHW; models see CHW without it, too"},
       .kind = TransformKind::kToChw,
       .check = CheckToChw},
  };
  return kRows;
}

const TransformRow* FindRow(std::string_view name) {
  for (const TransformRow& row : Rows()) {
    if (name == row.choice.name) return &row;
  }
  return nullptr;
}

// Whether a step of this kind can work on what comes to it.
absl::Status CheckFlow(TransformKind kind, bool first, const ImageFlow& flow) {
  if (kind == TransformKind::kDecode) {
    return first ? absl::OkStatus() : InvalidArgument("must come first, and once");
  }
  if (!flow.decoded) {
    return InvalidArgument("works on a picture, but DecodeImage is missing; it must come first");
  }
  const bool of_pixels = kind == TransformKind::kPixels || kind == TransformKind::kNormalize;
  if (of_pixels && !flow.floats_since.empty()) {
    return InvalidArgument("works on 8-bit pixels, but they are floats since {}; move it before",
                           flow.floats_since);
  }
  if (kind == TransformKind::kPixels && !flow.chw_since.empty()) {
    return InvalidArgument("works on HWC, but the picture is CHW since {}; move it before",
                           flow.chw_since);
  }
  if (kind == TransformKind::kValues && flow.floats_since.empty()) {
    return InvalidArgument("works on floats, but NormalizeImage is missing before it");
  }
  return absl::OkStatus();
}

std::string StepName(size_t i, const std::string& name) {
  return fmt::format("{} (transforms[{}])", name, i);
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

std::optional<TransformFault> ImagePipeline::Build(std::span<const Section> transforms,
                                                   std::optional<ImageShape> generated) {
  if (generated.has_value() && transforms.empty()) {
    output_ = *generated;
    normalize_ = AnyStruct::Of(NormalizeImageOptions{.scale = 1 / 127.5, .mean = {1}, .std = {1}});
    return std::nullopt;
  }
  ImageFlow flow;
  if (generated.has_value()) flow = {.decoded = true, .shape = *generated};
  for (size_t i = 0; i < transforms.size(); ++i) {
    const auto& [name, options] = transforms[i];
    const TransformRow* row = FindRow(name);
    if (row == nullptr) return TransformFault{i, fmt::format("no transform is '{}'", name)};
    absl::Status status = CheckFlow(row->kind, i == 0, flow);
    if (status.ok()) status = row->check(options, StepName(i, name), &flow);
    if (!status.ok()) return TransformFault{i, MessageOf(status)};
    switch (row->kind) {
      case TransformKind::kDecode:
        swap_red_and_blue_ = !options.As<DecodeImageOptions>().to_rgb;
        break;
      case TransformKind::kPixels:
        if (!row->draws && fixed_steps_ == pixel_steps_.size()) ++fixed_steps_;
        pixel_steps_.push_back({row, options, i});
        break;
      case TransformKind::kNormalize:
        normalize_ = options;
        break;
      case TransformKind::kValues:
        value_steps_.push_back({row, options, i});
        break;
      case TransformKind::kToChw:
        break;
    }
  }
  const size_t end = transforms.size();
  if (!flow.decoded) return TransformFault{end, "DecodeImage is missing; it must come first"};
  if (flow.floats_since.empty()) {
    return TransformFault{end, "the list ends with 8-bit pixels: NormalizeImage is missing"};
  }
  if (flow.shape.height == 0) {
    return TransformFault{
        end,
        fmt::format("pictures of different sizes cannot make a batch: {} leaves the size open, and "
                    "a step that fixes it is missing: CropImage, RandCropImage, RandCropPad, or "
                    "ResizeImage with `size`",
                    flow.open_since)};
  }
  output_ = flow.shape;
  return std::nullopt;
}

absl::StatusOr<ImagePipeline> ImagePipeline::Create(std::span<const Section> transforms,
                                                    std::optional<ImageShape> generated) {
  ImagePipeline pipeline;
  const std::optional<TransformFault> fault = pipeline.Build(transforms, generated);
  if (!fault.has_value()) return pipeline;
  if (fault->step == transforms.size()) return InvalidArgument("transforms: {}", fault->problem);
  return InvalidArgument("transforms[{}], {}: {}", fault->step, transforms[fault->step].name,
                         fault->problem);
}

absl::Status ImagePipeline::Apply(std::span<const Step> steps, const RandomKey& key, Image* image,
                                  Image* scratch) const {
  for (const Step& step : steps) {
    RETURN_IF_ERROR(step.row->pixels(step.options, key.Mix(step.number), *image, scratch), "in {}",
                    step.row->choice.name);
    std::swap(*image, *scratch);
  }
  return absl::OkStatus();
}

absl::Status ImagePipeline::TransformFixed(Image* image, Image* scratch) const {
  if (swap_red_and_blue_ && image->shape.channels == 3) {
    for (size_t i = 0; i < image->pixels.size(); i += 3) {
      std::swap(image->pixels[i], image->pixels[i + 2]);
    }
  }
  return Apply(std::span(pixel_steps_).first(fixed_steps_), RandomKey(0), image, scratch);
}

absl::Status ImagePipeline::TransformRandom(const RandomKey& key, Image* image,
                                            Image* scratch) const {
  return Apply(std::span(pixel_steps_).subspan(fixed_steps_), key, image, scratch);
}

void ImagePipeline::WriteValues(const RandomKey& key, const Image& image, float* values) const {
  CHECK(image.shape == output_) << image.shape.ToString() << " instead of " << output_.ToString();
  NormalizeImage(normalize_.As<NormalizeImageOptions>(), image, values);
  for (const Step& step : value_steps_) {
    step.row->values(step.options, key.Mix(step.number), output_, values);
  }
}

std::optional<TransformFault> FindTransformFault(std::span<const Section> transforms,
                                                 std::optional<ImageShape> generated) {
  ImagePipeline pipeline;
  return pipeline.Build(transforms, generated);
}

}  // namespace capstan
