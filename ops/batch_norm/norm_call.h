// What the batch norm rows share: checks of argument types and factor rules. Image arguments have
// two dimensions or more, [n, c, ...]; channel arguments are [c].
#pragma once

#include <string>
#include <string_view>

#include "engine/ir/op_def.h"
#include "ops/batch_norm/batch_norm.h"

namespace capstan {

// Elements of each channel.
inline int64_t ValuesPerChannel(const Shape& x) { return x.count() / x[1]; }

// The input has the type of `x`, which is input `image`.
absl::Status CheckImage(const OpCall& call, int image, std::initializer_list<int> like_it);
// The inputs are [c] and of one element type: that of input `image`, or f32 where that has 16 bits.
absl::Status CheckChannels(const OpCall& call, int image, std::initializer_list<int> channels);
// y is there where relu is fused in.
absl::Status CheckFusedRelu(const OpCall& call, bool relu, int y);

// Result types: that of an image input, and [c] of a channel input's element type.
TensorType LikeImage(const OpCall& call, int image);
TensorType LikeChannels(const OpCall& call, int channels);

// The rule of a row whose image arguments all have the dimensions `batch` ("n", "n~", "n!"), c and
// the spatial ones, which may be split if `split_space`.
std::string NormAxes(const OpCall& call, std::string_view batch, bool split_space);

// Rewrites (batch_norm_fuse.cc).
bool FuseReluIntoBatchNorm(Graph& graph, NodeId relu);
bool FuseAddReluIntoBatchNorm(Graph& graph, NodeId relu);
bool FuseReluIntoInference(Graph& graph, NodeId relu);
bool FuseAddReluIntoInference(Graph& graph, NodeId relu);
bool FuseReluGradIntoBatchNormGrad(Graph& graph, NodeId grad);

}  // namespace capstan
