// The suite passes right rows and finds each way of being wrong. Rows here are variants of two
// right ones: `product` (elementwise, two inputs) and `centre` (a statistic over its rows).
#include <gtest/gtest.h>

#include <cstring>

#include "engine/base/status.h"
#include "engine/ir/grad.h"
#include "engine/kernel/strided.h"
#include "ops/op_suite/suite.h"

namespace capstan {
namespace {

using Views = std::span<const TensorView>;

struct ProductAttrs {
  int64_t power = 1;

  static constexpr auto Fields() {
    return std::array{Field<&ProductAttrs::power>("power", "not used")};
  }
};
struct UndocumentedAttrs {
  int64_t power = 1;

  static constexpr auto Fields() {
    return std::array{Field<&UndocumentedAttrs::power>("power", "")};
  }
};

// ---- product: y = x * w

void GradOfProduct(GradContext& g) {
  const OpDef& product = g.b().ops().Get("product");
  if (g.needs(0)) g.Set(0, g.b().Add1(product, {}, {g.dout(0), g.in(1)}));
  if (g.needs(1)) g.Set(1, g.b().Add1(product, {}, {g.in(0), g.dout(0)}));
}

absl::Status InferProduct(OpCall& call) {
  if (call.In(0).shape != call.In(1).shape) return InvalidArgument("x and w differ in shape");
  return InferLikeInput0(call);
}

std::vector<Example> ProductExamples() {
  return {{.inputs = {FloatInput({2, 3, 4, 5}), FloatInput({2, 3, 4, 5})}},
          {.inputs = {FloatInput({7}), FloatInput({7})}},
          {.inputs = {FloatInput({7}), FloatInput({6})}, .error = "differ in shape"}};
}

void ProductKernel(KernelContext&, Views outputs, Views inputs, const AnyStruct&) {
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> x(inputs[0]), w(inputs[1]);
    const Strided<T> y(outputs[0]);
    ForEachIndex(outputs[0].type.shape, [&](const Index& i) { y(i) = x(i) * w(i); });
  });
}

constexpr OpDef kProduct = {
    .name = "product",
    .doc = "y = x * w",
    .inputs = {{"x"}, {"w"}},
    .outputs = {{"y"}},
    .attrs = &TypeOf<ProductAttrs>(),
    .infer = InferProduct,
    .grad = GradOfProduct,
    .axes = {.text = "b*, b* -> b*"},
    .cost = ElementwiseCost<1>,
    .traits = {.in_place = {{0, 0}, {0, 1}}, .linear_in = 0b1, .layout = LayoutNeed::kFollow},
    .examples = ProductExamples,
};

// ---- centre: y[n,c] = x[n,c] - mean_n x[n,c], mean[c]

absl::Status InferCentre(OpCall& call) {
  const TensorType& x = call.In(0);
  call.outputs = {{x.dtype, x.shape}, {x.dtype, {x.shape[1]}}};
  return absl::OkStatus();
}

std::vector<Example> CentreExamples() {
  return {{.inputs = {FloatInput({5, 3})}}, {.inputs = {FloatInput({4, 1})}}};
}

void CentreKernel(KernelContext&, Views outputs, Views inputs, const AnyStruct&) {
  ForFloat(inputs[0].type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Strided<const T> x(inputs[0]);
    const Strided<T> y(outputs[0]), mean(outputs[1]);
    const int64_t n = inputs[0].type.shape[0], channels = inputs[0].type.shape[1];
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += x(i, c);
      mean(c) = static_cast<T>(sum / static_cast<double>(n));
      for (int64_t i = 0; i < n; ++i) y(i, c) = x(i, c) - mean(c);
    }
  });
}

constexpr OpDef kCentre = {
    .name = "centre",
    .doc = "y = x - mean of x over its rows",
    .inputs = {{"x"}},
    .outputs = {{"y"}, {"mean"}},
    .attrs = &TypeOf<NoAttrs>(),
    .infer = InferCentre,
    .grad = kNoGrad,
    .axes = {.text = "n~ c -> n~ c, c"},
    .cost = ElementwiseCost<2>,
    .examples = CentreExamples,
};

// ---- the suite on one row or kernel

