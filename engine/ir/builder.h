// Builder: how models, gradients and passes write a graph. Types are inferred as nodes are added;
// shapes are never written twice.
//
// The first error sticks: later calls do nothing and return kNoValue, so a model reads like its
// paper and asks `status()` once, at the end. Single-threaded.
//
//   Builder b(&graph, &ops, Mode::kTrain);
//   ValueId x = b.Data("image", {DType::kF32, {8, 3, 32, 32}});
//   {
//     auto scope = b.Enter("conv1");                       // names parameters and random streams
//     ValueId w = b.Param("weight", {16, 3, 3, 3}, Role::kWeight, Normal(0.1));
//     x = Conv2d(b, x, w, {.padding = {1, 1}});            // parameter "conv1.weight"
//   }
//   RETURN_IF_ERROR(b.status());
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "engine/ir/graph.h"

namespace capstan {

// Training and evaluation build different graphs from the same model function.
enum class Mode : uint8_t { kTrain, kEvaluate };

class Builder {
 public:
  Builder(Graph* graph, const OpTable* ops, Mode mode) : graph_(graph), ops_(ops), mode_(mode) {}
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  Graph& graph() { return *graph_; }
  const OpTable& ops() const { return *ops_; }
  bool training() const { return mode_ == Mode::kTrain; }
  // The element type of parameters and activations of the model.
  DType dtype() const { return dtype_; }
  void set_dtype(DType dtype) { dtype_ = dtype; }
  const absl::Status& status() const { return status_; }
  // Keeps the first error, with the scope as its frame.
  void Fail(absl::Status status);

  // A named part of the model, until the object goes.
  class ScopeGuard {
   public:
    explicit ScopeGuard(Builder* b, size_t length) : b_(b), length_(length) {}
    ~ScopeGuard() { b_->scope_.resize(length_); }
    ScopeGuard(const ScopeGuard&) = delete;
    ScopeGuard& operator=(const ScopeGuard&) = delete;

   private:
    Builder* b_;
    size_t length_;
  };
  [[nodiscard]] ScopeGuard Enter(std::string_view name);
  [[nodiscard]] ScopeGuard Enter(int64_t index) { return Enter(std::to_string(index)); }
  const std::string& scope() const { return scope_; }
  // For passes and gradients, which write on behalf of another node.
  void SetScope(std::string scope) { scope_ = std::move(scope); }
  void SetOrigin(std::string origin) { origin_ = std::move(origin); }
  // A name for a random stream: the scope, made unique in this graph.
  std::string NewStream();

  ValueId Data(std::string_view name, const TensorType& type);
  // Named by the scope: scope "layer1/0/bn1" and "weight" give "layer1.0.bn1.weight".
  ValueId Param(std::string_view name, Shape shape, Role role, Init init);
  ValueId State(std::string_view name, const TensorType& type, Init init);
  // A scalar or tensor filled with one value.
  ValueId Full(Shape shape, double value, DType dtype);

  // Adds a node; the ids of its outputs (all kNoValue after an error).
  std::vector<ValueId> Add(const OpDef& op, AnyStruct attrs, std::vector<ValueId> inputs);
  // The same for rows with one output.
  ValueId Add1(const OpDef& op, AnyStruct attrs, std::vector<ValueId> inputs);
  // By name, for passes and for gradients that use rows of other folders.
  ValueId Add1(std::string_view op, std::vector<ValueId> inputs, AnyStruct attrs = {});

  const TensorType& type(ValueId id) const { return graph_->type(id); }
  const Shape& shape(ValueId id) const { return type(id).shape; }
  // False after an error: a model must not look at the shape of a value then.
  bool ok() const { return status_.ok(); }

 private:
  std::string QualifiedName(std::string_view name) const;

  Graph* graph_;
  const OpTable* ops_;
  Mode mode_;
  DType dtype_ = DType::kF32;
  std::string scope_;
  std::string origin_;
  std::set<std::string, std::less<>> names_;
  std::set<std::string, std::less<>> streams_;
  absl::Status status_;
};

}  // namespace capstan
