// Text form of graphs: what `explain` and dumps print, what golden tests hold. Printing, parsing
// and printing again gives the same text.
//
//   graph micro {
//     %0 = data image : f32[8,3,32,32]
//     %1 = param conv1.weight : f32[16,3,3,3] role=weight init={kind=normal, value=0.1}
//     %2 = state bn1.running_mean : f32[16] init={}
//     %3 = conv2d(%0, %1){padding=[1, 1]} : f32[8,16,32,32] @conv1
//     %4, %5 = max_pool(%3){} : f32[8,16,16,16], opaque[65536] @pool from differentiate
//     update %2 = %6
//     output loss = %7
//   }
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"

namespace capstan {

std::string PrintGraph(const Graph& graph);

// Parses one graph from the start of *text and removes it. `file` names the text in errors
// ("micro.txt:12: unknown operator 'conv2'; did you mean 'conv2d'?").
absl::StatusOr<Graph> ParseGraph(std::string_view* text, const OpTable& ops, std::string_view file);

}  // namespace capstan