// The first complaint of all checks of a row; "" when there is none.
std::string Complaint(const OpDef& op, KernelFn reference) {
  const SuiteTables tables({&op}, {{.op = op.name, .fn = reference}});
  for (const Example& e : op.examples()) {
    for (const auto check :
         {CheckInfer, CheckReference, CheckGradient, CheckShard, CheckTraits, CheckText}) {
      const absl::Status status = check(tables, op, e);
      if (!status.ok()) return MessageOf(status);
    }
  }
  absl::Status status = CheckRow(tables, op);
  status.Update(CheckInPlace(tables, tables.kernels.rows()[0]));
  return MessageOf(status);
}
std::string ComplaintOfProduct(void (*change)(OpDef& op)) {
  OpDef op = kProduct;
  change(op);
  return Complaint(op, ProductKernel);
}

// The complaint about a fast kernel of `product`.
std::string ComplaintOfKernel(KernelRow kernel) {
  kernel.op = "product";
  kernel.impl = "fast";
  const SuiteTables tables({&kProduct}, {{.op = "product", .fn = ProductKernel}, kernel});
  absl::Status status = CheckKernel(tables, kernel);
  status.Update(CheckInPlace(tables, kernel));
  return MessageOf(status);
}

void ExpectHolds(const std::string& text, std::string_view part) {
  EXPECT_NE(text.find(part), std::string::npos)
      << "'" << text << "' does not hold '" << part << "'";
}

TEST(OpSuiteTest, RightRowsPass) {
  EXPECT_EQ(Complaint(kProduct, ProductKernel), "");
  EXPECT_EQ(Complaint(kCentre, CentreKernel), "");
  EXPECT_EQ(ComplaintOfKernel({.fn = ProductKernel}), "");
}

// ---- infer

TEST(OpSuiteTest, ErrorThatDoesNotCome) {
  ExpectHolds(ComplaintOfProduct([](OpDef& op) { op.infer = InferLikeInput0; }),
              "infers but should fail with 'differ in shape'");
}

TEST(OpSuiteTest, AnotherError) {
  ExpectHolds(ComplaintOfProduct([](OpDef& op) {
                op.infer = [](OpCall& call) {
                  if (call.In(0).shape != call.In(1).shape) return InvalidArgument("no");
                  return InferLikeInput0(call);
                };
              }),
              "does not hold 'differ in shape'");
}

// ---- gradient

TEST(OpSuiteTest, WrongGradient) {
  ExpectHolds(ComplaintOfProduct([](OpDef& op) {
                op.grad = [](GradContext& g) {
                  g.Set(0, g.b().Add1("product", {g.dout(0), g.in(0)}));
                  g.Set(1, g.b().Add1("product", {g.dout(0), g.in(0)}));
                };
              }),
              "central differences say");
}

TEST(OpSuiteTest, ForgottenGradient) {
  ExpectHolds(ComplaintOfProduct([](OpDef& op) {
                op.grad = [](GradContext& g) {
                  g.Set(0, g.b().Add1("product", {g.dout(0), g.in(1)}));
                };
              }),
              "which is not set");
}

TEST(OpSuiteTest, GradientOnlyWhenBothAreNeeded) {
  ExpectHolds(ComplaintOfProduct([](OpDef& op) {
                op.grad = [](GradContext& g) {
                  if (g.needs(0) && g.needs(1)) GradOfProduct(g);
                };
              }),
              "while the gradient of input 0 alone is needed");
}

TEST(OpSuiteTest, GradientThatSetsNothing) {
  ExpectHolds(ComplaintOfProduct([](OpDef& op) { op.grad = [](GradContext&) {}; }),
              "grad sets nothing");
}

TEST(OpSuiteTest, GradientThatCannotBeBuilt) {
  ExpectHolds(ComplaintOfProduct([](OpDef& op) {
                op.grad = [](GradContext& g) { g.Set(0, g.b().Add1("product", {g.dout(0)})); };
              }),
              "while building the gradient");
}

// ---- factor rules

TEST(OpSuiteTest, StatisticsOverAFreeFactor) {
  OpDef op = kCentre;
  op.axes.text = "n c -> n c, c";
  ExpectHolds(Complaint(op, CentreKernel), "from parts");
}

TEST(OpSuiteTest, MeanThatIsSummed) {
  OpDef op = kCentre;
  op.axes.text = "n c! -> n c!, c!";
  ExpectHolds(Complaint(op, CentreKernel), "while cutting 'n'");
}

