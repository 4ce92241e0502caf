#include "tools/trainer/registry.h"

#include "engine/data/image_dataset.h"
#include "engine/data/image_pipeline.h"
#include "engine/train/loss_options.h"
#include "engine/train/optimizer_options.h"
#include "engine/train/schedule.h"
#include "models/model_table.h"
#include "ops/op_table.h"

namespace capstan {
namespace {

template <typename Rows>
std::vector<Choice> ChoicesOf(const Rows& rows) {
  std::vector<Choice> choices;
  for (const auto& row : rows) choices.push_back({row.name, row.options, row.doc});
  return choices;
}

}  // namespace

EngineTables MakeTables() {
  EngineTables tables{
      .ops = OpTable(AllOps()), .kernels = KernelTable(AllKernels()), .models = AllModels()};
  tables.choices["model"] = ChoicesOf(tables.models);
  tables.choices["dataset"] = ChoicesOf(ImageDatasetChoices());
  tables.choices["transform"] = ChoicesOf(TransformChoices());
  tables.choices["loss"] = ChoicesOf(LossRows());
  tables.choices["optimizer"] = ChoicesOf(OptimizerRows());
  tables.choices["lr"] = ChoicesOf(ScheduleRows());
  return tables;
}

}  // namespace capstan
