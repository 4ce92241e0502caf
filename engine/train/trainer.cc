#include "engine/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>

#include "engine/base/status.h"
#include "engine/base/text.h"
#include "engine/config/load_job.h"
#include "engine/config/render.h"
#include "engine/config/scalars.h"
#include "engine/train/loss_options.h"
#include "engine/train/metrics.h"
#include "engine/train/model_state.h"
#include "engine/train/optimizer_options.h"
#include "engine/train/pretrained.h"

namespace capstan {
namespace {

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

const char kDefaultMetric[] = "top1";

// How a job's training set is read, from its start.
LoaderRequest TrainRequest(const JobSpec& job) {
  return {.mode = SamplerMode::kTrain,
          .seed = static_cast<uint64_t>(job.train.seed),
          .end_epoch = job.train.epochs.value_or(std::numeric_limits<int64_t>::max()),
          .max_held = job.strategy.accumulate + 1,
          .shuffle = job.dataset.train->shuffle,
          .drop_last = job.dataset.train->drop_last};
}

const LoaderRequest kEvaluateRequest = {.mode = SamplerMode::kEvaluate};

// Labels are numbers: a class that has moved would be taken for another one.
absl::Status CheckClassNames(const std::vector<std::string>& before,
                             const std::vector<std::string>& now) {
  if (before.empty() || now.empty()) return absl::OkStatus();
  for (size_t id = 0; id < std::max(before.size(), now.size()); ++id) {
    const std::string was = id < before.size() ? Quote(before[id]) : "no class";
    const std::string is = id < now.size() ? Quote(now[id]) : "no class";
    if (was == is) continue;
    return InvalidArgument(
        "class {} was {} when the checkpoint was written, now it is {}; classes cannot change on "
        "resuming. Set them back, or start anew with `checkpoint.resume: none`",
        id, was, is);
  }
  return absl::OkStatus();
}

// What the owners of options say about them beyond the bounds of each.
void CheckOptions(const JobSpec& job, Diagnostics* diagnostics) {
  const auto fault = [&](const std::string& path, const std::string& problem) {
    diagnostics->Add(job.sources.Find(path), path, problem);
  };
  if (job.eval.metric.has_value()) {
    const auto names = MetricNames();
    if (std::find(names.begin(), names.end(), *job.eval.metric) == names.end()) {
      fault("eval.metric", NotOneOf(*job.eval.metric, "a metric", {names.begin(), names.end()}));
    }
  }
  if (job.optimizer.has_value()) {
    const TrainingLength length{job.train.epochs, job.train.max_iterations};
    for (const ScheduleFault& f : ScheduleFaults(job.optimizer->lr.choice, length)) {
      fault("optimizer.lr." + f.key, f.problem);
    }
  }
}

}  // namespace

Trainer::Trainer(const JobSpec& job, const EngineTables& tables, const TrainerOptions& options)
    : job_(job), tables_(tables), options_(options) {}

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(const JobSpec& job,
                                                         const EngineTables& tables,
                                                         const TrainerOptions& options) {
  std::unique_ptr<Trainer> trainer(new Trainer(job, tables, options));
  RETURN_IF_ERROR(trainer->OpenData());
  RETURN_IF_ERROR(trainer->CheckSchedule());
  ASSIGN_OR_RETURN(trainer->session_, Session::Create(trainer->setup_.request, tables,
                                                      options.session, options.device));
  RETURN_IF_ERROR(
      InitializeState(trainer->session_->executor(), static_cast<uint64_t>(job.train.seed)));
  ASSIGN_OR_RETURN(const bool resumed, trainer->OpenCheckpoints());
  if (!resumed) {
    RETURN_IF_ERROR(trainer->OpenPretrained());
    RETURN_IF_ERROR(StartAverages(trainer->session_->executor()));
  }
  RETURN_IF_ERROR(trainer->OpenTrainLoader());
  return trainer;
}

absl::Status Trainer::OpenData() {
  ASSIGN_OR_RETURN(setup_, SetUpTraining(job_, tables_));
  ignore_index_ = job_.loss->choice.options.As<CrossEntropyOptions>().ignore_index;
  state_.seed = job_.train.seed;
  state_.class_names = setup_.train_images->dataset().class_names();
  state_.job = Render(job_);
  if (const std::string note = NoteOnMetrics(setup_.classes);
      job_.dataset.eval.has_value() && !note.empty()) {
    options_.log->Warning(note);
  }
  return absl::OkStatus();
}

absl::Status Trainer::CheckSchedule() const {
  if (job_.checkpoint.resume != "none") {
    // From a checkpoint the length is counted from where it stands, perhaps in other batches.
    if (job_.checkpoint.resume != "auto") return absl::OkStatus();
    ASSIGN_OR_RETURN(const auto checkpoints, ListCheckpoints(job_.output_dir));
    if (!checkpoints.empty()) return absl::OkStatus();
  }
  const TrainSetSpec& set = *job_.dataset.train;
  ASSIGN_OR_RETURN(const Sampler sampler,
                   Sampler::Create({.size = setup_.train_images->size(),
                                    .batch_size = set.batch_size.value_or(1),
                                    .shuffle = set.shuffle,
                                    .drop_last = set.drop_last}),
                   "while opening dataset.train ({})", job_.Where("dataset.train"));
  const int64_t per_epoch = UpdatesOf(sampler.batches_left({}));
  int64_t total = job_.train.max_iterations.value_or(std::numeric_limits<int64_t>::max());
  if (job_.train.epochs.has_value()) total = std::min(total, *job_.train.epochs * per_epoch);
  return MakeSchedule(per_epoch, total).status();
}

absl::StatusOr<Schedule> Trainer::MakeSchedule(int64_t per_epoch, int64_t total) const {
  ASSIGN_OR_RETURN(Schedule schedule, Schedule::Create(job_.optimizer->lr.choice, per_epoch, total),
                   "while reading {}", job_.Where("optimizer.lr"));
  return schedule;
}

absl::StatusOr<bool> Trainer::OpenCheckpoints() {
  for (const std::string& note : options_.store->notes()) options_.log->Info(note);
  if (job_.checkpoint.resume == "none") return StartAnew();
  if (job_.checkpoint.resume != "auto") {
    ASSIGN_OR_RETURN(const CheckpointReader reader, CheckpointReader::Open(job_.checkpoint.resume),
                     "while resuming (checkpoint.resume)");
    RETURN_IF_ERROR(Restore(reader));
    return true;
  }
  ASSIGN_OR_RETURN(const NewestCheckpoint newest, options_.store->OpenNewest(),
                   "while resuming; `checkpoint.resume: none` starts anew");
  for (const std::string& why : newest.passed_over) options_.log->Warning(why);
  if (!newest.reader.has_value()) return StartAnew();
  RETURN_IF_ERROR(Restore(*newest.reader));
  return true;
}

absl::StatusOr<bool> Trainer::StartAnew() {
  options_.log->Info(fmt::format("starting at iteration 0: {}",
                                 job_.checkpoint.resume == "none"
                                     ? "checkpoint.resume is none"
                                     : "no checkpoint in " + CheckpointsFolder(job_.output_dir)));
  // A run that ended before its first save may have left lines.
  RETURN_IF_ERROR(options_.log->TruncateAfter(0));
  return false;
}

absl::Status Trainer::OpenPretrained() {
  if (!job_.model.pretrained.has_value()) return absl::OkStatus();
  const ModelRow* model = FindModel(tables_.models, job_.model.choice.name);
  CHECK(model != nullptr) << "the job reader lets only known models pass";
  ASSIGN_OR_RETURN(const PretrainedReport report,
                   LoadPretrained(session_->executor(), *model, *job_.model.pretrained),
                   "while reading model.pretrained ({})", job_.Where("model.pretrained"));
  options_.log->Info(fmt::format("pretrained: {} of {} tensors from {}", report.loaded,
                                 report.wanted, report.source));
  for (const std::string& problem : report.problems) {
    options_.log->Warning("pretrained: " + problem);
  }
  return absl::OkStatus();
}

absl::Status Trainer::Restore(const CheckpointReader& reader) {
  const TrainingState& saved = reader.state();
  // First, since it names the key that must not have changed; RestoreState can only name tensors.
  ASSIGN_OR_RETURN(const ResumeReport report, CompareJobs(saved));
  RETURN_IF_ERROR(RestoreTensors(reader, report), "while resuming");
  state_.iteration = saved.iteration;
  state_.updates = saved.updates;
  state_.epoch = saved.epoch;
  state_.sampler = saved.sampler;
  if (!report.forgets_best) {
    state_.best_metric = saved.best_metric;
    state_.best_iteration = saved.best_iteration;
  }
  state_.evaluation_due = saved.evaluation_due;
  saved_iteration_ = saved.iteration;
  const std::string changes = report.Summary();
  options_.log->Info(fmt::format("resumed from {} (iteration {}){}", reader.path(), saved.iteration,
                                 changes.empty() ? "" : "; changes of the job: " + changes));
  return options_.log->TruncateAfter(saved.iteration, !saved.evaluation_due);
}

absl::Status Trainer::RestoreTensors(const CheckpointReader& reader, const ResumeReport& report) {
  Executor& executor = session_->executor();
  RETURN_IF_ERROR(RestoreState(executor, StateGroup::kWeights, reader));
  RETURN_IF_ERROR(StartAverages(executor));
  // Parameters that were frozen have neither optimizer state nor averages.
  std::vector<std::string> fresh;
  std::vector<std::string>* absent = report.Changed("model.freeze") ? &fresh : nullptr;
  RETURN_IF_ERROR(RestoreState(executor, StateGroup::kOptimizer, reader, absent));
  if (job_.train.ema.has_value() && reader.Group(NameOf(StateGroup::kEma)) != nullptr) {
    state_.ema_updates = reader.state().ema_updates;
    RETURN_IF_ERROR(RestoreState(executor, StateGroup::kEma, reader, absent));
  }
  if (!fresh.empty()) {
    options_.log->Info(fmt::format(
        "{} tensors of optimizer state and averages begin anew, for their parameters were frozen",
        fresh.size()));
  }
  return absl::OkStatus();
}

absl::StatusOr<ResumeReport> Trainer::CompareJobs(const TrainingState& saved) const {
  RETURN_IF_ERROR(CheckClassNames(saved.class_names, state_.class_names),
                  "while comparing dataset.train ({})", job_.Where("dataset.train"));
  const absl::StatusOr<JobSpec> before =
      ParseJob(saved.job, "job of the checkpoint", tables_.choices);
  if (!before.ok()) {
    options_.log->Warning("the job of the checkpoint cannot be compared: " +
                          MessageOf(before.status()));
    return ResumeReport{};
  }
  ResumeReport report = CompareForResume(*before, job_);
  RETURN_IF_ERROR(report.Refusal(job_));
  for (const std::string& line : report.Lines()) options_.log->Info(line);
  return report;
}

absl::Status Trainer::OpenTrainLoader() {
  const SamplerPosition& at = state_.sampler;
  LoaderRequest request = TrainRequest(job_);
  request.start = {at.epoch, at.samples, at.skipped.empty() ? 0 : at.skipped[0]};
  request.stop = options_.stop;
  ASSIGN_OR_RETURN(loader_, OpenLoader(*job_.dataset.train, setup_.train_images, request),
                   "while opening dataset.train ({})", job_.Where("dataset.train"));
  PlanLength();
  ASSIGN_OR_RETURN(schedule_, MakeSchedule(iterations_per_epoch_, total_iterations_));
  if (const int64_t dropped = loader_->sampler().dropped_per_epoch(); dropped > 0) {
    options_.log->Info(fmt::format(
        "{} of {} samples are left out of each epoch: they do not fill a batch (drop_last)",
        dropped, setup_.train_images->size()));
  }
  return absl::OkStatus();
}

int64_t Trainer::UpdatesOf(int64_t batches) const {
  return (batches + job_.strategy.accumulate - 1) / job_.strategy.accumulate;
}

int64_t Trainer::IterationsLeft(const SamplerState& at) const {
  return UpdatesOf(loader_->sampler().batches_left(at));
}

void Trainer::PlanLength() {
  iterations_per_epoch_ = IterationsLeft({});
  // Counted from where the run stands: on resuming, batches and accumulation may be others than
  // those that made the iterations so far.
  const SamplerState at = loader_->state();
  const int64_t left = IterationsLeft(at);
  total_iterations_ = job_.train.max_iterations.value_or(std::numeric_limits<int64_t>::max());
  if (const auto epochs = job_.train.epochs; epochs.has_value()) {
    const int64_t to_come =
        at.epoch < *epochs ? left + (*epochs - at.epoch - 1) * iterations_per_epoch_ : 0;
    total_iterations_ = std::min(total_iterations_, state_.iteration + to_come);
  }
  const int64_t beyond = std::max<int64_t>(0, total_iterations_ - state_.iteration - left);
  total_epochs_ =
      at.epoch + 1 + beyond / iterations_per_epoch_ + (beyond % iterations_per_epoch_ > 0 ? 1 : 0);
}

bool Trainer::stopping() const {
  return options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed);
}

