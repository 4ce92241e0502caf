// oneDNN's f32 convolutions over channels_last images. oneDNN chooses the order of the filter for
// itself; where it differs from ours, the filter is reordered in the workspace at each call.
#include <algorithm>
#include <array>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>
#include <type_traits>

#include "engine/base/status.h"
#include "engine/kernel/flat.h"
#include "ops/conv2d/conv2d.h"

namespace capstan {
namespace {

using dnnl::memory;

enum class Pass { kForward, kInputGrad, kWeightGrad };

// One primitive with the memory objects of its arguments; a step owns it, so they are never shared.
struct PreparedConv {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::primitive convolution;
  dnnl::primitive reorder;       // of the filter; empty where orders agree
  memory image, filter, result;  // x (or dx), w (or dw) in oneDNN's order, y (or dy)
  memory our_filter, scratch;
  int64_t filter_bytes = 0;  // of the reordered filter in the workspace
  int64_t scratch_bytes = 0;
};

int64_t RoundUp(int64_t bytes) { return (bytes + 63) / 64 * 64; }

memory::desc ImageDesc(const Shape& s) {
  return {{s[0], s[1], s[2], s[3]}, memory::data_type::f32, memory::format_tag::nhwc};
}

memory::dims FilterDims(const Shape& w, int64_t groups) {
  if (groups == 1) return {w[0], w[1], w[2], w[3]};
  return {groups, w[0] / groups, w[1], w[2], w[3]};
}

// The order in which the engine keeps a filter: o,y,x,i, or o,i,y,x.
memory::desc FilterDesc(const TensorType& type, int64_t groups) {
  const Shape& w = type.shape;
  const auto stride = type.Strides();
  memory::dims strides = {stride[0], stride[1], stride[2], stride[3]};
  if (groups > 1) strides.insert(strides.begin(), stride[0] * (w[0] / groups));
  return {FilterDims(w, groups), memory::data_type::f32, strides};
}

// What the three passes have in common: which argument is the image, the filter and the result.
struct ConvTypes {
  const TensorType *image, *filter, *result;
};
ConvTypes TypesOf(const OpCall& call, Pass pass) {
  switch (pass) {
    case Pass::kForward:
      return {&call.In(0), &call.In(1), &call.Out(0)};
    case Pass::kInputGrad:
      return {&call.Out(0), &call.In(1), &call.In(0)};
    case Pass::kWeightGrad:
      return {&call.In(0), &call.Out(0), &call.In(1)};
  }
  return {};
}

// Zeros after the last row and column that the window does not reach are oneDNN's right padding
// with a negative sign.
memory::dims RightPadding(const Window& w, const Shape& x, const Shape& y) {
  memory::dims right(2);
  for (size_t d = 0; d < 2; ++d) {
    const int64_t reach = w.dilation[d] * (w.kernel[d] - 1) + 1;
    const int64_t last = (y[static_cast<int>(d) + 2] - 1) * w.stride[d] + reach;
    right[d] = last - x[static_cast<int>(d) + 2] - w.padding[d];
  }
  return right;
}

// oneDNN's kernel for 1x1 filters with a stride writes past its scratchpad, and gives wrong
// numbers, where an image has fewer channels than a register
// (github.com/uxlfoundation/oneDNN/issues/6035). Takes the next kernel of its list there.
void AvoidOverrun(dnnl::convolution_backward_weights::primitive_desc* desc, const Window& window,
                  int64_t channels) {
  constexpr int64_t kWidestRegister = 16;
  if (channels >= kWidestRegister || window.stride == std::array<int64_t, 2>{1, 1}) return;
  while (std::string_view(desc->impl_info_str()).starts_with("jit_1x1")) {
    if (!desc->next_impl()) throw dnnl::error(dnnl_unimplemented, "no safe kernel");
  }
}

std::shared_ptr<const PreparedConv> MakeConv(const ConvTypes& types, const Conv2dAttrs& attrs,
                                             const Window& window, Pass pass) {
  auto p = std::make_shared<PreparedConv>();
  const memory::desc image = ImageDesc(types.image->shape), result = ImageDesc(types.result->shape);
  const memory::desc ours = FilterDesc(*types.filter, attrs.groups);
  const memory::desc any(FilterDims(types.filter->shape, attrs.groups), memory::data_type::f32,
                         memory::format_tag::any);
  const memory::dims stride = {window.stride[0], window.stride[1]};
  const memory::dims dilation = {window.dilation[0] - 1, window.dilation[1] - 1};
  const memory::dims left = {window.padding[0], window.padding[1]};
  const memory::dims right = RightPadding(window, types.image->shape, types.result->shape);
  dnnl::primitive_attr options;
  options.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const dnnl::convolution_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, algorithm, image, any, result, stride, dilation, left,
       right},
      options, p->engine);
  memory::desc filter, scratch;
  switch (pass) {
    case Pass::kForward:
      p->convolution = dnnl::convolution_forward(forward);
      filter = forward.weights_desc();
      scratch = forward.scratchpad_desc();
      break;
    case Pass::kInputGrad: {
      const dnnl::convolution_backward_data::primitive_desc backward(
          {algorithm, image, any, result, stride, dilation, left, right}, options, p->engine,
          forward);
      p->convolution = dnnl::convolution_backward_data(backward);
      filter = backward.weights_desc();
      scratch = backward.scratchpad_desc();
      break;
    }
    case Pass::kWeightGrad: {
      dnnl::convolution_backward_weights::primitive_desc backward(
          {algorithm, image, any, result, stride, dilation, left, right}, options, p->engine,
          forward);
      AvoidOverrun(&backward, window, types.image->shape[1]);
      p->convolution = dnnl::convolution_backward_weights(backward);
      filter = backward.diff_weights_desc();
      scratch = backward.scratchpad_desc();
      break;
    }
  }
  p->image = memory(image, p->engine, nullptr);
  p->filter = memory(filter, p->engine, nullptr);
  p->result = memory(result, p->engine, nullptr);
  p->our_filter = memory(ours, p->engine, nullptr);
  p->scratch_bytes = static_cast<int64_t>(scratch.get_size());
  if (filter != ours) {
    p->filter_bytes = RoundUp(static_cast<int64_t>(filter.get_size()));
    const bool to_us = pass == Pass::kWeightGrad;
    const dnnl::reorder::primitive_desc reorder(p->engine, to_us ? filter : ours, p->engine,
                                                to_us ? ours : filter, options);
    p->reorder = dnnl::reorder(reorder);
    p->scratch_bytes =
        std::max(p->scratch_bytes, static_cast<int64_t>(reorder.scratchpad_desc().get_size()));
  }
  // Serves both primitives, which run one after the other.
  p->scratch = memory({{p->scratch_bytes}, memory::data_type::u8, memory::format_tag::a}, p->engine,
                      nullptr);
  return p;
}

