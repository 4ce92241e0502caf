// Graph: operators in static single assignment form. One class for the logical, differentiated and
// sharded graph; `Stage` tells which invariants hold (verify.h).
//
// Invariants: ids are indices; nodes are in an order in which every value is made before it is
// used; a value is made by one node or is an input. Not thread-safe; a const graph may be shared.
//
//   %0 = data image : f32[8,3,32,32]
//   %1 = param conv1.weight : f32[16,3,3,3] role=weight init={kind=normal, value=0.1}
//   %2 = conv2d(%0, %1){padding=[1, 1]} : f32[8,16,32,32] @conv1
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/reflect.h"
#include "engine/ir/op_def.h"
#include "engine/tensor/tensor_type.h"

namespace capstan {

using ValueId = int32_t;
using NodeId = int32_t;
inline constexpr ValueId kNoValue = -1;  // an absent optional input
inline constexpr NodeId kNoNode = -1;    // the producer of a graph input

enum class InputKind : uint8_t {
  kData,   // given anew at every run: a batch, a learning rate
  kParam,  // a trained parameter; persistent
  kState,  // persistent, not trained: running statistics, gradients, moments
};

// What a parameter is to the optimizer (weight decay goes by role, not by name).
enum class Role : uint8_t { kWeight, kBias, kNorm, kEmbedding };
constexpr std::array<const char*, 4> EnumNamesOf(Role) {
  return {"weight", "bias", "norm", "embedding"};
}

// First values of a parameter or state.
enum class InitKind : uint8_t { kConstant, kNormal, kUniform };
constexpr std::array<const char*, 3> EnumNamesOf(InitKind) {
  return {"constant", "normal", "uniform"};
}
struct Init {
  InitKind kind = InitKind::kConstant;
  double value = 0;  // the constant; the standard deviation; half the width around 0

  static constexpr auto Fields() {
    return std::array{Field<&Init::kind>("kind", "the distribution"),
                      Field<&Init::value>("value", "constant, standard deviation or half width")};
  }
};
inline Init Constant(double value) { return {InitKind::kConstant, value}; }
inline Init Normal(double stddev) { return {InitKind::kNormal, stddev}; }
inline Init Uniform(double half_width) { return {InitKind::kUniform, half_width}; }

struct GraphInput {
  InputKind kind = InputKind::kData;
  std::string name;  // "image", "layer1.0.conv1.weight"
  ValueId value = kNoValue;
  Role role = Role::kWeight;
  Init init;
};

struct Value {
  TensorType type;
  NodeId producer = kNoNode;
  int output = 0;  // which output of the producer, or which graph input
};

struct Node {
  const OpDef* op = nullptr;  // null: erased, dropped by Compact
  AnyStruct attrs;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::string scope;   // parameter path: "layer1/0/conv1"
  std::string origin;  // the pass that made it; "" for the model
};

// At the end of a run of the graph, the persistent input `state` holds `value`.
struct StateUpdate {
  ValueId state = kNoValue;
  ValueId value = kNoValue;
};

struct GraphOutput {
  std::string name;
  ValueId value = kNoValue;
};

class Graph {
 public:
  std::string name;

  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Value>& values() const { return values_; }
  const std::vector<GraphInput>& inputs() const { return inputs_; }
  const std::vector<StateUpdate>& updates() const { return updates_; }
  const std::vector<GraphOutput>& outputs() const { return outputs_; }

  const Node& node(NodeId id) const { return nodes_[CheckedNode(id)]; }
  Node& mutable_node(NodeId id) { return nodes_[CheckedNode(id)]; }
  const Value& value(ValueId id) const { return values_[CheckedValue(id)]; }
  const TensorType& type(ValueId id) const { return value(id).type; }
  void SetFormat(ValueId id, MemoryFormat format) {
    values_[CheckedValue(id)].type.format = format;
  }

  ValueId AddInput(GraphInput input, const TensorType& type);
  // Adds a node with outputs of the given types.
  NodeId AddNode(const OpDef& op, AnyStruct attrs, std::vector<ValueId> inputs,
                 const std::vector<TensorType>& output_types, std::string scope,
                 std::string origin);
  void AddUpdate(ValueId state, ValueId value) { updates_.push_back({state, value}); }
  void AddOutput(std::string output_name, ValueId value);
  std::vector<GraphOutput>& mutable_outputs() { return outputs_; }
  std::vector<StateUpdate>& mutable_updates() { return updates_; }

  // The input, or null.
  const GraphInput* FindInput(std::string_view input_name) const;
  // The value of an output, or kNoValue.
  ValueId FindOutput(std::string_view output_name) const;
  // The input that a value is, or null.
  const GraphInput* InputOf(ValueId id) const;
  const Node* ProducerOf(ValueId id) const;

  // Number of uses of every value by nodes, updates and outputs.
  std::vector<int32_t> UseCounts() const;
  // Nodes that read each value, in order; a node that reads it twice is there twice.
  std::vector<std::vector<NodeId>> Users() const;

  // Everything that reads `from` reads `to` instead.
  void ReplaceAllUses(ValueId from, ValueId to);
  // The node and its outputs; nothing may use them any more.
  void Erase(NodeId id);
  // Drops erased nodes and unused values, orders nodes so that values are made before use (stable)
  // and renumbers. Ids held by the caller become invalid.
  void Compact();

  // A digest of everything the text form shows.
  uint64_t Hash() const;

 private:
  size_t CheckedNode(NodeId id) const {
    CHECK(id >= 0 && id < static_cast<NodeId>(nodes_.size())) << "node " << id;
    return static_cast<size_t>(id);
  }
  size_t CheckedValue(ValueId id) const {
    CHECK(id >= 0 && id < static_cast<ValueId>(values_.size())) << "value " << id;
    return static_cast<size_t>(id);
  }

  std::vector<Node> nodes_;
  std::vector<Value> values_;
  std::vector<GraphInput> inputs_;
  std::vector<StateUpdate> updates_;
  std::vector<GraphOutput> outputs_;
};

// The types of a node's arguments.
OpCall CallOf(const Graph& graph, const Node& node);

}  // namespace capstan
