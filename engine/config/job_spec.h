// JobSpec: one training job as plain typed data. Each struct lists its keys once, with the only
// default, the bounds and the meaning; checks, rendering, the JSON Schema and docs/job-file.md all
// follow from these lists.
//
// Invariant: a JobSpec from LoadJob has passed every check of one process; treat it as immutable.
// Reading is safe from any thread. Paths are dotted as in the file ("optimizer.lr.base").
//
//   ASSIGN_OR_RETURN(const JobSpec job, LoadJob("job.yaml", choices, overrides));
//   job.model.choice.name;                             // "resnet50"
//   job.model.choice.options.As<ResNetOptions>();      // the registering module's own struct
//   job.Where("model.classes");                        // "job.yaml:3:36"
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/reflect.h"
#include "engine/config/diagnostics.h"
#include "engine/config/source_map.h"

namespace capstan {

struct ModelSpec {
  Section choice;
  std::optional<std::string> pretrained;
  std::vector<std::string> freeze;

  static constexpr auto Fields() {
    return std::array{
        SectionField<&ModelSpec::choice>("name", "model", "the model; its options are keys here"),
        Field<&ModelSpec::pretrained>("pretrained",
                                      "weights file to start from: safetensors, .pth of PyTorch, "
                                      ".pdparams of PaddlePaddle; another head is left out"),
        Field<&ModelSpec::freeze>("freeze",
                                  "names or parts of names (layer1, *.bn1), * and ? allowed, of "
                                  "parameters that are not trained; norms inside still gather "
                                  "running statistics")};
  }
};

struct LoaderSpec {
  enum class Cache { kNone, kRam, kDisk };
  friend constexpr std::array<const char*, 3> EnumNamesOf(Cache) { return {"none", "ram", "disk"}; }

  std::optional<int64_t> num_workers;
  int64_t prefetch = 4;
  Cache cache = Cache::kNone;

  static constexpr auto Fields() {
    return std::array{
        Field<&LoaderSpec::num_workers>("num_workers",
                                        "decoding threads of one process; 0 decodes in place; "
                                        "auto: its share of the cores but one, 1 to 16",
                                        {.min = 0, .max = 1024})
            .Unset("auto"),
        Field<&LoaderSpec::prefetch>("prefetch", "batches prepared ahead", {.min = 1, .max = 1024}),
        Field<&LoaderSpec::cache>("cache", "where decoded samples are kept after the first epoch")};
  }
};

struct BadSamplesSpec {
  enum class Policy { kSkip, kFail };
  friend constexpr std::array<const char*, 2> EnumNamesOf(Policy) { return {"skip", "fail"}; }

  Policy policy = Policy::kSkip;
  double limit = 0.001;

  static constexpr auto Fields() {
    return std::array{
        Field<&BadSamplesSpec::policy>("policy", "skip and count unreadable samples, or end"),
        Field<&BadSamplesSpec::limit>("limit", "share of bad samples beyond which the run ends",
                                      {.min = 0, .max = 1})};
  }
};

// Keys of both dataset.train and dataset.eval.
struct DatasetSpec {
  Section choice;
  std::optional<int64_t> batch_size;
  std::optional<int64_t> tokens_per_batch;
  std::vector<Section> transforms;
  LoaderSpec loader;
  BadSamplesSpec bad_samples;

  template <typename Owner>
  static constexpr auto FieldsOf() {
    return std::array{
        SectionField<&DatasetSpec::choice, Owner>("type", "dataset",
                                                  "kind of dataset; its options are keys here"),
        Field<&DatasetSpec::batch_size, Owner>("batch_size", "samples per data-parallel rank",
                                               {.min = 1, .max = 1 << 24}),
        Field<&DatasetSpec::tokens_per_batch, Owner>(
            "tokens_per_batch", "tokens per data-parallel rank (packing), instead of batch_size",
            {.min = 1, .max = 1 << 30}),
        SectionField<&DatasetSpec::transforms, Owner>("transforms", "transform",
                                                      "applied to each sample, in order"),
        Field<&DatasetSpec::loader, Owner>("loader", "how samples are read"),
        Field<&DatasetSpec::bad_samples, Owner>("bad_samples", "what to do with unreadable ones")};
  }
  static constexpr auto Fields() { return FieldsOf<DatasetSpec>(); }
};

struct TrainSetSpec : DatasetSpec {
  bool shuffle = true;
  bool drop_last = true;

