#include "engine/ir/module.h"

#include <fmt/format.h>

#include "engine/base/random.h"
#include "engine/ir/text.h"

namespace capstan {

const char* NameOf(ProgramKind kind) {
  switch (kind) {
    case ProgramKind::kMicro:
      return "micro";
    case ProgramKind::kMicroFirst:
      return "micro_first";
    case ProgramKind::kMicroNext:
      return "micro_next";
    case ProgramKind::kUpdate:
      return "update";
    case ProgramKind::kEvaluate:
      return "evaluate";
  }
  return "?";
}

std::string Program::Name() const {
  return shapes.empty() ? NameOf(kind) : std::string(NameOf(kind)) + "/" + shapes;
}

void AddSegment(std::string_view param, const TensorType& type, Bucket* bucket) {
  constexpr int64_t kAlignment = 16;  // elements
  bucket->segments.push_back({std::string(param), type, bucket->count});
  bucket->count += (type.count() + kAlignment - 1) / kAlignment * kAlignment;
}

std::string SlotName(std::string_view owner, std::string_view slot) {
  return std::string(owner) + "@" + std::string(slot);
}

std::string_view SlotOwner(std::string_view name) { return name.substr(0, name.find('@')); }

std::string PrintModule(const Module& module) {
  std::string text;
  for (const Program& p : module.programs) text += PrintGraph(p.graph);
  for (const Bucket& b : module.buckets) {
    text += fmt::format("bucket {} : {}[{}] slots={}\n", b.name, NameOf(b.dtype), b.count,
                        fmt::join(b.slots, ","));
    for (const Segment& s : b.segments) {
      text += fmt::format("  {} : {} at {}\n", s.param, s.type.ToString(), s.offset);
    }
  }
  return text;
}

uint64_t HashOf(const Module& module) { return HashText(PrintModule(module)); }

}  // namespace capstan