absl::StatusOr<TrainEnd> Trainer::Train() {
  if (state_.iteration >= total_iterations_ && !state_.evaluation_due) {
    options_.log->Info(fmt::format(
        "nothing to do: all {} iterations are done; raise train.epochs or train.max_iterations to "
        "go on",
        total_iterations_));
  }
  while (!stopping()) {
    const absl::StatusOr<bool> more = Step();
    if (absl::IsCancelled(more.status())) break;
    // What was trained up to damaged data is sound.
    if (absl::IsDataLoss(more.status()) &&
        state_.iteration > std::max<int64_t>(saved_iteration_, 0)) {
      RETURN_IF_ERROR(Save());
    }
    RETURN_IF_ERROR(more.status());
    if (!*more) break;
  }
  if (saved_iteration_ != state_.iteration) RETURN_IF_ERROR(Save());
  const bool finished = state_.iteration >= total_iterations_ && !state_.evaluation_due;
  return finished || !stopping() ? TrainEnd::kFinished : TrainEnd::kStopped;
}

absl::StatusOr<bool> Trainer::Step() {
  if (state_.evaluation_due) {
    RETURN_IF_ERROR(Evaluate());
    // Whether or not it is the best, the checkpoint that wants this evaluation is out of date.
    RETURN_IF_ERROR(Save());
  }
  if (state_.iteration >= total_iterations_) return false;
  const auto start = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(const std::vector<BatchPtr> batches, NextBatches());
  if (batches.empty()) return false;
  clock_.data += SecondsSince(start);
  const auto compute_start = std::chrono::steady_clock::now();
  RETURN_IF_ERROR(RunUpdate(batches));
  clock_.compute += SecondsSince(compute_start);
  ++state_.iteration;
  ++state_.updates;
  if (job_.train.ema.has_value()) ++state_.ema_updates;
  const SamplerState after = loader_->state();
  state_.sampler = {after.epoch, after.samples, {after.skipped}};
  epoch_ = batches.back()->epoch;
  const bool epoch_ended = after.epoch > epoch_ || IterationsLeft(after) == 0;
  if (epoch_ended) state_.epoch = epoch_ + 1;
  const double step = SecondsSince(start);
  mean_step_seconds_ = mean_step_seconds_ == 0 ? step : 0.95 * mean_step_seconds_ + 0.05 * step;
  const bool last = state_.iteration == total_iterations_;
  if (state_.iteration % job_.log.every_iterations == 0 || last) Report();
  state_.evaluation_due = EvaluationDue(epoch_ended) || (last && job_.dataset.eval.has_value());
  if (state_.evaluation_due) RETURN_IF_ERROR(Evaluate());
  const auto every = job_.checkpoint.every_iterations;
  if ((every.has_value() && state_.iteration % *every == 0) ||
      state_.best_iteration == state_.iteration) {
    RETURN_IF_ERROR(Save());
  }
  return true;
}