TEST(OpSuiteTest, LocalFactorWhereThePositionMatters) {
  OpDef op = kCentre;
  op.axes.text = "n~ c -> n~ c, c";
  ExpectHolds(
      Complaint(op,
                [](KernelContext& context, Views outputs, Views inputs, const AnyStruct& attrs) {
                  CentreKernel(context, outputs, inputs, attrs);
                  ForFloat(inputs[0].type.dtype, [&](auto zero) {
                    const Strided<decltype(zero)> y(outputs[0]);
                    const Shape& s = outputs[0].type.shape;
                    for (int64_t c = 0; c < s[1]; ++c) y(s[0] - 1, c) = 0;
                  });
                }),
      "of two equal halves");
}

TEST(OpSuiteTest, RuleThatDoesNotFit) {
  ExpectHolds(ComplaintOfProduct([](OpDef& op) { op.axes.text = "b*, c -> b*"; }), "the rule has");
}

TEST(OpSuiteTest, RuleThatContradictsInfer) {
  OpDef op = kCentre;
  op.axes.text = "n~ c -> n~ c, d";
  ExpectHolds(Complaint(op, CentreKernel), "by the rule");
}

TEST(OpSuiteTest, RandomNumbersByPlaceInThePart) {
  OpDef op = kProduct;
  op.grad = kNoGrad;
  op.traits.random = true;
  op.traits.linear_in = 0;
  ExpectHolds(
      Complaint(op,
                [](KernelContext& context, Views outputs, Views inputs, const AnyStruct& attrs) {
                  ProductKernel(context, outputs, inputs, attrs);
                  ForFloat(inputs[0].type.dtype, [&](auto zero) {
                    using T = decltype(zero);
                    const Strided<T> y(outputs[0]);
                    uint64_t draw = 0;
                    ForEachIndex(outputs[0].type.shape, [&](const Index& i) {
                      y(i) = static_cast<T>(context.random.UniformDouble(draw++));
                    });
                  });
                }),
      "from parts");
}

// ---- traits, row

TEST(OpSuiteTest, NotLinear) {
  ExpectHolds(ComplaintOfProduct([](OpDef& op) { op.traits.linear_in = 0b11; }),
              "of a linear combination");
}

TEST(OpSuiteTest, NoView) {
  ExpectHolds(ComplaintOfProduct([](OpDef& op) { op.traits.view = true; }), "is a view");
}

TEST(OpSuiteTest, MissingParts) {
  ExpectHolds(ComplaintOfProduct([](OpDef& op) { op.doc = ""; }), "no doc");
  ExpectHolds(ComplaintOfProduct([](OpDef& op) { op.inputs = {{"x"}, {""}}; }), "has no name");
  ExpectHolds(ComplaintOfProduct([](OpDef& op) { op.attrs = &TypeOf<UndocumentedAttrs>(); }),
              "attribute 'power' has no doc");
  ExpectHolds(ComplaintOfProduct([](OpDef& op) { op.cost = [](const OpCall&) { return Cost{}; }; }),
              "0 bytes");
  ExpectHolds(ComplaintOfProduct([](OpDef& op) {
                op.examples = [] { return std::vector<Example>{ProductExamples()[0]}; };
              }),
              "1 examples");
}

// ---- kernels

// Changes one element of `product`'s result in the way of `change`.
template <typename F>
void ProductThen(Views outputs, Views inputs, F&& change) {
  KernelContext context;
  ProductKernel(context, outputs, inputs, {});
  ForFloat(outputs[0].type.dtype, [&](auto zero) {
    change(static_cast<decltype(zero)*>(outputs[0].data), outputs[0].type.count());
  });
}

TEST(OpSuiteTest, UnwrittenElement) {
  const KernelFn leave_last = [](KernelContext&, Views outputs, Views inputs, const AnyStruct&) {
    ForFloat(outputs[0].type.dtype, [&](auto zero) {
      const auto* x = static_cast<const decltype(zero)*>(inputs[0].data);
      const auto* w = static_cast<const decltype(zero)*>(inputs[1].data);
      auto* y = static_cast<decltype(zero)*>(outputs[0].data);
      for (int64_t i = 0; i + 1 < outputs[0].type.count(); ++i) y[i] = x[i] * w[i];
    });
  };
  ExpectHolds(Complaint(kProduct, leave_last), "is not written");
  ExpectHolds(ComplaintOfKernel({.fn = leave_last}), "is not written");
}

