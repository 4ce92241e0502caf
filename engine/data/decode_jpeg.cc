// libjpeg's own interface rather than TurboJPEG's: only here does a warning say which one it is,
// and some mean a damaged picture while others are harmless.
// clang-format off
// jpeglib.h wants <cstdio> before it, jerror.h wants jpeglib.h.
#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include <vector>

#include "engine/base/status.h"
#include "engine/data/exif.h"
#include "engine/data/picture_formats.h"

namespace capstan {
namespace {

constexpr int kExifMarker = JPEG_APP0 + 1;
constexpr unsigned kMaxMarkerBytes = 0xFFFF;

struct ErrorManager {
  jpeg_error_mgr base;
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

void StopDecoding(j_common_ptr info) {
  auto* errors = reinterpret_cast<ErrorManager*>(info->err);
  errors->base.format_message(info, errors->message);
  std::longjmp(errors->jump, 1);
}

bool IsHarmless(int warning) {
  return warning == JWRN_EXTRANEOUS_DATA || warning == JWRN_JFIF_MAJOR ||
         warning == JWRN_ADOBE_XFORM || warning == JWRN_BOGUS_ICC || warning == JWRN_NOT_SEQUENTIAL;
}

// After most warnings libjpeg makes up the rest of the picture; that is no sample to train on.
void StopAtWarning(j_common_ptr info, int level) {
  if (level < 0 && !IsHarmless(info->err->msg_code)) StopDecoding(info);
}

// Inks as Adobe stores them: 255 is no ink.
void InvertedInksToRgb(const uint8_t* inks, int64_t pixels, uint8_t* rgb) {
  for (int64_t i = 0; i < pixels; ++i, inks += 4, rgb += 3) {
    for (int c = 0; c < 3; ++c) rgb[c] = static_cast<uint8_t>((inks[c] * inks[3] + 127) / 255);
  }
}

// A decoder and its rows of ink. No object with a destructor may live where longjmp passes, so that
// all memory hangs here.
class JpegDecoder {
 public:
  JpegDecoder() {
    info_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = StopDecoding;
    errors_.base.emit_message = StopAtWarning;
    jpeg_create_decompress(&info_);
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&info_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // False when the picture is damaged; see message().
  bool Decode(std::string_view bytes, Image* image) {
    if (setjmp(errors_.jump) != 0) return false;
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_save_markers(&info_, kExifMarker, kMaxMarkerBytes);
    jpeg_read_header(&info_, TRUE);
    orientation_ = FindOrientation();
    if (int64_t{info_.image_width} * info_.image_height > kMaxPicturePixels) {
      std::snprintf(errors_.message, sizeof(errors_.message), "%u x %u pixels are too many",
                    info_.image_width, info_.image_height);
      return false;
    }
    const bool inks = info_.num_components == 4;
    info_.out_color_space = inks ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&info_);
    image->Reset({3, info_.output_height, info_.output_width});
    if (inks) ink_row_.resize(static_cast<size_t>(info_.output_width) * 4);
    while (info_.output_scanline < info_.output_height) {
      uint8_t* row = image->Row(info_.output_scanline);
      JSAMPROW target = inks ? ink_row_.data() : row;
      jpeg_read_scanlines(&info_, &target, 1);
      if (!inks) continue;
      if (!info_.saw_Adobe_marker) {
        for (uint8_t& ink : ink_row_) ink = static_cast<uint8_t>(255 - ink);
      }
      InvertedInksToRgb(ink_row_.data(), info_.output_width, row);
    }
    jpeg_finish_decompress(&info_);
    return true;
  }

  int orientation() const { return orientation_; }
  const char* message() const { return errors_.message; }

 private:
  // Before the pixels are read: at the end libjpeg forgets the markers.
  int FindOrientation() const {
    for (jpeg_saved_marker_ptr m = info_.marker_list; m != nullptr; m = m->next) {
      std::string_view data(reinterpret_cast<const char*>(m->data), m->data_length);
      constexpr std::string_view kExif("Exif\0\0", 6);
      if (m->marker != kExifMarker || !data.starts_with(kExif)) continue;
      return ExifOrientation(data.substr(kExif.size()));
    }
    return 1;
  }

  jpeg_decompress_struct info_;
  ErrorManager errors_;
  std::vector<uint8_t> ink_row_;
  int orientation_ = 1;
};

}  // namespace

absl::StatusOr<int> DecodeJpeg(std::string_view bytes, Image* image) {
  JpegDecoder decoder;
  if (!decoder.Decode(bytes, image)) return DataLoss("damaged JPEG: {}", decoder.message());
  return decoder.orientation();
}

}  // namespace capstan
