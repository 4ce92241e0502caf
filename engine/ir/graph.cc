#include "engine/ir/graph.h"

#include <algorithm>
#include <queue>

#include "engine/base/random.h"
#include "engine/ir/text.h"

namespace capstan {

ValueId Graph::AddInput(GraphInput input, const TensorType& type) {
  const auto id = static_cast<ValueId>(values_.size());
  values_.push_back({type, kNoNode, static_cast<int>(inputs_.size())});
  input.value = id;
  inputs_.push_back(std::move(input));
  return id;
}

NodeId Graph::AddNode(const OpDef& op, AnyStruct attrs, std::vector<ValueId> inputs,
                      const std::vector<TensorType>& output_types, std::string scope,
                      std::string origin) {
  const auto id = static_cast<NodeId>(nodes_.size());
  Node node{&op, std::move(attrs), std::move(inputs), {}, std::move(scope), std::move(origin)};
  for (size_t i = 0; i < output_types.size(); ++i) {
    node.outputs.push_back(static_cast<ValueId>(values_.size()));
    values_.push_back({output_types[i], id, static_cast<int>(i)});
  }
  nodes_.push_back(std::move(node));
  return id;
}

void Graph::AddOutput(std::string output_name, ValueId value) {
  CHECK_EQ(FindOutput(output_name), kNoValue) << "output " << output_name;
  outputs_.push_back({std::move(output_name), value});
}

const GraphInput* Graph::FindInput(std::string_view input_name) const {
  for (const GraphInput& in : inputs_) {
    if (in.name == input_name) return &in;
  }
  return nullptr;
}

ValueId Graph::FindOutput(std::string_view output_name) const {
  for (const GraphOutput& out : outputs_) {
    if (out.name == output_name) return out.value;
  }
  return kNoValue;
}

const GraphInput* Graph::InputOf(ValueId id) const {
  const Value& v = value(id);
  return v.producer == kNoNode ? &inputs_[static_cast<size_t>(v.output)] : nullptr;
}

const Node* Graph::ProducerOf(ValueId id) const {
  const Value& v = value(id);
  return v.producer == kNoNode ? nullptr : &node(v.producer);
}

std::vector<int32_t> Graph::UseCounts() const {
  std::vector<int32_t> counts(values_.size(), 0);
  const auto use = [&](ValueId v) {
    if (v != kNoValue) ++counts[static_cast<size_t>(v)];
  };
  for (const Node& n : nodes_) {
    if (n.op == nullptr) continue;
    for (const ValueId v : n.inputs) use(v);
  }
  for (const StateUpdate& u : updates_) use(u.value);
  for (const GraphOutput& o : outputs_) use(o.value);
  return counts;
}

std::vector<std::vector<NodeId>> Graph::Users() const {
  std::vector<std::vector<NodeId>> users(values_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].op == nullptr) continue;
    for (const ValueId v : nodes_[i].inputs) {
      if (v != kNoValue) users[static_cast<size_t>(v)].push_back(static_cast<NodeId>(i));
    }
  }
  return users;
}

void Graph::ReplaceAllUses(ValueId from, ValueId to) {
  for (Node& n : nodes_) {
    std::replace(n.inputs.begin(), n.inputs.end(), from, to);
  }
  for (StateUpdate& u : updates_) {
    if (u.value == from) u.value = to;
  }
  for (GraphOutput& o : outputs_) {
    if (o.value == from) o.value = to;
  }
}

void Graph::Erase(NodeId id) {
  Node& n = mutable_node(id);
  n.op = nullptr;
  n.inputs.clear();
}

void Graph::Compact() {
  // Stable topological order: among the nodes that are ready, the one that came first.
  std::vector<int32_t> missing(nodes_.size(), 0);
  std::vector<std::vector<NodeId>> users = Users();
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
  size_t alive = 0;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].op == nullptr) continue;
    ++alive;
    for (const ValueId v : nodes_[i].inputs) {
      if (v != kNoValue && value(v).producer != kNoNode) ++missing[i];
    }
    if (missing[i] == 0) ready.push(static_cast<NodeId>(i));
  }
  std::vector<NodeId> order;
  while (!ready.empty()) {
    const NodeId id = ready.top();
    ready.pop();
    order.push_back(id);
    for (const ValueId v : nodes_[static_cast<size_t>(id)].outputs) {
      for (const NodeId user : users[static_cast<size_t>(v)]) {
        if (--missing[static_cast<size_t>(user)] == 0) ready.push(user);
      }
    }
  }
  CHECK_EQ(order.size(), alive) << "the graph has a cycle";

  std::vector<ValueId> renumbered(values_.size(), kNoValue);
  std::vector<Value> values;
  std::vector<Node> nodes;
  const auto keep = [&](ValueId old, Value v) {
    renumbered[static_cast<size_t>(old)] = static_cast<ValueId>(values.size());
    values.push_back(std::move(v));
  };
  for (const GraphInput& in : inputs_) keep(in.value, value(in.value));
  for (const NodeId id : order) {
    Node n = std::move(nodes_[static_cast<size_t>(id)]);
    for (ValueId& v : n.inputs) {
      if (v != kNoValue) v = renumbered[static_cast<size_t>(v)];
    }
    for (ValueId& v : n.outputs) {
      Value made = value(v);
      made.producer = static_cast<NodeId>(nodes.size());
      keep(v, std::move(made));
      v = renumbered[static_cast<size_t>(v)];
    }
    nodes.push_back(std::move(n));
  }
  const auto renumber = [&](ValueId& v) { v = renumbered[static_cast<size_t>(v)]; };
  for (GraphInput& in : inputs_) renumber(in.value);
  for (StateUpdate& u : updates_) {
    renumber(u.state);
    renumber(u.value);
  }
  for (GraphOutput& o : outputs_) renumber(o.value);
  nodes_ = std::move(nodes);
  values_ = std::move(values);
}

uint64_t Graph::Hash() const { return HashText(PrintGraph(*this)); }

OpCall CallOf(const Graph& graph, const Node& node) {
  OpCall call{.op = node.op, .attrs = node.attrs};
  for (const ValueId v : node.inputs) {
    call.inputs.push_back(v == kNoValue ? std::nullopt : std::optional(graph.type(v)));
  }
  for (const ValueId v : node.outputs) call.outputs.push_back(graph.type(v));
  return call;
}

}  // namespace capstan
