// Plan: what one rank executes, flat and plain. Programs are lists of steps over buffers in three
// arenas; the executor knows steps only: no operators, no shapes, no strategy.
//
//   state    weights, gradients, moments, statistics: one arena, lives as long as the job
//   scratch  everything else a program computes: one arena, as large as the largest program needs
//   input    what the caller hands in at each run: used where it lies
//
// Immutable after BuildPlan (lower.h), and safe to read from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ir/module.h"
#include "engine/kernel/kernel_row.h"

namespace capstan {

enum class Arena : uint8_t { kState, kScratch, kInput };

// A piece of memory that holds one value. Buffers of one program may overlap where their lives do
// not, or where one is computed over the other (in place, views).
struct Buffer {
  Arena arena = Arena::kScratch;
  int64_t offset = 0;  // bytes; for kInput the index of the program's input
  TensorType type;
};

inline constexpr int32_t kNoBuffer = -1;  // an absent optional input

struct Step {
  const KernelRow* kernel = nullptr;
  AnyStruct attrs;
  std::vector<int32_t> outputs;  // buffers
  std::vector<int32_t> inputs;
  int64_t workspace_offset = 0;  // scratch
  int64_t workspace_bytes = 0;
  std::shared_ptr<const void> prepared;
  Cost cost;
  std::string label;  // scope of the node, for messages and profiles
  int32_t stream = 0;
  std::vector<int32_t> waits;  // earlier steps of other streams
};

struct NamedBuffer {
  std::string name;
  int32_t buffer = kNoBuffer;
};

struct PlannedProgram {
  ProgramKind kind = ProgramKind::kEvaluate;
  std::string shapes;  // of its bucket: "8x3x32x32"
  std::string name;    // "micro_first/8x3x32x32"
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  std::vector<NamedBuffer> inputs;   // data inputs, in the order of RunArgs::inputs
  std::vector<NamedBuffer> outputs;  // valid until the next run of any program
  int64_t scratch_bytes = 0;
  Cost cost;  // of all steps
};

// A named piece of the state arena.
struct StateEntry {
  std::string name;  // "conv1.weight", "conv1.weight@momentum", "bn1.running_mean"
  TensorType type;
  int64_t offset = 0;  // bytes
  InputKind kind = InputKind::kState;
  Role role = Role::kWeight;
  Init init;
  // A flat state of a bucket: covers the entries of its parameters.
  bool flat = false;
};

struct Plan {
  DeviceKind device = DeviceKind::kCpu;
  std::vector<PlannedProgram> programs;
  std::vector<StateEntry> state;
  int64_t state_bytes = 0;
  int64_t scratch_bytes = 0;  // the largest of the programs'

  // The index of a program, or -1.
  int FindProgram(ProgramKind kind, std::string_view shapes) const;
  const StateEntry* FindState(std::string_view name) const;
};

// Readable text of a whole plan; of one program.
std::string PrintPlan(const Plan& plan);
std::string PrintProgram(const PlannedProgram& program);

}  // namespace capstan