  static constexpr auto Fields() {
    return JoinFields(
        FieldsOf<TrainSetSpec>(),
        std::array{Field<&TrainSetSpec::shuffle>("shuffle", "a new order every epoch"),
                   Field<&TrainSetSpec::drop_last>(
                       "drop_last", "leave out the last partial batch of an epoch")});
  }
};

struct DatasetsSpec {
  std::optional<TrainSetSpec> train;
  std::optional<DatasetSpec> eval;

  static constexpr auto Fields() {
    return std::array{
        Field<&DatasetsSpec::train>("train", "what is learnt from"),
        Field<&DatasetsSpec::eval>("eval", "what is measured; every sample exactly once")};
  }
};

struct LossSpec {
  Section choice;

  static constexpr auto Fields() {
    return std::array{
        SectionField<&LossSpec::choice>("name", "loss", "the loss; its options are keys here")};
  }
};

// `lr: 0.1` is a constant rate.
struct LrSpec {
  Section choice;

  static constexpr Shorthand kShorthand{"base", "name", "constant"};
  static constexpr auto Fields() {
    return std::array{SectionField<&LrSpec::choice>(
        "name", "lr", "the learning-rate schedule; its options are keys here")};
  }
};

// `grad_clip: 1.0` clips the global norm.
struct GradClipSpec {
  std::optional<double> global_norm;
  std::optional<double> norm;
  std::optional<double> value;

  static constexpr Shorthand kShorthand{"global_norm"};
  static constexpr auto Fields() {
    return std::array{
        Field<&GradClipSpec::global_norm>("global_norm", "largest norm of all gradients together",
                                          kPositive),
        Field<&GradClipSpec::norm>("norm", "largest norm of each gradient", kPositive),
        Field<&GradClipSpec::value>("value", "largest magnitude of each element", kPositive)};
  }
};

struct OptimizerSpec {
  enum class Role { kBias, kNorm, kEmbedding };
  friend constexpr std::array<const char*, 3> EnumNamesOf(Role) {
    return {"bias", "norm", "embedding"};
  }

  Section choice;
  std::vector<Role> no_decay = {Role::kBias, Role::kNorm};
  std::optional<GradClipSpec> grad_clip;
  std::optional<double> layer_lr_decay;
  std::vector<double> layer_lr_factors;
  LrSpec lr;

  static constexpr auto Fields() {
    return std::array{
        SectionField<&OptimizerSpec::choice>("name", "optimizer",
                                             "the optimizer; its options are keys here"),
        Field<&OptimizerSpec::no_decay>("no_decay", "roles of parameters without weight decay"),
        Field<&OptimizerSpec::grad_clip>("grad_clip", "gradient clipping; a number is global_norm"),
        Field<&OptimizerSpec::layer_lr_decay>(
            "layer_lr_decay",
            "factor of the learning rate from each layer to the one below; the classifier has 1, "
            "residual networks have 6 layers: stem, 4 stages, classifier",
            {.min = 0, .max = 1, .open_min = true}),
        Field<&OptimizerSpec::layer_lr_factors>(
            "layer_lr_factors",
            "the factors one by one, from the stem up; layers that it leaves out have 1",
            kNonNegative),
        Field<&OptimizerSpec::lr>("lr", "learning rate; a number is a constant rate").Required()};
  }
};

enum class FloatName { kFloat32, kBFloat16, kFloat16 };
constexpr std::array<const char*, 3> EnumNamesOf(FloatName) {
  return {"float32", "bfloat16", "float16"};
}

struct AmpSpec {
  enum class Half { kBFloat16, kFloat16 };
  friend constexpr std::array<const char*, 2> EnumNamesOf(Half) { return {"bfloat16", "float16"}; }
  enum class Level { kOff, kO1, kO2 };
  friend constexpr std::array<const char*, 3> EnumNamesOf(Level) { return {"off", "O1", "O2"}; }

