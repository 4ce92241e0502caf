// Module: all programs of a job on one rank and what they share: what the passes work on and the
// plan is made from.
//
// Parameters and states are shared by name. Names of derived state: `conv1.weight@grad`,
// `conv1.weight@momentum`. A bucket holds many parameters end to end; its flat states are named
// alike, `f32.decay@grad`, and the state `B@slot` is cut by B's segments into `P@slot` (`P@weight`
// is P itself). Running statistics that are averaged have a bucket, too.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/ir/graph.h"

namespace capstan {

enum class ProgramKind : uint8_t {
  kMicro,       // loss of one batch; differentiate replaces it by the two below
  kMicroFirst,  // forward and backward; gradients overwrite
  kMicroNext,   // the same; gradients are added up
  kUpdate,      // one optimizer update
  kEvaluate,    // forward only
};
const char* NameOf(ProgramKind kind);

// One graph for one bucket of shapes ("8x3x32x32").
struct Program {
  ProgramKind kind = ProgramKind::kEvaluate;
  std::string shapes;
  Graph graph;

  // "micro_first/8x3x32x32"
  std::string Name() const;
};

// A parameter's place in the flat states of its bucket.
struct Segment {
  std::string param;
  TensorType type;
  int64_t offset = 0;  // elements
};

struct Bucket {
  std::string name;  // "f32.decay"
  DType dtype = DType::kF32;
  int64_t count = 0;  // elements, with the padding between segments
  std::vector<Segment> segments;
  std::vector<std::string> slots;  // "weight", "grad", "momentum"
};

// Appends a parameter; segments begin at multiples of 64 bytes or more, zeros fill the gaps.
void AddSegment(std::string_view param, const TensorType& type, Bucket* bucket);

struct Module {
  std::vector<Program> programs;
  std::vector<Bucket> buckets;
};

// Name of a parameter's or bucket's state: "conv1.weight@grad"; slot "weight" of a parameter is the
// parameter itself.
std::string SlotName(std::string_view owner, std::string_view slot);
// The parameter or bucket of a slot's name; the name itself where it has no slot.
std::string_view SlotOwner(std::string_view name);

// Every graph's text and the segment tables.
std::string PrintModule(const Module& module);
uint64_t HashOf(const Module& module);

}  // namespace capstan
