// OpDef: one operator as one row of constant data. Everything the compiler knows about an operator
// is here; kernels are rows of their own (engine/kernel/kernel_row.h).
//
// Rows are `constinit const OpDef` objects with designated initialisers, declared `extern const` in
// the operator's header. Rows are never copied; a pointer to the row is the operator.
//
//   constinit const OpDef kRelu = {
//       .name = "relu",
//       .doc = "y = max(x, 0)",
//       .inputs = {{"x"}},
//       .outputs = {{"y"}},
//       .attrs = &TypeOf<NoAttrs>(),
//       .infer = InferLikeInput0,
//       .grad = ReluGrad,
//       .axes = {.text = "b* -> b*"},
//       .cost = ElementwiseCost<1>,
//       .traits = {.in_place = {{0, 0}}, .layout = LayoutNeed::kFollow},
//       .examples = ReluExamples,
//   };
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/reflect.h"
#include "engine/base/status.h"
#include "engine/tensor/tensor_type.h"

namespace capstan {

struct OpDef;
class Graph;
class GradContext;

// Which element types an argument may have. kOpaque arguments hold bytes that only the kernel that
// wrote them can read (DType::kOpaque).
enum class DTypeClass : uint8_t { kFloat, kInteger, kAny, kOpaque };

// How the parts of an output combine when a summed-over factor is split.
enum class Combine : uint8_t { kSum, kMax, kMin, kOr };

struct ArgDef {
  const char* name = "";
  DTypeClass dtypes = DTypeClass::kFloat;
  bool optional = false;            // inputs only
  bool variadic = false;            // last input only: zero or more
  Combine combine = Combine::kSum;  // outputs only
};

// A constant list of up to N elements.
template <typename T, int N>
class ConstList {
 public:
  constexpr ConstList() = default;
  constexpr ConstList(std::initializer_list<T> items) {
    for (const T& item : items) items_[static_cast<size_t>(size_++)] = item;
  }
  constexpr int size() const { return size_; }
  constexpr const T& operator[](int i) const { return items_[static_cast<size_t>(i)]; }
  constexpr const T* begin() const { return items_.data(); }
  constexpr const T* end() const { return items_.data() + size_; }

 private:
  std::array<T, N> items_{};
  int size_ = 0;
};
using ArgList = ConstList<ArgDef, 12>;

// One use of an operator with its argument types, as seen by infer, axes, cost and kernel rows.
struct OpCall {
  const OpDef* op = nullptr;
  AnyStruct attrs;
  // An absent optional input has no type.
  std::vector<std::optional<TensorType>> inputs;
  std::vector<TensorType> outputs;  // filled by infer

