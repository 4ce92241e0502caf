// oneDNN's f32 matmul over plain tensors; leading dimensions are folded into one batch.
#include <array>
#include <oneapi/dnnl/dnnl.hpp>

#include "engine/base/status.h"
#include "ops/matmul/matmul.h"

namespace capstan {
namespace {

using dnnl::memory;

struct PreparedMatMul {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::matmul primitive;
  memory a, b, y, scratch;
  size_t scratch_bytes = 0;
};

// [batch, rows, columns] in memory order (batch, rows, columns) or, transposed, with the last two
// exchanged.
memory::desc MatrixDesc(int64_t batch, int64_t rows, int64_t columns, bool transposed) {
  const memory::dims strides =
      transposed ? memory::dims{rows * columns, 1, rows} : memory::dims{rows * columns, columns, 1};
  return {{batch, rows, columns}, memory::data_type::f32, strides};
}

bool SupportsMatMul(const OpCall& call) {
  for (const TensorType* type : {&call.In(0), &call.In(1), &call.Out(0)}) {
    TensorType plain = *type;
    plain.format = MemoryFormat::kPlain;
    if (!SameOrder(*type, plain)) return false;
  }
  return true;
}

std::shared_ptr<const PreparedMatMul> MakePrimitive(const MatMulAttrs& attrs,
                                                    const MatMulSizes& s) {
  auto p = std::make_shared<PreparedMatMul>();
  const memory::desc a = MatrixDesc(s.batch, s.m, s.k, attrs.transpose_a);
  const memory::desc b = MatrixDesc(s.batch, s.k, s.n, attrs.transpose_b);
  const memory::desc y = MatrixDesc(s.batch, s.m, s.n, false);
  dnnl::primitive_attr options;
  options.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::matmul::primitive_desc desc({a, b, y}, options, p->engine);
  p->primitive = dnnl::matmul(desc);
  p->a = memory(a, p->engine, nullptr);
  p->b = memory(b, p->engine, nullptr);
  p->y = memory(y, p->engine, nullptr);
  p->scratch = memory(desc.scratchpad_desc(), p->engine, nullptr);
  p->scratch_bytes = desc.scratchpad_desc().get_size();
  return p;
}

absl::StatusOr<std::shared_ptr<const void>> PrepareMatMul(const OpCall& call, DeviceLibraries*) {
  const auto& attrs = call.Attrs<MatMulAttrs>();
  try {
    return MakePrimitive(attrs, SizesOf(attrs, call.In(0).shape, call.In(1).shape));
  } catch (const dnnl::error& e) {
    return FailedPrecondition("oneDNN cannot make {}: {}", call.ToString(), e.what());
  }
}

int64_t MatMulWorkspace(const OpCall&, const void* prepared) {
  return static_cast<int64_t>(static_cast<const PreparedMatMul*>(prepared)->scratch_bytes);
}

void MatMulKernel(KernelContext& context, std::span<const TensorView> outputs,
                  std::span<const TensorView> inputs, const AnyStruct&) {
  const auto& p = context.Prepared<PreparedMatMul>();
  try {
    p.a.set_data_handle(inputs[0].data);
    p.b.set_data_handle(inputs[1].data);
    p.y.set_data_handle(outputs[0].data);
    p.scratch.set_data_handle(context.workspace);
  } catch (const dnnl::error& e) {
    context.status = FailedPrecondition("oneDNN matmul: {}", e.what());
    return;
  }
  // The C call: the C++ one builds its argument list on the heap.
  const std::array<dnnl_exec_arg_t, 4> arguments = {{{DNNL_ARG_SRC, p.a.get()},
                                                     {DNNL_ARG_WEIGHTS, p.b.get()},
                                                     {DNNL_ARG_DST, p.y.get()},
                                                     {DNNL_ARG_SCRATCHPAD, p.scratch.get()}}};
  const dnnl_status_t result = dnnl_primitive_execute(
      p.primitive.get(), p.stream.get(), static_cast<int>(arguments.size()), arguments.data());
  if (result != dnnl_success) {
    context.status = FailedPrecondition("oneDNN matmul failed with code {}", int(result));
  }
}

}  // namespace

std::vector<KernelRow> MatmulOnednnKernels() {
  return {{.op = "matmul",
           .impl = "onednn",
           .priority = 10,
           .dtypes = {DType::kF32},
           .supports = SupportsMatMul,
           .prepare = PrepareMatMul,
           .workspace_bytes = MatMulWorkspace,
           .fn = MatMulKernel}};
}

}  // namespace capstan