  Half dtype = Half::kBFloat16;
  Level level = Level::kOff;
  std::vector<std::string> keep_fp32;
  std::vector<std::string> allow_16;
  double scale_loss = 65536;
  bool use_dynamic_loss_scaling = true;
  int64_t max_skips_in_a_row = 50;

  static constexpr auto Fields() {
    return std::array{
        Field<&AmpSpec::dtype>("dtype", "the 16-bit type"),
        Field<&AmpSpec::level>("level", "off; O1: chosen operators in 16 bits; O2: weights too"),
        Field<&AmpSpec::keep_fp32>("keep_fp32", "operators kept in 32 bits"),
        Field<&AmpSpec::allow_16>("allow_16", "operators allowed in 16 bits beyond the policy"),
        Field<&AmpSpec::scale_loss>("scale_loss", "first loss scale (float16)", kAtLeastOne),
        Field<&AmpSpec::use_dynamic_loss_scaling>("use_dynamic_loss_scaling",
                                                  "adapt the loss scale to overflows (float16)"),
        Field<&AmpSpec::max_skips_in_a_row>(
            "max_skips_in_a_row", "updates skipped for overflow in a row after which the run ends",
            kAtLeastOne)};
  }
};

// `hybrid_configs: auto` lets the planner choose the degrees.
struct HybridSpec {
  enum class Mode { kManual, kAuto };
  friend constexpr std::array<const char*, 2> EnumNamesOf(Mode) { return {"manual", "auto"}; }

  Mode mode = Mode::kManual;
  int64_t dp_degree = 1;
  int64_t mp_degree = 1;
  int64_t pp_degree = 1;
  int64_t sharding_degree = 1;
  int64_t sharding_stage = 1;
  bool sequence_parallel = false;

  static constexpr Shorthand kShorthand{"mode"};
  static constexpr auto Fields() {
    constexpr Bounds kDegree{.min = -1, .max = 1 << 20};
    return std::array{
        Field<&HybridSpec::mode>("mode", "manual: the degrees below; auto: the planner's"),
        Field<&HybridSpec::dp_degree>("dp_degree", "data-parallel ranks; -1: what is left",
                                      kDegree),
        Field<&HybridSpec::mp_degree>("mp_degree", "tensor-parallel ranks; -1: what is left",
                                      kDegree),
        Field<&HybridSpec::pp_degree>("pp_degree", "pipeline stages; -1: what is left", kDegree),
        Field<&HybridSpec::sharding_degree>(
            "sharding_degree", "data-parallel ranks that share optimizer state; -1: what is left",
            kDegree),
        Field<&HybridSpec::sharding_stage>(
            "sharding_stage", "what they share: 1 optimizer state, 2 gradients too, 3 weights too",
            {.min = 1, .max = 3}),
        Field<&HybridSpec::sequence_parallel>(
            "sequence_parallel",
            "split activations along the sequence between tensor-parallel "
            "regions")};
  }
};

// Deep gradient compression.
struct DgcSpec {
  int64_t rampup_begin_iteration = 0;
  int64_t rampup_iterations = 1;
  std::vector<double> sparsity = {0.999};

  static constexpr auto Fields() {
    return std::array{
        Field<&DgcSpec::rampup_begin_iteration>("rampup_begin_iteration",
                                                "first iteration with compression", kNonNegative)
            .Also("rampup_begin_step"),
        Field<&DgcSpec::rampup_iterations>("rampup_iterations",
                                           "iterations over which sparsity goes through its list",
                                           kAtLeastOne)
            .Also("rampup_step"),
        Field<&DgcSpec::sparsity>("sparsity", "shares of gradients held back",
                                  {.min = 0, .max = 1})};
  }
};

struct StrategySpec {
  enum class Schedule { k1F1B, kGPipe, kInterleaved };
  friend constexpr std::array<const char*, 3> EnumNamesOf(Schedule) {
    return {"1f1b", "gpipe", "interleaved"};
  }
  enum class Recompute { kNone, kSelective, kFull };
  friend constexpr std::array<const char*, 3> EnumNamesOf(Recompute) {
    return {"none", "selective", "full"};
  }
  enum class Offload { kNone, kOptimizer };
  friend constexpr std::array<const char*, 2> EnumNamesOf(Offload) { return {"none", "optimizer"}; }

