// The generic suite over the whole table of operators and kernels (ops/op_suite/suite.h). A failure
// names its check, operator and example: `--gtest_filter='*Gradient/conv2d_2'`.
#include <gtest/gtest.h>

#include <string>

#include "engine/base/status.h"
#include "ops/op_suite/suite.h"
#include "ops/op_table.h"

namespace capstan {
namespace {

#ifdef CAPSTAN_SUITE_ON_GPU
Device* SuiteDevice() {
  static auto* device = new auto(MakeCudaDevice(0));
  CHECK_OK(*device);
  return device->value().get();
}
#else
Device* SuiteDevice() { return nullptr; }
#endif

const SuiteTables& Tables() {
  static const auto* tables = [] {
    auto* made = new SuiteTables(AllOps(), AllKernels());
    made->device = SuiteDevice();
    return made;
  }();
  return *tables;
}

struct RowExample {
  const OpDef* op = nullptr;
  size_t number = 0;
  Example example;
};

std::vector<RowExample> AllExamples() {
  std::vector<RowExample> all;
  for (const OpDef* op : AllOps()) {
    size_t number = 0;
    for (const Example& example : op->examples()) all.push_back({op, number++, example});
  }
  return all;
}

// What gtest prints of a parameter.
void PrintTo(const RowExample& e, std::ostream* out) { *out << e.op->name << " " << e.number; }

void ExpectOk(const absl::Status& status) { EXPECT_TRUE(status.ok()) << MessageOf(status); }

class ExampleTest : public testing::TestWithParam<RowExample> {
 protected:
  using Check = absl::Status (*)(const SuiteTables&, const OpDef&, const Example&);
  void Expect(Check check) { ExpectOk(check(Tables(), *GetParam().op, GetParam().example)); }
};

TEST_P(ExampleTest, Infer) { Expect(CheckInfer); }
TEST_P(ExampleTest, Reference) { Expect(CheckReference); }
TEST_P(ExampleTest, Gradient) { Expect(CheckGradient); }
TEST_P(ExampleTest, Shard) { Expect(CheckShard); }
TEST_P(ExampleTest, Traits) { Expect(CheckTraits); }
TEST_P(ExampleTest, Text) { Expect(CheckText); }

INSTANTIATE_TEST_SUITE_P(Ops, ExampleTest, testing::ValuesIn(AllExamples()), [](const auto& info) {
  return info.param.op->name + ("_" + std::to_string(info.param.number));
});

class RowTest : public testing::TestWithParam<const OpDef*> {};

TEST_P(RowTest, Row) { ExpectOk(CheckRow(Tables(), *GetParam())); }

INSTANTIATE_TEST_SUITE_P(Ops, RowTest, testing::ValuesIn(AllOps()),
                         [](const auto& info) { return std::string(info.param->name); });

class KernelTest : public testing::TestWithParam<size_t> {
 protected:
  static const KernelRow& Kernel() { return Tables().kernels.rows()[GetParam()]; }
};

TEST_P(KernelTest, AgreesWithReference) { ExpectOk(CheckKernel(Tables(), Kernel())); }
TEST_P(KernelTest, InPlace) { ExpectOk(CheckInPlace(Tables(), Kernel())); }

// Without opening a device: tests are named before anything runs.
const std::vector<KernelRow>& Kernels() {
  static const auto* rows = new std::vector<KernelRow>(KernelTable(AllKernels()).rows());
  return *rows;
}

INSTANTIATE_TEST_SUITE_P(Ops, KernelTest, testing::Range(size_t{0}, Kernels().size()),
                         [](const auto& info) {
                           const KernelRow& row = Kernels()[info.param];
                           return std::string(row.op) + "_" + row.impl;
                         });

}  // namespace
}  // namespace capstan
