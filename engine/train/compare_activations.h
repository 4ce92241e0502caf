// Compares what a model computes on the way with a golden file of activations: finds the layer in
// which two implementations part.
//
// A golden file holds `input` [n,c,h,w] and tensors named by scope ("layer1/0/conv1", or with
// dots); tools/compare/save_activations.py makes one with PyTorch.
//
//   ASSIGN_OR_RETURN(const GoldenActivations golden, GoldenActivations::Open("acts.safetensors"));
//   ASSIGN_OR_RETURN(request.keep, golden.ScopesOf(logical graph));
//   ... a session of that request, with weights ...
//   ASSIGN_OR_RETURN(const auto layers, CompareActivations(*session, golden, request.keep, 1e-4));
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/train/session.h"
#include "engine/weights/weights_file.h"

namespace capstan {

class GoldenActivations {
 public:
  static absl::StatusOr<GoldenActivations> Open(const std::string& path);

  const Shape& input_shape() const { return input_.type().shape; }
  const TensorView input() const { return input_.view(); }
  // The scopes of a graph that the file has activations of, in the order in which the graph
  // computes them. InvalidArgument where there is none.
  absl::StatusOr<std::vector<std::string>> ScopesOf(const Graph& graph) const;
  // Names in the file that are no scopes of the graph.
  std::vector<std::string> StrangersTo(const Graph& graph) const;
  absl::StatusOr<HostTensor> Activation(const std::string& scope) const;
  const std::string& path() const { return file_.path(); }

 private:
  WeightsFile file_;
  HostTensor input_;
};

// One layer's largest difference.
struct LayerDifference {
  std::string scope;
  Shape shape;                 // here
  Shape golden_shape;          // where they are not equal, nothing else below is meant
  double difference = 0;       // the largest absolute one
  double scale = 0;            // the largest magnitude in the golden file
  std::vector<int64_t> index;  // where the difference is the largest
  double ours = 0, golden = 0;
  bool differs = false;  // difference > tolerance · scale, not a number, or another shape
};

// Runs the input through the session's evaluation program (compiled with these scopes as
// CompileRequest::keep) and compares layer by layer, in the given order.
absl::StatusOr<std::vector<LayerDifference>> CompareActivations(
    Session& session, const GoldenActivations& golden, const std::vector<std::string>& scopes,
    double tolerance);

}  // namespace capstan