  int64_t accumulate = 1;
  int64_t micro_batches = 1;
  Schedule schedule = Schedule::k1F1B;
  int64_t virtual_pp_degree = 1;
  Recompute recompute = Recompute::kNone;
  int64_t fuse_grad_size_in_mb = 32;
  bool overlap = true;
  FloatName reduce_dtype = FloatName::kFloat32;
  int64_t sync_every = 1;
  std::optional<DgcSpec> dgc;
  Offload offload = Offload::kNone;

  static constexpr auto Fields() {
    return std::array{
        Field<&StrategySpec::accumulate>("accumulate", "batches whose gradients make one update",
                                         {.min = 1, .max = 1 << 20}),
        Field<&StrategySpec::micro_batches>("micro_batches",
                                            "parts of a batch in the pipeline; divides batch_size",
                                            {.min = 1, .max = 1 << 20}),
        Field<&StrategySpec::schedule>("schedule", "order of the pipeline's micro-batches"),
        Field<&StrategySpec::virtual_pp_degree>(
            "virtual_pp_degree", "parts of the model per pipeline stage (interleaved)",
            {.min = 1, .max = 1024}),
        Field<&StrategySpec::recompute>("recompute",
                                        "activations computed again in the backward pass"),
        Field<&StrategySpec::fuse_grad_size_in_mb>("fuse_grad_size_in_MB",
                                                   "gradients reduced in one go; 0: one by one",
                                                   {.min = 0, .max = 1 << 20}),
        Field<&StrategySpec::overlap>("overlap", "communicate while computing")
            .Also("overlap_communication"),
        Field<&StrategySpec::reduce_dtype>("reduce_dtype", "type in which gradients are summed"),
        Field<&StrategySpec::sync_every>("sync_every",
                                         "updates between two averages of weights (local SGD); "
                                         "1: gradients are summed at each update",
                                         {.min = 1, .max = 1 << 20}),
        Field<&StrategySpec::dgc>("dgc", "deep gradient compression"),
        Field<&StrategySpec::offload>("offload", "what is kept in host memory")};
  }
};

// `ema: 0.9999` is its decay.
struct EmaSpec {
  double decay = 0.9999;

  static constexpr Shorthand kShorthand{"decay"};
  static constexpr auto Fields() {
    return std::array{Field<&EmaSpec::decay>("decay", "share of the average kept at each update",
                                             {.min = 0, .max = 1})};
  }
};

struct TrainSpec {
  std::optional<int64_t> epochs;
  std::optional<int64_t> max_iterations;
  int64_t seed = 42;
  std::optional<EmaSpec> ema;
  bool deterministic = false;

  static constexpr auto Fields() {
    return std::array{
        Field<&TrainSpec::epochs>("epochs", "passes over the training data",
                                  {.min = 1, .max = 1e9}),
        Field<&TrainSpec::max_iterations>("max_iterations",
                                          "updates after which training ends, whatever epochs says",
                                          {.min = 1, .max = 1e15}),
        Field<&TrainSpec::seed>("seed", "of every random draw", kNonNegative),
        Field<&TrainSpec::ema>("ema", "moving average of the weights, used for evaluation"),
        Field<&TrainSpec::deterministic>("deterministic", "only kernels that repeat bit by bit")};
  }
};

struct EvalSpec {
  std::optional<int64_t> every_epochs = 1;
  std::optional<int64_t> every_iterations;
  int64_t start = 0;
  std::optional<std::string> metric;

