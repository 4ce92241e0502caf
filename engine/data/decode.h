// Decoding of picture files by their content, never by their name: JPEG and PNG to upright RGB.
//
// Grey and palette pictures become RGB; 16 bits are scaled to 8; alpha is composed over white; CMYK
// inks (plain or Adobe's inverted) become RGB; the EXIF orientation is applied. Damaged or
// truncated files are errors, also where a decoder would fill the rest with grey.
// Safe from any thread.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "engine/data/image.h"

namespace capstan {

// The memory of *image is used again. InvalidArgument: not a picture; DataLoss: a damaged one.
absl::Status DecodePicture(std::string_view bytes, Image* image);

}  // namespace capstan
