#include "engine/config/source_map.h"

namespace capstan {

Position SourceMap::Find(std::string_view path) const {
  while (true) {
    if (const auto it = places_.find(path); it != places_.end()) return it->second;
    if (path.empty()) return {"the job"};
    const size_t dot = path.rfind('.');
    path = path.substr(0, dot == std::string_view::npos ? 0 : dot);
  }
}

}  // namespace capstan
