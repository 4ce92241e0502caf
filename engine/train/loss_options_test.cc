#include "engine/train/loss_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/config/choice_table.h"

namespace capstan {
namespace {

TEST(LossOptions, TableIsAChoiceOfTheJobReader) {
  ChoiceTable choices;
  for (const LossRow& row : LossRows()) {
    choices["loss"].push_back({row.name, row.options, row.doc});
  }
  CheckChoices(choices);
  EXPECT_THAT(ChoiceNames(choices, "loss"), testing::ElementsAre("cross_entropy"));
}

TEST(LossOptions, Defaults) {
  const AnyStruct options = AnyStruct::Create(*LossRows()[0].options);
  EXPECT_EQ(options.As<CrossEntropyOptions>().label_smoothing, 0);
  EXPECT_EQ(options.As<CrossEntropyOptions>().ignore_index, -100);
}

}  // namespace
}  // namespace capstan
