#include <fmt/format.h>

#include <cstring>

#include "engine/base/status.h"
#include "ops/op_suite/drawn_call.h"
#include "ops/op_suite/host_values.h"
#include "ops/op_suite/run_kernel.h"
#include "ops/op_suite/suite.h"

namespace capstan {
namespace {

// f(2 u - v / 2) = 2 f(u) - f(v) / 2, where u and v differ in the linear inputs only.
absl::Status CheckLinear(const SuiteTables& tables, const DrawnCall& drawn) {
  const double a = 2, b = -0.5;
  std::vector<TensorView> u = ViewsOf(drawn.inputs), v = u, mixed = u;
  std::vector<HostTensor> memory;
  for (size_t i = 0; i < u.size() && i < 32; ++i) {
    if ((drawn.call.op->traits.linear_in >> i & 1u) == 0 || u[i].data == nullptr) continue;
    const std::vector<double> x = ValuesOf(u[i]);
    const std::vector<double> y = NormalValues(u[i].type.count(), fmt::format("linear {}", i));
    std::vector<double> sum(x.size());
    for (size_t e = 0; e < x.size(); ++e) sum[e] = a * x[e] + b * y[e];
    memory.emplace_back(u[i].type);
    SetValues(memory.back().view(), y);
    v[i] = memory.back().view();
    memory.emplace_back(u[i].type);
    SetValues(memory.back().view(), sum);
    mixed[i] = memory.back().view();
  }
  ASSIGN_OR_RETURN(const std::vector<HostTensor> of_u, RunReference(tables, drawn.call, u));
  ASSIGN_OR_RETURN(const std::vector<HostTensor> of_v, RunReference(tables, drawn.call, v));
  ASSIGN_OR_RETURN(const std::vector<HostTensor> of_mixed, RunReference(tables, drawn.call, mixed));
  for (size_t o = 0; o < of_u.size(); ++o) {
    if (!IsFloat(of_u[o].type().dtype)) continue;
    std::vector<double> want = ValuesOf(of_u[o].view());
    const std::vector<double> other = ValuesOf(of_v[o].view());
    for (size_t e = 0; e < want.size(); ++e) want[e] = a * want[e] + b * other[e];
    HostTensor expected(of_u[o].type());
    SetValues(expected.view(), want);
    RETURN_IF_ERROR(CompareValues(fmt::format("output {} of a linear combination", o),
                                  of_mixed[o].view(), expected.view(), 1e-9));
  }
  return absl::OkStatus();
}

absl::Status CheckView(const SuiteTables& tables, const DrawnCall& drawn) {
  const TensorView in = drawn.inputs[0].view();
  ASSIGN_OR_RETURN(const std::vector<HostTensor> outputs,
                   RunReference(tables, drawn.call, ViewsOf(drawn.inputs)));
  const HostTensor& out = outputs[0];
  if (out.type().dtype != in.type.dtype || out.type().count() != in.type.count() ||
      std::memcmp(out.data(), in.data, static_cast<size_t>(in.type.bytes())) != 0) {
    return InvalidArgument("the row is a view, but output 0 is not input 0 byte by byte");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTraits(const SuiteTables& tables, const OpDef& op, const Example& example) {
  if (example.error != nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(const DrawnCall drawn, DrawCall(tables, op, example));
  if (op.traits.view) RETURN_IF_ERROR(CheckView(tables, drawn));
  // Integers in a float's place (cast) are no matter of linearity.
  if (op.traits.linear_in == 0 || !IsFloat(drawn.call.MainDType())) return absl::OkStatus();
  return CheckLinear(tables, drawn);
}

}  // namespace capstan
