#include <spng.h>

#include <memory>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/status.h"
#include "engine/data/exif.h"
#include "engine/data/picture_formats.h"

namespace capstan {
namespace {

struct FreeContext {
  void operator()(spng_ctx* context) const { spng_ctx_free(context); }
};

absl::Status DamagedPng(int error) { return DataLoss("damaged PNG: {}", spng_strerror(error)); }

// Composes RGBA samples with the full scale `kFull` over white and scales them to 8 bits.
template <int64_t kFull, typename T>
void ComposeOverWhite(const T* rgba, int64_t pixels, uint8_t* rgb) {
  for (int64_t i = 0; i < pixels; ++i, rgba += 4, rgb += 3) {
    const int64_t alpha = rgba[3];
    for (int c = 0; c < 3; ++c) {
      const int64_t value = rgba[c] * alpha + kFull * (kFull - alpha);
      rgb[c] = static_cast<uint8_t>((value * 255 + kFull * kFull / 2) / (kFull * kFull));
    }
  }
}

bool HasAlpha(spng_ctx* context, const spng_ihdr& header) {
  spng_trns transparency;
  return header.color_type == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA ||
         header.color_type == SPNG_COLOR_TYPE_TRUECOLOR_ALPHA ||
         spng_get_trns(context, &transparency) == 0;
}

}  // namespace

absl::StatusOr<int> DecodePng(std::string_view bytes, Image* image) {
  const std::unique_ptr<spng_ctx, FreeContext> context(spng_ctx_new(0));
  CHECK(context != nullptr) << "no memory for a PNG decoder";
  spng_ctx* png = context.get();
  if (int e = spng_set_png_buffer(png, bytes.data(), bytes.size()); e != 0) return DamagedPng(e);
  spng_ihdr header;
  if (int e = spng_get_ihdr(png, &header); e != 0) return DamagedPng(e);
  const int64_t pixels = int64_t{header.width} * header.height;
  if (pixels > kMaxPicturePixels) {
    return DataLoss("damaged PNG: {} x {} pixels are too many", header.width, header.height);
  }
  image->Reset({3, header.height, header.width});
  const bool deep = header.bit_depth == 16;
  if (!deep && !HasAlpha(png, header)) {
    const int e =
        spng_decode_image(png, image->pixels.data(), image->pixels.size(), SPNG_FMT_RGB8, 0);
    if (e != 0) return DamagedPng(e);
  } else {
    std::vector<uint16_t> rgba(static_cast<size_t>(pixels) * (deep ? 4 : 2));
    const int e = spng_decode_image(png, rgba.data(), rgba.size() * sizeof(uint16_t),
                                    deep ? SPNG_FMT_RGBA16 : SPNG_FMT_RGBA8, SPNG_DECODE_TRNS);
    if (e != 0) return DamagedPng(e);
    if (deep) {
      ComposeOverWhite<65535>(rgba.data(), pixels, image->pixels.data());
    } else {
      ComposeOverWhite<255>(reinterpret_cast<const uint8_t*>(rgba.data()), pixels,
                            image->pixels.data());
    }
  }
  // Up to the end chunk: shows that the file is whole, and EXIF may follow the pixels.
  if (int e = spng_decode_chunks(png); e != 0) return DamagedPng(e);
  spng_exif exif;
  if (spng_get_exif(png, &exif) != 0) return 1;
  return ExifOrientation(std::string_view(exif.data, exif.length));
}

}  // namespace capstan
