// The dialect of PaddleClas: Global, AMP, Arch, Loss, Optimizer, DataLoader, Infer, Metric, EMA.
// Source of the keys and their meaning: PaddleClas, docs/*/config_description and ppcls/engine.
#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "engine/config/dialect.h"
#include "engine/config/scalars.h"
#include "engine/config/typed_reader.h"

namespace capstan {
namespace {

namespace fs = std::filesystem;

constexpr char kRefused[] = "cannot be honoured yet";

// `pretrained: True` downloads weights there; False means none.
void ConvertPretrained(const YamlEntry& entry, const DialectRow& row, Translation* t) {
  bool on = false;
  if (entry.value.quoted || !ReadBool(entry.value, &on).empty()) {
    // Global.pretrained_model is loaded last there.
    if (t->Given("Global.pretrained_model") == nullptr) t->Set(row.to, entry.value);
  } else if (on) {
    t->Fault(entry.value.at, row.path,
             "nothing is downloaded here; give the weights file (.pdparams, .pth, safetensors)");
  }
}

void ConvertSyncBatchNorm(const YamlEntry& entry, const DialectRow& row, Translation* t) {
  if (t->IsOn(row.path)) t->SetText(row.to, "global", entry.value.at);
}

// The one name of a list like `- CELoss: {weight: 1.0}` and its options; false after a fault.
bool OnlyItem(const YamlEntry& entry, const std::string& path, Translation* t, YamlNode* list,
              SectionItem* item) {
  *list = entry.value;
  if (list->kind != YamlNode::Kind::kList || list->items.size() != 1) {
    t->Fault(entry.value.at, path, "expected a list of exactly one item, '- Name: {options}'");
    return false;
  }
  *item = SplitSectionItem(&list->items[0]);
  if (!item->problem.empty()) t->Fault(list->items[0].at, path + ".0", item->problem);
  return item->problem.empty();
}

// `Train: [{CELoss: {weight: 1.0, epsilon: 0.1}}]`.
void ConvertLoss(const YamlEntry& entry, const DialectRow& row, Translation* t) {
  YamlNode list;
  SectionItem item;
  if (!OnlyItem(entry, row.path, t, &list, &item)) return;
  const Position& at = list.items[0].at;
  t->SetText("loss.name", item.name == "CELoss" ? "cross_entropy" : item.name, at);
  if (item.body == nullptr) return;
  for (const YamlEntry& option : item.body->entries) {
    const std::string option_path = fmt::format("{}.0.{}.{}", row.path, item.name, option.key);
    if (option.value.kind == YamlNode::Kind::kNull) continue;
    if (option.key == "weight") {
      t->Set("loss.weight", option.value);
    } else if (option.key == "epsilon") {
      t->Set("loss.label_smoothing", option.value);
    } else {
      t->Fault(option.at, option_path, "unknown key; the keys here are weight, epsilon");
    }
  }
}

// `Eval: [{TopkAcc: {topk: [1, 5]}}]`: the first k decides which checkpoint is the best.
void ConvertMetric(const YamlEntry& entry, const DialectRow& row, Translation* t) {
  YamlNode list;
  SectionItem item;
  if (!OnlyItem(entry, row.path, t, &list, &item)) return;
  if (item.name != "TopkAcc") {
    t->Fault(list.items[0].at, row.path, NotOneOf(item.name, "a metric", {"TopkAcc"}));
    return;
  }
  const YamlEntry* topk = item.body == nullptr ? nullptr : item.body->Find("topk");
  if (topk == nullptr) return;
  const bool several = topk->value.kind == YamlNode::Kind::kList && !topk->value.items.empty();
  const YamlNode& k = several ? topk->value.items[0] : topk->value;
  t->SetText(row.to, "top" + k.text, k.at);
}

// Paths of lists are relative to the working directory there, to the pictures' folder here.
void ConvertList(const YamlEntry& entry, const DialectRow& row, Translation* t) {
  YamlNode value = entry.value;
  const YamlNode* root = t->Given(row.path.substr(0, row.path.rfind('.')) + ".image_root");
  if (value.kind == YamlNode::Kind::kScalar && root != nullptr) {
    const fs::path list = fs::path(value.text).lexically_normal();
    const fs::path folder = fs::path(root->text).lexically_normal();
    const fs::path below = list.lexically_relative(folder);
    const bool inside = !below.empty() && *below.begin() != "..";
    value.text = inside ? below.string() : fs::absolute(list).string();
  }
  t->Set(row.to, std::move(value));
}

// Steps have the same names and options, but for what OpenCV or Pillow is asked to do.
void ConvertTransforms(const YamlEntry& entry, const DialectRow& row, Translation* t) {
  YamlNode list = entry.value;
  for (size_t i = 0; i < list.items.size(); ++i) {
    YamlNode& step = list.items[i];
    const SectionItem item = SplitSectionItem(&step);
    const std::string step_path = fmt::format("{}.{}.{}", row.path, i, item.name);
    if (item.body != nullptr) {
      if (YamlEntry* scale = item.body->Find("scale")) scale->value.quoted = false;
      if (YamlEntry* backend = item.body->Find("backend")) {
        if (backend->value.text == "pil") {
          backend->key = "antialias";
          backend->value = YamlNode::Scalar("true", backend->value.at);
        } else {
          t->Ignore(backend->at, step_path + ".backend", "pictures are scaled as OpenCV does");
          item.body->entries.erase(item.body->entries.begin() +
                                   (backend - item.body->entries.data()));
        }
      }
    }
  }
  t->Set(row.to, std::move(list));
}

// One-dimensional parameters are biases and those of norms.
void ConvertNoDecay(const YamlEntry& entry, const DialectRow& row, Translation* t) {
  if (!t->IsOn(row.path)) return;
  YamlNode roles = YamlNode::Null(entry.value.at);
  roles.kind = YamlNode::Kind::kList;
  roles.items = {YamlNode::Scalar("bias", entry.value.at),
                 YamlNode::Scalar("norm", entry.value.at)};
  t->Set(row.to, std::move(roles));
}

void RefuseUnlessEmpty(const YamlEntry& entry, const DialectRow& row, Translation* t) {
  const YamlNode& value = entry.value;
  if (value.kind == YamlNode::Kind::kList && value.items.empty()) return;
  t->Fault(value.at, row.path, std::string(kRefused) + "; remove the key");
}

// `Linear` there is a polynomial of power 1.
void ConvertPower(const YamlEntry& entry, const DialectRow& row, Translation* t) {
  double power = 0;
  if (ReadFloat(entry.value, &power).empty() && power == 1) return;
  t->Set(row.to, entry.value);
}

// Epochs of change count from the end of warm-up there, from the start of training here.
void ConvertDecayEpochs(const YamlEntry& entry, const DialectRow& row, Translation* t) {
  YamlNode epochs = entry.value;
  const YamlNode* warmup = t->Given("Optimizer.lr.warmup_epoch");
  double shift = 0;
  if (warmup != nullptr && ReadFloat(*warmup, &shift).empty() && shift > 0) {
    for (YamlNode& epoch : epochs.items) {
      double value = 0;
      if (ReadFloat(epoch, &value).empty()) epoch.text = fmt::format("{}", value + shift);
    }
  }
  t->Set(row.to, std::move(epochs));
}

void ReadByFinish(const YamlEntry&, const DialectRow&, Translation*) {}

void Finish(Translation* t) {
  // There, a job evaluates while training only where it says so.
  if (!t->IsOn("Global.eval_during_train")) {
    const YamlNode* given = t->Given("Global.eval_during_train");
    const YamlNode* global = t->Given("Global");
    if (global != nullptr) {
      t->Set("eval.every_epochs", YamlNode::Null(given != nullptr ? given->at : global->at));
    }
  }
  // An AMP section turns it on, unless it says otherwise.
  if (const YamlNode* amp = t->Given("AMP")) {
    const bool off = t->Given("AMP.use_amp") != nullptr && !t->IsOn("AMP.use_amp");
    if (off) t->SetText("amp.level", "off", amp->at);
    if (t->Find("amp.level") == nullptr) t->SetText("amp.level", "O1", amp->at);
    if (t->Find("amp.dtype") == nullptr) t->SetText("amp.dtype", "float16", amp->at);
  }
  if (const YamlNode* power = t->Find("optimizer.lr.power")) {
    t->SetText("optimizer.lr.name", "polynomial", power->at);
  }
  // L2 of Paddle takes every parameter.
  if (const YamlNode* optimizer = t->Given("Optimizer")) {
    if (t->Find("optimizer.no_decay") == nullptr) {
      YamlNode none = YamlNode::Null(optimizer->at);
      none.kind = YamlNode::Kind::kList;
      t->Set("optimizer.no_decay", std::move(none));
    }
  }
}

void AddLoader(const std::string& theirs, const std::string& ours, std::vector<DialectRow>* rows) {
  const std::string from = "DataLoader." + theirs + ".", to = "dataset." + ours + ".";
  const std::vector<DialectRow> more = {
      {.path = from + "dataset.name",
       .to = to + "type",
       .words = {{"ImageNetDataset", "image_list"}}},
      {.path = from + "dataset.image_root", .to = to + "root"},
      {.path = from + "dataset.cls_label_path", .to = to + "list", .convert = ConvertList},
      {.path = from + "dataset.delimiter", .to = to + "delimiter"},
      {.path = from + "dataset.transform_ops",
       .to = to + "transforms",
       .convert = ConvertTransforms},
      {.path = from + "dataset.batch_transform_ops", .why = kRefused, .convert = RefuseUnlessEmpty},
      {.path = from + "sampler.name", .why = "each rank takes its share of every epoch by itself"},
      {.path = from + "sampler.batch_size", .to = to + "batch_size"},
      {.path = from + "loader.num_workers", .to = to + "loader.num_workers"},
      {.path = from + "loader.use_shared_memory",
       .why = "workers are threads and share memory anyway"}};
  rows->insert(rows->end(), more.begin(), more.end());
}

}  // namespace

Dialect PaddleClasDialect() {
  std::vector<DialectRow> rows = {
      {.path = "Global.checkpoints", .to = "checkpoint.resume"},
      {.path = "Global.pretrained_model", .to = "model.pretrained"},
      {.path = "Global.output_dir", .to = "output_dir"},
      {.path = "Global.device", .to = "device", .words = {{"gpu", "cuda"}}},
      {.path = "Global.save_interval",
       .why = "checkpoints are counted in updates (checkpoint.every_iterations), and the last and "
              "the best are always kept"},
      {.path = "Global.max_num_latest_checkpoint", .to = "checkpoint.keep"},
      {.path = "Global.eval_during_train", .to = "eval.every_epochs", .convert = ReadByFinish},
      {.path = "Global.eval_interval", .to = "eval.every_epochs"},
      {.path = "Global.start_eval_epoch", .to = "eval.start"},
      {.path = "Global.epochs", .to = "train.epochs"},
      {.path = "Global.seed", .to = "train.seed"},
      {.path = "Global.update_freq", .to = "strategy.accumulate"},
      {.path = "Global.print_batch_step", .to = "log.every_iterations"},
      {.path = "Global.class_num", .to = "model.classes"},
      {.path = "Global.use_visualdl", .why = "metrics.jsonl in output_dir has every figure"},
      {.path = "Global.image_shape", .why = "the transforms decide the size"},
      {.path = "Global.save_inference_dir", .why = "`trainer export --to` names its file itself"},
      {.path = "Global.infer_imgs", .why = "`trainer predict` takes its pictures as arguments"},
      {.path = "Global.to_static", .why = "the graph is always compiled"},
      {.path = "Global.use_dali", .why = "pictures are decoded by this program's own loader"},
      {.path = "Global.distributed", .why = "hybrid_configs says how ranks are used"},
      {.path = "Global.profiler_options", .why = "profiling has its own command"},
      {.path = "Global.task", .why = "there is only classification", .only = "classification"},
      {.path = "Global.train_mode", .why = "there is only one way", .only = "classification"},
      {.path = "Global.eval_mode", .why = "there is only one way", .only = "classification"},
      {.path = "Global.use_multilabel", .why = "a picture has one class", .only = "False"},

      {.path = "AMP.use_amp", .to = "amp.level", .convert = ReadByFinish},
      {.path = "AMP.level", .to = "amp.level", .words = {{"O0", "off"}}},
      {.path = "AMP.dtype", .to = "amp.dtype"},
      {.path = "AMP.scale_loss", .to = "amp.scale_loss"},
      {.path = "AMP.use_dynamic_loss_scaling", .to = "amp.use_dynamic_loss_scaling"},
      {.path = "AMP.use_fp16_test", .why = "evaluation computes in the types of training"},
      {.path = "AMP.use_promote", .why = "types follow the table of operators"},

      {.path = "Arch.name", .to = "model.name", .category = "model"},
      {.path = "Arch.class_num", .to = "model.classes"},
      {.path = "Arch.pretrained", .to = "model.pretrained", .convert = ConvertPretrained},
      {.path = "Arch.input_image_channel", .to = "model.in_channels"},
      {.path = "Arch.data_format", .why = "the compiler chooses the order in memory"},
      {.path = "Arch.use_sync_bn", .to = "model.batch_norm_stats", .convert = ConvertSyncBatchNorm},
      {.path = "Arch.use_ssld", .why = "nothing is downloaded here", .only = "False"},
      {.path = "Arch.lr_mult_list", .to = "optimizer.layer_lr_factors"},

      {.path = "Loss.Train", .to = "loss", .convert = ConvertLoss},
      {.path = "Loss.Eval", .why = "evaluation reports the loss of training"},

      {.path = "Optimizer.name", .to = "optimizer.name", .category = "optimizer"},
      {.path = "Optimizer.momentum", .to = "optimizer.momentum"},
      {.path = "Optimizer.use_nesterov", .to = "optimizer.use_nesterov"},
      {.path = "Optimizer.beta1", .to = "optimizer.beta1"},
      {.path = "Optimizer.beta2", .to = "optimizer.beta2"},
      {.path = "Optimizer.epsilon", .to = "optimizer.epsilon"},
      {.path = "Optimizer.weight_decay", .to = "optimizer.weight_decay"},
      {.path = "Optimizer.one_dim_param_no_weight_decay",
       .to = "optimizer.no_decay",
       .convert = ConvertNoDecay},
      {.path = "Optimizer.no_weight_decay_name", .why = kRefused, .convert = RefuseUnlessEmpty},
      {.path = "Optimizer.clip_norm", .to = "optimizer.grad_clip.norm"},
      {.path = "Optimizer.clip_norm_global", .to = "optimizer.grad_clip.global_norm"},
      {.path = "Optimizer.multi_precision",
       .why = "amp O2 always keeps weights in 32 bits as well"},
      {.path = "Optimizer.regularizer.name", .why = "weights decay by L2", .only = "L2"},
      {.path = "Optimizer.regularizer.coeff", .to = "optimizer.weight_decay"},
      {.path = "Optimizer.lr.name",
       .to = "optimizer.lr.name",
       .words = {{"MultiStepDecay", "multi_step"}},
       .category = "lr"},
      {.path = "Optimizer.lr.learning_rate", .to = "optimizer.lr.base"},
      {.path = "Optimizer.lr.warmup_epoch", .to = "optimizer.lr.warmup_epochs"},
      {.path = "Optimizer.lr.warmup_start_lr", .to = "optimizer.lr.warmup_start"},
      {.path = "Optimizer.lr.decay_epochs",
       .to = "optimizer.lr.decay_epochs",
       .convert = ConvertDecayEpochs},
      {.path = "Optimizer.lr.milestones",
       .to = "optimizer.lr.decay_epochs",
       .convert = ConvertDecayEpochs},
      {.path = "Optimizer.lr.values", .to = "optimizer.lr.values"},
      {.path = "Optimizer.lr.step_size", .to = "optimizer.lr.step_epochs"},
      {.path = "Optimizer.lr.gamma", .to = "optimizer.lr.gamma"},
      {.path = "Optimizer.lr.eta_min", .to = "optimizer.lr.end"},
      {.path = "Optimizer.lr.end_lr", .to = "optimizer.lr.end"},
      {.path = "Optimizer.lr.power", .to = "optimizer.lr.power", .convert = ConvertPower},
      {.path = "Optimizer.lr.cycle", .why = "the rate never rises again", .only = "False"},
      {.path = "Optimizer.lr.by_epoch",
       .why = "the rate changes with every update",
       .only = "False"},
      {.path = "Optimizer.lr.last_epoch",
       .why = "a checkpoint knows where it stands",
       .only = "-1"},

      {.path = "DataLoader.Train.sampler.drop_last", .to = "dataset.train.drop_last"},
      {.path = "DataLoader.Train.sampler.shuffle", .to = "dataset.train.shuffle"},
      {.path = "DataLoader.Eval.sampler.drop_last",
       .why = "evaluation sees every sample exactly once"},
      {.path = "DataLoader.Eval.sampler.shuffle", .why = "the order of evaluation changes nothing"},

      {.path = "Infer", .why = "`trainer predict` prepares pictures as DataLoader.Eval says"},
      {.path = "Metric.Train", .why = "training reports its loss; accuracy is measured on Eval"},
      {.path = "Metric.Eval", .to = "eval.metric", .convert = ConvertMetric},
      {.path = "EMA.decay", .to = "train.ema.decay"}};
  AddLoader("Train", "train", &rows);
  AddLoader("Eval", "eval", &rows);
  return {"PaddleClas", {"Arch", "DataLoader"}, std::move(rows), Finish};
}

}  // namespace capstan