TEST(OpSuiteTest, NotFinite) {
  ExpectHolds(Complaint(kProduct,
                        [](KernelContext&, Views outputs, Views inputs, const AnyStruct&) {
                          ProductThen(outputs, inputs, [](auto* y, int64_t) { y[0] /= 0; });
                        }),
              "not finite");
}

TEST(OpSuiteTest, WorkspaceThatWasNotSet) {
  ExpectHolds(ComplaintOfKernel(
                  {.workspace_bytes = [](const OpCall&, const void*) { return int64_t{8}; },
                   .fn =
                       [](KernelContext& context, Views outputs, Views inputs, const AnyStruct&) {
                         const auto byte = *static_cast<const unsigned char*>(context.workspace);
                         ProductThen(outputs, inputs, [&](auto* y, int64_t) { y[0] += byte; });
                       }}),
              "made from memory that was not");
}

TEST(OpSuiteTest, WritesBehindTheEnd) {
  ExpectHolds(
      ComplaintOfKernel({.fn =
                             [](KernelContext&, Views outputs, Views inputs, const AnyStruct&) {
                               ProductThen(outputs, inputs, [](auto* y, int64_t n) { y[n] = 0; });
                             }}),
      "writes behind output 0");
}

TEST(OpSuiteTest, ChangedInput) {
  ExpectHolds(
      ComplaintOfKernel(
          {.fn =
               [](KernelContext& context, Views outputs, Views inputs, const AnyStruct& attrs) {
                 ProductKernel(context, outputs, inputs, attrs);
                 ProductThen(inputs.subspan(0, 1), inputs, [](auto*, int64_t) {});
               }}),
      "changes its input 0");
}

TEST(OpSuiteTest, WrongFastKernel) {
  ExpectHolds(
      ComplaintOfKernel({.fn =
                             [](KernelContext&, Views outputs, Views inputs, const AnyStruct&) {
                               ProductThen(outputs, inputs, [](auto* y, int64_t n) {
                                 y[n - 1] += decltype(*y + 0)(1e-4);
                               });
                             }}),
      "but should be");
}

TEST(OpSuiteTest, WrongWithTwoThreads) {
  ExpectHolds(ComplaintOfKernel(
                  {.fn =
                       [](KernelContext& context, Views outputs, Views inputs, const AnyStruct&) {
                         ProductThen(outputs, inputs, [&](auto* y, int64_t) {
                           y[0] += context.threads > 1 ? 1 : 0;
                         });
                       }}),
              "while using 2 threads");
}

TEST(OpSuiteTest, WrongInChannelsLastOnly) {
  ExpectHolds(
      ComplaintOfKernel({.fn =
                             [](KernelContext&, Views outputs, Views inputs, const AnyStruct&) {
                               const bool image =
                                   outputs[0].type.format == MemoryFormat::kChannelsLast;
                               ProductThen(outputs, inputs,
                                           [&](auto* y, int64_t) { y[0] += image ? 1 : 0; });
                             }}),
      "but should be");
}

TEST(OpSuiteTest, KernelThatServesNothing) {
  ExpectHolds(
      ComplaintOfKernel({.supports = [](const OpCall&) { return false; }, .fn = ProductKernel}),
      "never tested");
}

TEST(OpSuiteTest, NotSafeInPlace) {
  ExpectHolds(
      ComplaintOfKernel(
          {.fn =
               [](KernelContext& context, Views outputs, Views inputs, const AnyStruct& attrs) {
                 std::memset(outputs[0].data, 0, static_cast<size_t>(outputs[0].type.bytes()));
                 ProductKernel(context, outputs, inputs, attrs);
               }}),
      "while writing output 0 over input");
}

TEST(OpSuiteTest, FailedLibraryCall) {
  ExpectHolds(ComplaintOfKernel({.fn =
                                     [](KernelContext& context, Views outputs, Views inputs,
                                        const AnyStruct& attrs) {
                                       ProductKernel(context, outputs, inputs, attrs);
                                       context.status = absl::InternalError("library says no");
                                     }}),
              "library says no");
}

}  // namespace
}  // namespace capstan
