#include "engine/data/synthetic.h"

#include <cmath>
#include <cstring>
#include <numbers>

#include "engine/base/random.h"
#include "engine/base/status.h"

namespace capstan {
namespace {

class Synthetic final : public ImageDataset {
 public:
  Synthetic(const SyntheticOptions& options, const ImageShape& shape)
      : options_(options),
        shape_(shape),
        key_(RandomKey(static_cast<uint64_t>(options.seed)).Mix("synthetic")) {
    classes_ = options.classes;
  }

  int64_t size() const override { return options_.samples; }
  int64_t Label(int64_t index) const override { return Number(index) % classes_; }
  std::string Describe(int64_t index) const override {
    return fmt::format("synthetic sample {}", Number(index));
  }

  absl::Status Load(int64_t index, std::string*, Image* image) const override {
    image->Reset(shape_);
    DrawNoise(index, image);
    if (options_.pattern == SyntheticPattern::kWaves) DrawWaves(Label(index), image);
    return absl::OkStatus();
  }

 private:
  int64_t Number(int64_t index) const { return options_.first_sample + index; }

  void DrawNoise(int64_t index, Image* image) const {
    const uint64_t key = key_.Mix("noise").Mix(static_cast<uint64_t>(Number(index))).key();
    size_t done = 0;
    for (uint64_t block = 0; done < image->pixels.size(); ++block) {
      const std::array<uint32_t, 4> bits = Philox(key, block, 0);
      const size_t n = std::min(sizeof(bits), image->pixels.size() - done);
      std::memcpy(image->pixels.data() + done, bits.data(), n);
      done += n;
    }
  }

  // Mixes one plane wave a channel into the noise, whose direction, length and phase are the
  // class's. sin(a + b) is taken apart, so that only rows and columns need sines.
  void DrawWaves(int64_t label, Image* image) const {
    const RandomKey key = key_.Mix("class").Mix(static_cast<uint64_t>(label));
    const auto noise = static_cast<float>(options_.noise), wave = 127.5f * (1 - noise);
    std::vector<float> sines(static_cast<size_t>(shape_.width)), cosines(sines.size());
    for (int64_t c = 0; c < shape_.channels; ++c) {
      const auto draw = [&](uint64_t i) {
        return key.UniformDouble(static_cast<uint64_t>(c) * 3 + i);
      };
      // At most four periods a picture, so that the pattern survives cropping and scaling.
      const double fx =
          (draw(0) * 8 - 4) * 2 * std::numbers::pi / static_cast<double>(shape_.width);
      const double fy =
          (draw(1) * 8 - 4) * 2 * std::numbers::pi / static_cast<double>(shape_.height);
      const double phase = draw(2) * 2 * std::numbers::pi;
      for (size_t x = 0; x < sines.size(); ++x) {
        sines[x] = static_cast<float>(std::sin(fx * static_cast<double>(x) + phase));
        cosines[x] = static_cast<float>(std::cos(fx * static_cast<double>(x) + phase));
      }
      for (int64_t y = 0; y < shape_.height; ++y) {
        const auto s = static_cast<float>(std::sin(fy * static_cast<double>(y)));
        const auto t = static_cast<float>(std::cos(fy * static_cast<double>(y)));
        uint8_t* p = image->Row(y) + c;
        for (size_t x = 0; x < sines.size(); ++x, p += shape_.channels) {
          const float value = wave * (1 + sines[x] * t + cosines[x] * s) + noise * *p;
          *p = static_cast<uint8_t>(value + 0.5f);
        }
      }
    }
  }

  const SyntheticOptions options_;
  const ImageShape shape_;
  const RandomKey key_;
};

}  // namespace

absl::StatusOr<ImageShape> SyntheticShape(const SyntheticOptions& options) {
  if (options.shape.size() != 3) {
    return InvalidArgument("shape: {} number(s); wanted [channels, height, width]",
                           options.shape.size());
  }
  return ImageShape{options.shape[0], options.shape[1], options.shape[2]};
}

absl::StatusOr<std::unique_ptr<ImageDataset>> OpenSynthetic(const SyntheticOptions& options,
                                                            int64_t model_classes) {
  ASSIGN_OR_RETURN(const ImageShape shape, SyntheticShape(options));
  if (model_classes > 0 && options.classes > model_classes) {
    return InvalidArgument("synthetic: classes {}, but the model has {}", options.classes,
                           model_classes);
  }
  return std::make_unique<Synthetic>(options, shape);
}

}  // namespace capstan
