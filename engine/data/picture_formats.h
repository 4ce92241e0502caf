// The decoders behind DecodePicture, one a format. Each leaves the stored pixels as RGB in *image
// and gives the EXIF orientation that is still to be applied.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "engine/data/image.h"

namespace capstan {

// Beyond this many pixels a picture is refused: a header of a few bytes must not fill the memory.
inline constexpr int64_t kMaxPicturePixels = int64_t{1} << 28;

absl::StatusOr<int> DecodeJpeg(std::string_view bytes, Image* image);
absl::StatusOr<int> DecodePng(std::string_view bytes, Image* image);

}  // namespace capstan
