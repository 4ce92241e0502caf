#include "engine/data/picture_set.h"

#include "engine/base/status.h"
#include "engine/data/decode.h"
#include "engine/data/file.h"

namespace capstan {

absl::Status PictureSet::Load(int64_t index, std::string* bytes, Image* image) const {
  RETURN_IF_ERROR(ReadFile(JoinPath(root_, std::string(table_.Path(index))), bytes));
  return DecodePicture(*bytes, image);
}

}  // namespace capstan
