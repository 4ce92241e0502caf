#include "engine/plan/state_layout.h"

#include <map>

#include "engine/base/check.h"
#include "engine/plan/memory.h"

namespace capstan {
namespace {

class StateArena {
 public:
  int64_t bytes() const { return bytes_; }
  std::vector<StateEntry> TakeEntries() { return std::move(entries_); }

  // The flat states of a bucket and, inside them, those of its tensors.
  void AddBucket(const Bucket& bucket, const std::map<std::string, const GraphInput*>& tensors) {
    for (const std::string& slot : bucket.slots) {
      const int64_t base = Append({.name = SlotName(bucket.name, slot),
                                   .type = {bucket.dtype, {bucket.count}},
                                   .flat = true});
      for (const Segment& s : bucket.segments) {
        StateEntry entry{.name = slot == "weight" ? s.param : SlotName(s.param, slot),
                         .type = s.type,
                         .offset = base + s.offset * static_cast<int64_t>(SizeOf(bucket.dtype))};
        const auto it = tensors.find(s.param);
        if (slot == "weight" && it != tensors.end()) {
          entry.kind = it->second->kind;
          entry.role = it->second->role;
          entry.init = it->second->init;
        }
        Insert(std::move(entry));
      }
    }
  }

  // A state of its own, unless it is there.
  void Add(const GraphInput& input, const TensorType& type) {
    const auto it = index_.find(input.name);
    if (it == index_.end()) {
      Append({.name = input.name,
              .type = type,
              .kind = input.kind,
              .role = input.role,
              .init = input.init});
      return;
    }
    const StateEntry& known = entries_[it->second];
    CHECK(known.type == type) << input.name << " is " << known.type.ToString() << " and "
                              << type.ToString();
  }

 private:
  int64_t Append(StateEntry entry) {
    entry.offset = bytes_;
    const int64_t size = entry.type.bytes();
    bytes_ += (size + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
    const int64_t offset = entry.offset;
    Insert(std::move(entry));
    return offset;
  }

  void Insert(StateEntry entry) {
    CHECK(index_.emplace(entry.name, entries_.size()).second) << "two states: " << entry.name;
    entries_.push_back(std::move(entry));
  }

  std::vector<StateEntry> entries_;
  std::map<std::string, size_t> index_;
  int64_t bytes_ = 0;
};

}  // namespace

std::vector<StateEntry> LayOutState(const Module& module, int64_t* bytes) {
  std::map<std::string, const GraphInput*> tensors;
  for (const Program& p : module.programs) {
    for (const GraphInput& in : p.graph.inputs()) {
      if (in.kind != InputKind::kData) tensors.emplace(in.name, &in);
    }
  }
  StateArena arena;
  for (const Bucket& bucket : module.buckets) arena.AddBucket(bucket, tensors);
  for (const Program& p : module.programs) {
    for (const GraphInput& in : p.graph.inputs()) {
      if (in.kind != InputKind::kData) arena.Add(in, p.graph.type(in.value));
    }
  }
  *bytes = arena.bytes();
  return arena.TakeEntries();
}

}  // namespace capstan