  static constexpr auto Fields() {
    return std::array{
        Field<&EvalSpec::every_epochs>("every_epochs", "epochs between two evaluations",
                                       kAtLeastOne),
        Field<&EvalSpec::every_iterations>(
            "every_iterations", "updates between two evaluations; takes the place of every_epochs",
            kAtLeastOne),
        Field<&EvalSpec::start>("start", "none before this epoch (or iteration)", kNonNegative),
        Field<&EvalSpec::metric>("metric", "decides which checkpoint is the best")};
  }
};

struct CheckpointSpec {
  std::optional<int64_t> every_iterations = 1000;
  int64_t keep = 3;
  std::string resume = "auto";

  static constexpr auto Fields() {
    return std::array{
        Field<&CheckpointSpec::every_iterations>(
            "every_iterations", "updates between two checkpoints; null: at the end only",
            kAtLeastOne),
        Field<&CheckpointSpec::keep>("keep", "checkpoints kept beside the best one", kAtLeastOne),
        Field<&CheckpointSpec::resume>("resume",
                                       "auto: the latest of output_dir, if there is one; "
                                       "none; or a checkpoint folder")};
  }
};

struct LogSpec {
  int64_t every_iterations = 10;

  static constexpr auto Fields() {
    return std::array{Field<&LogSpec::every_iterations>(
        "every_iterations", "updates between two log lines", kAtLeastOne)};
  }
};

// A key of another tool's job file that has no meaning here.
struct IgnoredKey {
  Position at;
  std::string path;
  std::string why;  // "..., because <why>"
};

struct JobSpec {
  enum class Device { kAuto, kCpu, kCuda };
  friend constexpr std::array<const char*, 3> EnumNamesOf(Device) {
    return {"auto", "cpu", "cuda"};
  }

  int64_t version = 1;
  std::string name = "job";
  ModelSpec model;
  DatasetsSpec dataset;
  std::optional<LossSpec> loss;
  std::optional<OptimizerSpec> optimizer;
  AmpSpec amp;
  HybridSpec hybrid_configs;
  StrategySpec strategy;
  TrainSpec train;
  EvalSpec eval;
  CheckpointSpec checkpoint;
  LogSpec log;
  double watchdog_s = 30;
  std::string output_dir = "output";
  Device device = Device::kAuto;

  // Not keys: where the others were written, and what a file in a dialect says for nothing.
  SourceMap sources;
  std::vector<IgnoredKey> ignored;

  // "job.yaml:4:31": the place of a value, or of the nearest part around it that was written.
  std::string Where(std::string_view path) const { return sources.Where(path); }

  static constexpr auto Fields() {
    return std::array{
        Field<&JobSpec::version>("version", "of this format", {.min = 1, .max = 1}),
        Field<&JobSpec::name>("name", "of the job, for people"),
        Field<&JobSpec::model>("model", "what is trained").Required(),
        Field<&JobSpec::dataset>("dataset", "what it learns from and is measured on"),
        Field<&JobSpec::loss>("loss", "what is made small"),
        Field<&JobSpec::optimizer>("optimizer", "how weights change"),
        Field<&JobSpec::amp>("amp", "16-bit computing"),
        Field<&JobSpec::hybrid_configs>("hybrid_configs",
                                        "how the ranks are used: dp x mp x pp x sharding of them"),
        Field<&JobSpec::strategy>("strategy", "how they work together"),
        Field<&JobSpec::train>("train", "how long, and from which seed"),
        Field<&JobSpec::eval>("eval", "when to evaluate"),
        Field<&JobSpec::checkpoint>("checkpoint", "when to save, what to resume from"),
        Field<&JobSpec::log>("log", "how often to report"),
        Field<&JobSpec::watchdog_s>(
            "watchdog_s", "seconds without progress after which a rank counts as lost", kPositive),
        Field<&JobSpec::output_dir>("output_dir", "what the run leaves behind goes here"),
        Field<&JobSpec::device>("device", "where to compute; auto: cuda where there is one")};
  }
};

}  // namespace capstan