  template <typename T>
  const T& Attrs() const {
    return attrs.As<T>();
  }
  bool Has(int i) const {
    return i < static_cast<int>(inputs.size()) && inputs[static_cast<size_t>(i)].has_value();
  }
  const TensorType& In(int i) const {
    CHECK(Has(i)) << "input " << i << " is absent";
    return *inputs[static_cast<size_t>(i)];
  }
  const TensorType& Out(int i) const { return outputs[static_cast<size_t>(i)]; }
  // The type that selects a kernel: that of the first float input, else of the first output, else
  // of the first input.
  DType MainDType() const;
  // "conv2d(f32[8,3,32,32], f32[16,3,3,3]){stride=[2, 2]}"
  std::string ToString() const;
};

// Fills call.outputs from call.inputs and call.attrs. Checks of counts, dtype classes and presence
// are done before. An error says which sizes do not fit and why; the caller adds the operator.
using InferFn = absl::Status (*)(OpCall& call);

// Adds the backward nodes to the graph; see grad.h.
using GradFn = void (*)(GradContext& g);
namespace internal {
void NoGrad(GradContext& g);
}  // namespace internal
// For operators through which no gradient flows (gradients, optimizers, integer results).
inline constexpr GradFn kNoGrad = &internal::NoGrad;

// The factor rule: a constant text or a pure function of the call. See engine/shard/factor_rule.h
// for the language.
struct AxesRule {
  const char* text = nullptr;
  std::string (*fn)(const OpCall& call) = nullptr;
  std::string For(const OpCall& call) const { return fn != nullptr ? fn(call) : text; }
};
// For rules made by a function: one argument's dimensions, "n c h!"; "." for a scalar.
std::string JoinDims(std::span<const std::string> dims);

struct Cost {
  double flops = 0;
  double bytes = 0;  // read and written
};
using CostFn = Cost (*)(const OpCall& call);

// What automatic mixed precision does with the row.
enum class Precision : uint8_t {
  kFollow,     // computes in the type that its inputs have
  kCompute16,  // gains from 16-bit inputs (matrix units)
  kKeep32,     // needs 32-bit inputs
};

// What the row wants of the memory order of its 4-d arguments.
enum class LayoutNeed : uint8_t {
  kPlain,   // row-major
  kImage,   // channels_last, activations and filters alike
  kFollow,  // whatever, but all 4-d arguments alike (elementwise rows)
};

struct InPlacePair {
  int output = 0;
  int input = 0;
};

struct Traits {
  Precision precision = Precision::kFollow;
  // Outputs that may be written over an input that nobody needs afterwards.
  ConstList<InPlacePair, 4> in_place = {};
  bool view = false;         // output 0 is input 0 under another shape: no work, no memory
  bool random = false;       // draws numbers by global index; attributes name its stream
  bool side_effect = false;  // must stay though nobody reads it
  uint32_t linear_in = 0;    // bit i: the outputs are jointly linear in these inputs
  LayoutNeed layout = LayoutNeed::kPlain;
  // Bit i: input i may have a 16-bit type while the other float inputs (parameters, statistics)
  // stay f32. 0: all float inputs have one type.
  uint32_t narrow_in = 0;
};

// A local fusion that ends in the row that lists it: `apply` looks at a node of operator `root`
// and, where the pattern fits, replaces it in the graph and returns true.
struct Rewrite {
  const char* name = "";
  const char* root = "";
  bool (*apply)(Graph& graph, int32_t node) = nullptr;
};
using RewriteList = ConstList<Rewrite, 4>;

// How a test input is drawn.
enum class Draw : uint8_t {
  kNormal,        // standard normal
  kPositive,      // uniform in [0.5, 1.5)
  kAwayFromZero,  // +-[0.2, 1.2): no kink of relu near
  kDistinct,      // all different by 1/count at least: no ties for max
  kIndex,         // integers in [0, limit)
  kValues,        // `values`, in logical order
  kForward,       // an output of another operator applied to inputs of this example
};

struct ExampleInput {
  TensorType type;
  Draw draw = Draw::kNormal;
  int64_t limit = 0;
  std::vector<double> values;
  bool absent = false;
  // kForward: output `forward_output` of (*forward)(inputs `forward_inputs` of this example).
  const OpDef* forward = nullptr;
  AnyStruct forward_attrs;
  std::vector<int> forward_inputs;
  int forward_output = 0;
};

// A small set of inputs; all generic tests run on it. Float types are given as f32 and replaced by
// each registered type. `error` set: infer must fail with a message that holds this text.
struct Example {
  AnyStruct attrs;
  std::vector<ExampleInput> inputs;
  const char* error = nullptr;
  // Inputs whose gradient is compared with finite differences; empty: every float input.
  std::vector<int> differentiate;
};

struct OpDef {
  const char* name;
  const char* doc;  // one sentence and the formula
  ArgList inputs;
  ArgList outputs;
  const TypeInfo* attrs;
  InferFn infer;
  GradFn grad;
  AxesRule axes;
  CostFn cost;
  Traits traits = {};
  RewriteList rewrites = {};
  std::vector<Example> (*examples)();
};

// Operators by name: what the tool hands to the engine.
class OpTable {
 public:
  OpTable() = default;
  explicit OpTable(std::span<const OpDef* const> rows);

  // Null when there is none.
  const OpDef* Find(std::string_view name) const;
  // For the passes' own operators: CHECKs that it exists.
  const OpDef& Get(std::string_view name) const;
  const std::vector<const OpDef*>& rows() const { return rows_; }
  std::vector<std::string> Names() const;

 private:
  std::vector<const OpDef*> rows_;  // sorted by name
  std::map<std::string, const OpDef*, std::less<>> by_name_;
};

// Attributes of a row from their text, "{axis=1}"; for code that knows a row by name only. CHECKs
// that the text is right.
AnyStruct AttrsFromText(const OpDef& op, std::string_view text);

// Checks the inputs against the row (count, presence, dtype class, one float type) and infers the
// outputs. Errors begin with the operator's name and list the argument types.
absl::Status InferCall(OpCall& call);

// infer for rows whose outputs all have the type of input 0.
absl::Status InferLikeInput0(OpCall& call);

// Bytes of all arguments, each touched once.
double ArgumentBytes(const OpCall& call);

// `kFlops` per element of the first output, every argument touched once.
template <int kFlops>
Cost ElementwiseCost(const OpCall& call) {
  return {static_cast<double>(kFlops) * static_cast<double>(call.Out(0).count()),
          ArgumentBytes(call)};
}

// An input of the given f32 shape for examples.
ExampleInput FloatInput(Shape shape, Draw draw = Draw::kNormal);
ExampleInput IndexInput(Shape shape, int64_t limit, DType dtype = DType::kI64);
ExampleInput ValuesInput(TensorType type, std::vector<double> values);
ExampleInput AbsentInput();
ExampleInput ForwardInput(const OpDef& op, AnyStruct attrs, std::vector<int> inputs, int output);

}  // namespace capstan
