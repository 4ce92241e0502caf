#include "engine/data/decode.h"

#include <string>

#include "engine/base/status.h"
#include "engine/data/exif.h"
#include "engine/data/picture_formats.h"

namespace capstan {
namespace {

using namespace std::string_view_literals;

absl::StatusOr<int> DecodeByContent(std::string_view bytes, Image* image) {
  if (bytes.starts_with("\xFF\xD8\xFF"sv)) return DecodeJpeg(bytes, image);
  if (bytes.starts_with("\x89PNG\r\n\x1A\n"sv)) return DecodePng(bytes, image);
  if (bytes.empty()) return InvalidArgument("the file is empty");
  constexpr size_t kShown = 8;
  std::string start;
  for (const char c : bytes.substr(0, kShown)) {
    start += fmt::format("{:02x} ", static_cast<unsigned char>(c));
  }
  return InvalidArgument("not a JPEG or PNG picture (it starts with {}...)", start);
}

}  // namespace

absl::Status DecodePicture(std::string_view bytes, Image* image) {
  ASSIGN_OR_RETURN(const int orientation, DecodeByContent(bytes, image));
  if (orientation != 1) {
    Image scratch;
    ApplyOrientation(orientation, image, &scratch);
  }
  return absl::OkStatus();
}

}  // namespace capstan