absl::StatusOr<std::vector<BatchPtr>> Trainer::NextBatches() {
  std::vector<BatchPtr> batches;
  while (static_cast<int64_t>(batches.size()) < job_.strategy.accumulate) {
    ASSIGN_OR_RETURN(BatchPtr batch, loader_->Next(), "while reading dataset.train ({})",
                     job_.Where("dataset.train"));
    if (batch == nullptr) {
      // An epoch's end closes the update. Right after a resume it may come first of all.
      if (!batches.empty() || loader_->state().epoch >=
                                  job_.train.epochs.value_or(std::numeric_limits<int64_t>::max())) {
        break;
      }
      continue;
    }
    RETURN_IF_ERROR(NoteBad(batch->bad));
    batches.push_back(std::move(batch));
  }
  return batches;
}

absl::Status Trainer::NoteBad(const std::vector<BadSample>& bad) {
  for (const BadSample& sample : bad) {
    options_.log->Warning(fmt::format("skipped {}: {}", sample.origin, sample.reason));
  }
  return absl::OkStatus();
}

absl::Status Trainer::RunUpdate(const std::vector<BatchPtr>& batches) {
  double targets = 0;
  for (const BatchPtr& batch : batches) {
    const auto labels = batch->Get("label").Elements<int64_t>();
    targets += static_cast<double>(labels.size()) -
               static_cast<double>(std::count(labels.begin(), labels.end(), ignore_index_));
  }
  RETURN_IF_ERROR(options_.comm->AllReduceSum({&targets, 1}));
  MicroArgs args{.inv_targets = targets > 0 ? 1.0 / targets : 0.0,
                 .seed = static_cast<uint64_t>(job_.train.seed),
                 .iteration = state_.iteration};
  double loss = 0;
  for (const BatchPtr& batch : batches) {
    const MicroBatch micro{batch->Get("image"), batch->Get("label")};
    ASSIGN_OR_RETURN(const double part, session_->RunMicro(micro, args));
    loss += part;
    args.first = false;
    args.sample_offset += batch->size;
  }
  clock_.samples += args.sample_offset;
  last_loss_ = loss;
  last_rate_ = schedule_->Rate(state_.updates);
  if (!std::isfinite(loss)) {
    return Diverged(std::isnan(loss) ? "the loss is NaN" : "the loss is infinite");
  }
  return session_->RunUpdate(last_rate_, state_.updates);
}

