// What evaluation reports, through the real binary.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cases/run_trainer.h"

namespace capstan {
namespace {

using testing::HasSubstr;
using testing::Not;

void WriteJob(const JobFolder& job, int classes) {
  job.CopyPicture("really_png.JPEG", "a.png");
  job.Write("train.txt", "a.png 0\na.png 1\na.png 2\na.png 0\n");
  job.Write("val.txt", "a.png 0\na.png 1\na.png 2\n");
  job.Write("job.yaml", job.Classification(classes));
}

TEST(Evaluation, TopFiveOfThreeClasses) {  // EVAL-02
  const JobFolder job("top5");
  WriteJob(job, 3);
  const std::string note = "top5 is 1 for every sample, for the model has 3 classes";
  const Outcome train = job.Run("train");
  EXPECT_EQ(train.status, 0) << train.output;
  EXPECT_THAT(train.output, HasSubstr("warning: " + note));
  EXPECT_THAT(job.Read("output/metrics.jsonl"), HasSubstr("\"top5\":1.0,"));
  const Outcome eval = job.Run("eval");
  EXPECT_EQ(eval.status, 0) << eval.output;
  EXPECT_THAT(eval.output, HasSubstr("top5 1.00000"));
  EXPECT_THAT(eval.output, HasSubstr("warning: " + note));

  WriteJob(job, 6);
  EXPECT_THAT(job.Run("train", "-o checkpoint.resume=none").output, Not(HasSubstr("top5 is 1")));
}

TEST(Evaluation, AnUnknownMetricIsFoundBeforeTraining) {  // EVAL-02
  const JobFolder job("metric");
  WriteJob(job, 3);
  const Outcome out = job.Run("train", "-o eval.metric=top10");
  EXPECT_EQ(out.status, 2) << out.output;
  EXPECT_THAT(out.output, HasSubstr("eval.metric: 'top10' is not a metric; did you mean 'top1'? "
                                    "choose one of top1, top5, loss"));
  EXPECT_TRUE(job.Read("output/train.log").empty());
}

}  // namespace
}  // namespace capstan
