// GradContext: what a row's grad function sees of its node, and where it puts gradients.
//
//   void ReluGrad(GradContext& g) {
//     g.Set(0, g.b().Add1(kReluGrad, {}, {g.out(0), g.dout(0)}));
//   }
#pragma once

#include <vector>

#include "engine/ir/builder.h"

namespace capstan {

class GradContext {
 public:
  // `output_grads`: one per output, kNoValue where no gradient arrives. `needed`: one per input.
  GradContext(Builder* builder, NodeId node, std::vector<ValueId> output_grads,
              std::vector<bool> needed)
      : builder_(builder),
        node_(node),
        output_grads_(std::move(output_grads)),
        needed_(std::move(needed)),
        grads_(needed_.size(), kNoValue) {}

  Builder& b() { return *builder_; }
  const AnyStruct& attrs() const { return node().attrs; }
  template <typename T>
  const T& Attrs() const {
    return attrs().As<T>();
  }

  int inputs() const { return static_cast<int>(node().inputs.size()); }
  // kNoValue where an optional input is absent.
  ValueId in(int i) const {
    return i < inputs() ? node().inputs[static_cast<size_t>(i)] : kNoValue;
  }
  ValueId out(int i) const { return node().outputs[static_cast<size_t>(i)]; }
  // The gradient of output `i`; kNoValue where none arrives (it is zero then).
  ValueId dout(int i) const { return output_grads_[static_cast<size_t>(i)]; }
  // Whether somebody wants the gradient of input `i`.
  bool needs(int i) const { return i < inputs() && needed_[static_cast<size_t>(i)]; }
  // The gradient of input `i`, of that input's shape; once per input.
  void Set(int i, ValueId grad) { grads_[static_cast<size_t>(i)] = grad; }

  const std::vector<ValueId>& grads() const { return grads_; }

 private:
  // Looked up anew each time: adding nodes moves them.
  const Node& node() const { return builder_->graph().node(node_); }

  Builder* builder_;
  NodeId node_;
  std::vector<ValueId> output_grads_;
  std::vector<bool> needed_;
  std::vector<ValueId> grads_;
};

}  // namespace capstan
