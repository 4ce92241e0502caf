#include "engine/data/image.h"

#include <fmt/core.h>

namespace capstan {

std::string ImageShape::ToString() const {
  return fmt::format("{}x{}x{}", channels, height, width);
}

}  // namespace capstan