template <Pass kPass>
using AttrsOf = std::conditional_t<
    kPass == Pass::kForward, Conv2dAttrs,
    std::conditional_t<kPass == Pass::kInputGrad, Conv2dInputGradAttrs, Conv2dWeightGradAttrs>>;

template <Pass kPass>
absl::StatusOr<std::shared_ptr<const void>> Prepare(const OpCall& call, DeviceLibraries*) {
  const ConvTypes types = TypesOf(call, kPass);
  const Conv2dAttrs& attrs = call.Attrs<AttrsOf<kPass>>();
  ASSIGN_OR_RETURN(const Window window,
                   ConvWindow(attrs, types.filter->shape[2], types.filter->shape[3]));
  try {
    return MakeConv(types, attrs, window, kPass);
  } catch (const dnnl::error& e) {
    return FailedPrecondition("oneDNN cannot make {}: {}", call.ToString(), e.what());
  }
}

int64_t WorkspaceBytes(const OpCall&, const void* prepared) {
  const auto* p = static_cast<const PreparedConv*>(prepared);
  return p->filter_bytes + p->scratch_bytes;
}

template <Pass kPass>
bool Supports(const OpCall& call) {
  const ConvTypes types = TypesOf(call, kPass);
  return IsChannelsLast(*types.image) && IsChannelsLast(*types.result);
}

