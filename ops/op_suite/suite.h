// The checks that every operator row and every kernel row passes, whatever it computes. An operator
// cannot be added untested: ops/op_suite_test.cc runs all of them over the whole table.
//
// A check returns OK, or a message that says what is wrong with which argument; rows that a check
// does not concern (no gradient, an example that must fail) pass. Checks keep no state; numbers are
// drawn by name, so a failure repeats.
//
//   const SuiteTables tables(AllOps(), AllKernels());
//   EXPECT_OK(CheckGradient(tables, kRelu, kRelu.examples()[0]));
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "engine/ir/op_def.h"
#include "engine/kernel/kernel_row.h"
#include "engine/runtime/device.h"

namespace capstan {

struct SuiteTables {
  SuiteTables(const std::vector<const OpDef*>& rows, std::vector<KernelRow> kernel_rows)
      : ops(rows), kernels(std::move(kernel_rows)) {}

  OpTable ops;
  KernelTable kernels;
  // Runs the kernels of its kind; null: those of the CPU are checked.
  Device* device = nullptr;
};

// Of one example of a row.

// An example infers; one with `error` fails with a message that holds that text.
absl::Status CheckInfer(const SuiteTables& tables, const OpDef& op, const Example& example);
// The reference kernel writes every element, reads nothing undefined, stays inside its memory,
// leaves its inputs alone, gives finite results of finite inputs, and the same in every format.
absl::Status CheckReference(const SuiteTables& tables, const OpDef& op, const Example& example);
// In f64, the gradient graph agrees with central differences along random directions.
absl::Status CheckGradient(const SuiteTables& tables, const OpDef& op, const Example& example);
// In f64, for every splittable factor of the rule: two and three parts, recombined, are the whole.
// Factors with local statistics: two equal halves give the halves of the whole.
absl::Status CheckShard(const SuiteTables& tables, const OpDef& op, const Example& example);
// The row is linear in the inputs that it says; a view's output has the bytes of its input.
absl::Status CheckTraits(const SuiteTables& tables, const OpDef& op, const Example& example);
// A graph of the example prints, parses and prints the same.
absl::Status CheckText(const SuiteTables& tables, const OpDef& op, const Example& example);

// Of a row.

// Names, documentation, examples, costs and reference kernels are there; attributes with values
// that are not the default print and parse.
absl::Status CheckRow(const SuiteTables& tables, const OpDef& op);

// Of a kernel row for the tables' device; others pass.

// It agrees with the reference on every example it supports, for each of its element types and
// memory formats, with one and two threads; and it supports one example at least. The tolerance is
// 8 * eps * sqrt(FLOPs per result element), eps by the types.
absl::Status CheckKernel(const SuiteTables& tables, const KernelRow& kernel);
// Results are the same when outputs are written over the inputs that the row allows.
absl::Status CheckInPlace(const SuiteTables& tables, const KernelRow& kernel);

}  // namespace capstan
