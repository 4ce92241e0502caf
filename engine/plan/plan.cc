#include "engine/plan/plan.h"

#include <fmt/format.h>

#include "engine/base/text.h"

namespace capstan {
namespace {

const char* NameOf(Arena arena) {
  switch (arena) {
    case Arena::kState:
      return "state";
    case Arena::kScratch:
      return "scratch";
    case Arena::kInput:
      return "input";
  }
  return "?";
}

std::string PrintSlots(const std::vector<int32_t>& slots) {
  std::string text;
  for (const int32_t b : slots) {
    if (!text.empty()) text += ", ";
    text += b == kNoBuffer ? "_" : fmt::format("b{}", b);
  }
  return text;
}

std::string PrintNamed(const char* what, const std::vector<NamedBuffer>& all) {
  std::string text;
  for (const NamedBuffer& n : all) text += fmt::format("  {} {} = b{}\n", what, n.name, n.buffer);
  return text;
}

}  // namespace

int Plan::FindProgram(ProgramKind kind, std::string_view shapes) const {
  for (size_t i = 0; i < programs.size(); ++i) {
    if (programs[i].kind == kind && programs[i].shapes == shapes) return static_cast<int>(i);
  }
  return -1;
}

const StateEntry* Plan::FindState(std::string_view name) const {
  for (const StateEntry& e : state) {
    if (e.name == name) return &e;
  }
  return nullptr;
}

std::string PrintProgram(const PlannedProgram& program) {
  std::string text =
      fmt::format("program {} : {} steps, {}, {:.3f} GFLOP, {} moved\n", program.name,
                  program.steps.size(), HumanBytes(double(program.scratch_bytes)),
                  program.cost.flops * 1e-9, HumanBytes(program.cost.bytes));
  text += PrintNamed("input", program.inputs);
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& b = program.buffers[i];
    text += fmt::format("  b{} : {}+{} {}\n", i, NameOf(b.arena), b.offset, b.type.ToString());
  }
  for (const Step& s : program.steps) {
    text += fmt::format("  {} = {}({}){}", PrintSlots(s.outputs), s.kernel->Key(),
                        PrintSlots(s.inputs), PrintValue(*s.attrs.type(), s.attrs.data()));
    if (s.workspace_bytes > 0) {
      text += fmt::format(" workspace={}+{}", s.workspace_offset, s.workspace_bytes);
    }
    if (s.stream != 0) text += fmt::format(" stream={}", s.stream);
    if (!s.waits.empty()) text += fmt::format(" waits={}", fmt::join(s.waits, ","));
    if (!s.label.empty()) text += " @" + s.label;
    text += "\n";
  }
  return text + PrintNamed("output", program.outputs);
}

std::string PrintPlan(const Plan& plan) {
  std::string text =
      fmt::format("plan for {} : state {}, scratch {}\n", NameOf(plan.device),
                  HumanBytes(double(plan.state_bytes)), HumanBytes(double(plan.scratch_bytes)));
  for (const StateEntry& e : plan.state) {
    text += fmt::format("  state {} : {} at {}{}\n", e.name, e.type.ToString(), e.offset,
                        e.flat ? " flat" : "");
  }
  for (const PlannedProgram& p : plan.programs) text += PrintProgram(p);
  return text;
}

}  // namespace capstan