absl::Status Trainer::Diverged(const std::string& what) const {
  return absl::OutOfRangeError(fmt::format(
      "training diverged: {} at iteration {} (epoch {}, learning rate {}). Lower optimizer.lr, "
      "lengthen its warm-up or set optimizer.grad_clip; {}",
      what, state_.iteration, state_.epoch + 1, last_rate_,
      saved_iteration_ <= 0
          ? "nothing was saved yet"
          : fmt::format("the same command goes on from iteration {}; where that diverges too, name "
                        "an earlier checkpoint in checkpoint.resume, or none",
                        saved_iteration_)));
}

bool Trainer::EvaluationDue(bool epoch_ended) const {
  if (!job_.dataset.eval.has_value()) return false;
  const EvalSpec& eval = job_.eval;
  if (eval.every_iterations.has_value()) {
    return state_.iteration >= eval.start && state_.iteration % *eval.every_iterations == 0;
  }
  return epoch_ended && eval.every_epochs.has_value() && state_.epoch >= eval.start &&
         state_.epoch % *eval.every_epochs == 0;
}

absl::Status Trainer::Evaluate() {
  const auto start = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(const std::unique_ptr<Loader> loader,
                   OpenLoader(*job_.dataset.eval, setup_.eval_images,
                              {.mode = SamplerMode::kEvaluate, .stop = options_.stop}),
                   "while opening dataset.eval ({})", job_.Where("dataset.eval"));
  ASSIGN_OR_RETURN(const EvaluationResult result,
                   EvaluateAll(*session_, *loader, ignore_index_, options_.stop),
                   "while reading dataset.eval ({})", job_.Where("dataset.eval"));
  RETURN_IF_ERROR(NoteBad(result.bad));
  const std::string metric = job_.eval.metric.value_or(kDefaultMetric);
  ASSIGN_OR_RETURN(const double value, result.Metric(metric), "while reading {}",
                   job_.Where("eval.metric"));
  const bool best =
      std::isfinite(value) &&
      (!state_.best_metric.has_value() ||
       (HigherIsBetter(metric) ? value > *state_.best_metric : value < *state_.best_metric));
  state_.evaluation_due = false;
  if (best) {
    state_.best_metric = value;
    state_.best_iteration = state_.iteration;
  }
  options_.log->Eval({.iteration = state_.iteration,
                      .epoch = state_.epoch,
                      .metrics = result.metrics,
                      .samples = result.samples,
                      .seconds = SecondsSince(start),
                      .best = best});
  return absl::OkStatus();
}

