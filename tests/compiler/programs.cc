#include "tests/compiler/programs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/base/random.h"
#include "engine/ir/text.h"
#include "engine/kernel/strided.h"
#include "engine/plan/lower.h"
#include "engine/runtime/executor.h"
#include "ops/op_table.h"

namespace capstan {
namespace {

void Fill(const TensorView& view, const std::string& name) {
  const RandomKey key = RandomKey(11).Mix(name);
  uint64_t i = 0;
  if (view.type.dtype == DType::kI64) {
    for (int64_t& v : view.Elements<int64_t>()) v = static_cast<int64_t>(key.Below(i++, 3));
    return;
  }
  // Variances must be positive.
  const bool positive = name.find("var") != std::string::npos;
  ForFloat(view.type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<T> to(view);
    ForEachIndex(view.type.shape, [&](const Index& at) {
      const double v = key.Normal(i++);
      to(at) = static_cast<T>(positive ? 0.5 + std::abs(v) : v);
    });
  });
}

std::vector<double> Read(const TensorView& view) {
  std::vector<double> values;
  ForFloat(view.type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> from(view);
    ForEachIndex(view.type.shape,
                 [&](const Index& at) { values.push_back(static_cast<double>(from(at))); });
  });
  return values;
}

}  // namespace

const OpTable& TestOps() {
  static const OpTable& ops = *new OpTable(AllOps());
  return ops;
}

const KernelTable& TestKernels() {
  static const KernelTable& kernels = *new KernelTable(AllKernels());
  return kernels;
}

Module ParseModule(const std::vector<std::pair<ProgramKind, std::string>>& programs) {
  Module module;
  for (const auto& [kind, text] : programs) {
    std::string_view rest = text;
    absl::StatusOr<Graph> graph = ParseGraph(&rest, TestOps(), "test");
    EXPECT_TRUE(graph.ok()) << graph.status();
    module.programs.push_back({kind, "", *std::move(graph)});
  }
  return module;
}

Plan PlanOf(const Module& module, const std::string& impl) {
  absl::StatusOr<Plan> plan = BuildPlan(module, TestKernels(), {.impl = impl});
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *std::move(plan);
}

Results RunAll(const Module& module, const std::string& impl) {
  const Plan plan = PlanOf(module, impl);
  const std::unique_ptr<Device> device = MakeCpuDevice(1);
  auto executor = Executor::Create(&plan, device.get());
  CHECK_OK(executor);
  for (const StateEntry& e : plan.state) {
    if (!e.flat) Fill((*executor)->State(e), e.name);
  }
  Results results;
  for (size_t p = 0; p < plan.programs.size(); ++p) {
    const PlannedProgram& program = plan.programs[p];
    std::vector<HostTensor> held;
    std::vector<TensorView> inputs;
    for (const NamedBuffer& in : program.inputs) {
      held.emplace_back(program.buffers[static_cast<size_t>(in.buffer)].type);
      Fill(held.back().view(), in.name);
      inputs.push_back(held.back().view());
    }
    const absl::Status status =
        (*executor)->Run(static_cast<int>(p), {.inputs = inputs, .seed = 5});
    EXPECT_TRUE(status.ok()) << status;
    for (const NamedBuffer& o : program.outputs) {
      results[std::string(NameOf(program.kind)) + "/" + o.name] =
          Read((*executor)->Output(static_cast<int>(p), o.name));
    }
  }
  for (const StateEntry& e : plan.state) {
    if (!e.flat) results[e.name] = Read((*executor)->State(e));
  }
  return results;
}

void ExpectNear(const Results& want, const Results& got, double tolerance) {
  for (const auto& [name, values] : want) {
    const auto it = got.find(name);
    ASSERT_NE(it, got.end()) << name;
    ASSERT_EQ(it->second.size(), values.size()) << name;
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(values[i], it->second[i], tolerance * (1 + std::abs(values[i])))
          << name << "[" << i << "]";
    }
  }
}

}  // namespace capstan
