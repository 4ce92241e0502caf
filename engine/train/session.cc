#include "engine/train/session.h"

#include <algorithm>

#include "engine/base/status.h"

namespace capstan {
namespace {

// The arguments of a program by name, in its order.
std::vector<TensorView> BindInputs(
    const PlannedProgram& program,
    const std::vector<std::pair<std::string_view, TensorView>>& all) {
  std::vector<TensorView> inputs;
  for (const NamedBuffer& in : program.inputs) {
    const auto it = std::find_if(all.begin(), all.end(),
                                 [&](const auto& named) { return named.first == in.name; });
    CHECK(it != all.end()) << program.name << " wants an input " << in.name;
    TensorView view = it->second;
    // A picture of one channel or one pixel lies the same in both orders.
    const TensorType& want = program.buffers[static_cast<size_t>(in.buffer)].type;
    if (SameOrder(view.type, want)) view.type.format = want.format;
    inputs.push_back(view);
  }
  return inputs;
}

double ValueOf(const TensorView& scalar) {
  return scalar.type.dtype == DType::kF64 ? *scalar.Data<double>()
                                          : static_cast<double>(*scalar.Data<float>());
}

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Create(const CompileRequest& request,
                                                         const EngineTables& tables,
                                                         const SessionOptions& options,
                                                         Device* device) {
  std::unique_ptr<Session> session(new Session());
  ASSIGN_OR_RETURN(session->compiled_, Compile(request, tables, options.dump));
  ASSIGN_OR_RETURN(session->plan_, BuildPlan(session->compiled_.module, tables.kernels,
                                             {.device = device->kind(),
                                              .impl = options.impl,
                                              .libraries = device->libraries()}));
  ASSIGN_OR_RETURN(session->executor_, Executor::Create(&session->plan_, device));
  return session;
}

absl::StatusOr<int> Session::Find(ProgramKind kind, const TensorView& image) const {
  const std::string shapes = ShapesText(image.type.shape);
  const int program = plan_.FindProgram(kind, shapes);
  if (program >= 0) return program;
  std::string known;
  for (const PlannedProgram& p : plan_.programs) {
    if (p.kind == kind) known += " " + p.shapes;
  }
  return InvalidArgument("no program {} for a batch of {}; planned shapes:{}", NameOf(kind), shapes,
                         known.empty() ? " none" : known);
}

absl::StatusOr<double> Session::RunMicro(const MicroBatch& batch, const MicroArgs& args) {
  ASSIGN_OR_RETURN(
      const int program,
      Find(args.first ? ProgramKind::kMicroFirst : ProgramKind::kMicroNext, batch.image));
  // The divisor has the type of the loss.
  double inv_double = args.inv_targets;
  auto inv_float = static_cast<float>(args.inv_targets);
  TensorView inv{&inv_float, {DType::kF32, {}}};
  if (batch.image.type.dtype == DType::kF64) inv = {&inv_double, {DType::kF64, {}}};
  const std::vector<TensorView> inputs =
      BindInputs(plan_.programs[static_cast<size_t>(program)],
                 {{"image", batch.image}, {"label", batch.label}, {"inv_targets", inv}});
  RETURN_IF_ERROR(executor_->Run(program, {.inputs = inputs,
                                           .seed = args.seed,
                                           .iteration = args.iteration,
                                           .sample_offset = args.sample_offset}));
  return ScalarOutput(program, "loss");
}

absl::Status Session::RunUpdate(double lr, int64_t iteration) {
  const int program = plan_.FindProgram(ProgramKind::kUpdate, "");
  CHECK(program >= 0) << "a session without an update program";
  auto rate = static_cast<float>(lr);
  const std::vector<TensorView> inputs = BindInputs(
      plan_.programs[static_cast<size_t>(program)],
      {{"lr", {&rate, {DType::kF32, {}}}}, {"iteration", {&iteration, {DType::kI64, {}}}}});
  return executor_->Run(program, {.inputs = inputs, .iteration = iteration});
}

absl::StatusOr<EvaluateResult> Session::RunEvaluate(const MicroBatch& batch) {
  ASSIGN_OR_RETURN(const int program, Find(ProgramKind::kEvaluate, batch.image));
  const PlannedProgram& planned = plan_.programs[static_cast<size_t>(program)];
  const std::vector<TensorView> inputs =
      BindInputs(planned, {{"image", batch.image}, {"label", batch.label}});
  RETURN_IF_ERROR(executor_->Run(program, {.inputs = inputs}));
  EvaluateResult result;
  ASSIGN_OR_RETURN(result.logits, executor_->OutputOnHost(program, "logits"));
  for (const NamedBuffer& o : planned.outputs) {
    if (o.name != "loss") continue;
    ASSIGN_OR_RETURN(result.loss_sum, ScalarOutput(program, "loss"));
  }
  return result;
}

std::vector<int64_t> Session::EvaluateSizes() const {
  std::vector<int64_t> sizes;
  for (const PlannedProgram& p : plan_.programs) {
    if (p.kind != ProgramKind::kEvaluate) continue;
    for (const NamedBuffer& in : p.inputs) {
      if (in.name == "image") {
        sizes.push_back(p.buffers[static_cast<size_t>(in.buffer)].type.shape[0]);
      }
    }
  }
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

absl::StatusOr<double> Session::ScalarOutput(int program, std::string_view name) {
  ASSIGN_OR_RETURN(const TensorView scalar, executor_->OutputOnHost(program, name));
  return ValueOf(scalar);
}

}  // namespace capstan