// The C call: the C++ one builds its argument list on the heap.
template <size_t N>
void Execute(KernelContext& context, const dnnl::primitive& primitive, const dnnl::stream& stream,
             const std::array<dnnl_exec_arg_t, N>& arguments) {
  const dnnl_status_t result =
      dnnl_primitive_execute(primitive.get(), stream.get(), static_cast<int>(N), arguments.data());
  if (result != dnnl_success && context.status.ok()) {
    context.status = FailedPrecondition("oneDNN failed with code {}", static_cast<int>(result));
  }
}

void Reorder(KernelContext& context, const PreparedConv& p, const memory& from, const memory& to) {
  const std::array<dnnl_exec_arg_t, 3> arguments = {{{DNNL_ARG_FROM, from.get()},
                                                     {DNNL_ARG_TO, to.get()},
                                                     {DNNL_ARG_SCRATCHPAD, p.scratch.get()}}};
  Execute(context, p.reorder, p.stream, arguments);
}

template <Pass kPass>
void Run(KernelContext& context, const PreparedConv& p, void* image, void* filter, void* result) {
  auto* workspace = static_cast<char*>(context.workspace);
  const bool reorders = p.filter_bytes > 0;
  try {
    p.image.set_data_handle(image);
    p.result.set_data_handle(result);
    p.our_filter.set_data_handle(filter);
    p.filter.set_data_handle(reorders ? workspace : filter);
    p.scratch.set_data_handle(workspace + p.filter_bytes);
  } catch (const dnnl::error& e) {
    context.status = FailedPrecondition("oneDNN convolution: {}", e.what());
    return;
  }
  if (reorders && kPass != Pass::kWeightGrad) Reorder(context, p, p.our_filter, p.filter);
  constexpr int kImage = kPass == Pass::kInputGrad ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC;
  constexpr int kFilter = kPass == Pass::kWeightGrad ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS;
  constexpr int kResult = kPass == Pass::kForward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST;
  const std::array<dnnl_exec_arg_t, 4> arguments = {{{kImage, p.image.get()},
                                                     {kFilter, p.filter.get()},
                                                     {kResult, p.result.get()},
                                                     {DNNL_ARG_SCRATCHPAD, p.scratch.get()}}};
  Execute(context, p.convolution, p.stream, arguments);
  if (reorders && kPass == Pass::kWeightGrad) Reorder(context, p, p.filter, p.our_filter);
}

void Conv2dKernel(KernelContext& context, std::span<const TensorView> outputs,
                  std::span<const TensorView> inputs, const AnyStruct&) {
  Run<Pass::kForward>(context, context.Prepared<PreparedConv>(), inputs[0].data, inputs[1].data,
                      outputs[0].data);
}

void InputGradKernel(KernelContext& context, std::span<const TensorView> outputs,
                     std::span<const TensorView> inputs, const AnyStruct&) {
  Run<Pass::kInputGrad>(context, context.Prepared<PreparedConv>(), outputs[0].data, inputs[1].data,
                        inputs[0].data);
}

void WeightGradKernel(KernelContext& context, std::span<const TensorView> outputs,
                      std::span<const TensorView> inputs, const AnyStruct&) {
  Run<Pass::kWeightGrad>(context, context.Prepared<PreparedConv>(), inputs[0].data, outputs[0].data,
                         inputs[1].data);
}

template <Pass kPass>
KernelRow Row(const char* op, KernelFn fn) {
  return {.op = op,
          .impl = "onednn",
          .priority = 10,
          .dtypes = {DType::kF32},
          .supports = Supports<kPass>,
          .prepare = Prepare<kPass>,
          .workspace_bytes = WorkspaceBytes,
          .fn = fn};
}

}  // namespace

std::vector<KernelRow> Conv2dOnednnKernels() {
  return {Row<Pass::kForward>("conv2d", Conv2dKernel),
          Row<Pass::kInputGrad>("conv2d_input_grad", InputGradKernel),
          Row<Pass::kWeightGrad>("conv2d_weight_grad", WeightGradKernel)};
}

}  // namespace capstan