absl::Status Trainer::Save() {
  std::vector<std::vector<HostState>> held;
  std::vector<TensorGroup> groups;
  for (const StateGroup group : kSavedGroups) {
    if (group == StateGroup::kEma && !job_.train.ema.has_value()) continue;
    ASSIGN_OR_RETURN(held.emplace_back(), ReadState(session_->executor(), group));
    if (group == StateGroup::kWeights) {
      // Such weights must never become the latest or the best ones.
      if (const HostState* bad = FindNotFinite(held.back()); bad != nullptr) {
        return Diverged(bad->name + " holds NaN or infinity");
      }
    }
    TensorGroup& out = groups.emplace_back();
    out.name = NameOf(group);
    for (const HostState& s : held.back()) out.tensors.push_back({s.name, s.view});
  }
  ASSIGN_OR_RETURN(const SavedCheckpoint saved, options_.store->Save(state_, groups),
                   "while saving iteration {}", state_.iteration);
  saved_iteration_ = state_.iteration;
  options_.log->Checkpoint(state_.iteration, saved.path);
  return absl::OkStatus();
}

void Trainer::Report() {
  const double seconds = clock_.data + clock_.compute;
  options_.log->Train(
      {.iteration = state_.iteration,
       .total_iterations = total_iterations_,
       .epoch = epoch_,
       .total_epochs = total_epochs_,
       .loss = last_loss_,
       .lr = last_rate_,
       .samples_per_s = seconds > 0 ? static_cast<double>(clock_.samples) / seconds : 0,
       .data_s = clock_.data,
       .compute_s = clock_.compute,
       .eta_s = mean_step_seconds_ * static_cast<double>(total_iterations_ - state_.iteration)});
  clock_ = {};
}

absl::StatusOr<TrainingSetup> SetUpTraining(const JobSpec& job, const EngineTables& tables) {
  RETURN_IF_ERROR(CheckSupported(job));
  RETURN_IF_ERROR(CheckTransforms(job));
  TrainingSetup setup;
  setup.request.model = job.model.choice;
  setup.request.frozen = job.model.freeze;
  const ModelRow* model = FindModel(tables.models, job.model.choice.name);
  CHECK(model != nullptr) << "the job reader lets only known models pass";
  const int64_t classes = setup.classes = model->classes(job.model.choice.options);
  if (job.loss.has_value()) setup.request.loss = job.loss->choice;
  if (job.optimizer.has_value()) {
    setup.request.update = MakeUpdateRule(*job.optimizer);
    RETURN_IF_ERROR(
        SetLayerRates(*job.optimizer,
                      model->layers == nullptr ? std::vector<ModelLayer>{} : model->layers(),
                      &setup.request.update),
        "while reading optimizer ({})", job.Where("optimizer"));
    if (job.train.ema.has_value()) setup.request.update.ema_decay = job.train.ema->decay;
  }
  if (job.dataset.train.has_value()) {
    ASSIGN_OR_RETURN(setup.train_images, OpenImages(*job.dataset.train, classes),
                     "while opening dataset.train ({})", job.Where("dataset.train"));
    ASSIGN_OR_RETURN(setup.request.train_batches,
                     TrainBatchShapes(*job.dataset.train, *setup.train_images));
  }
  if (job.dataset.eval.has_value()) {
    ASSIGN_OR_RETURN(setup.eval_images, OpenImages(*job.dataset.eval, classes),
                     "while opening dataset.eval ({})", job.Where("dataset.eval"));
    ASSIGN_OR_RETURN(setup.request.evaluate_batches,
                     EvaluateBatchShapes(*job.dataset.eval, *setup.eval_images));
  }
  return setup;
}

int64_t BatchBytes(const JobSpec& job, const TrainingSetup& setup) {
  int64_t bytes = 0;
  if (setup.train_images != nullptr) {
    bytes += LoaderBytes(*job.dataset.train, *setup.train_images, TrainRequest(job));
  }
  if (setup.eval_images != nullptr) {
    bytes += LoaderBytes(*job.dataset.eval, *setup.eval_images, kEvaluateRequest);
  }
  return bytes;
}

absl::Status CheckSupported(const JobSpec& job) {
  Diagnostics diagnostics;
  CheckOptions(job, &diagnostics);
  const auto refuse = [&](bool wanted, const std::string& path, const std::string& instead) {
    if (!wanted) return;
    diagnostics.Add(job.sources.Find(path), path, "not supported yet; " + instead);
  };
  refuse(job.amp.level != AmpSpec::Level::kOff, "amp.level", "use `off`");
  refuse(job.device == JobSpec::Device::kCuda, "device", "use `cpu` or `auto`");
  const HybridSpec& h = job.hybrid_configs;
  refuse(h.mode == HybridSpec::Mode::kAuto, "hybrid_configs", "leave it out");
  refuse(h.dp_degree > 1, "hybrid_configs.dp_degree", "this build runs one rank");
  refuse(h.mp_degree > 1, "hybrid_configs.mp_degree", "this build runs one rank");
  refuse(h.pp_degree > 1, "hybrid_configs.pp_degree", "this build runs one rank");
  refuse(h.sharding_degree > 1, "hybrid_configs.sharding_degree", "this build runs one rank");
  const StrategySpec& s = job.strategy;
  refuse(s.recompute != StrategySpec::Recompute::kNone, "strategy.recompute", "use `none`");
  refuse(s.micro_batches > 1, "strategy.micro_batches", "use strategy.accumulate");
  refuse(s.sync_every > 1, "strategy.sync_every", "use 1");
  refuse(s.dgc.has_value(), "strategy.dgc", "leave it out");
  refuse(s.offload != StrategySpec::Offload::kNone, "strategy.offload", "use `none`");
  return diagnostics.ToStatus();
}

}  // namespace capstan
