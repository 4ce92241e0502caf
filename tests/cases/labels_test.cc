// Lists of labelled pictures as users write them, through the real binary.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cases/run_trainer.h"

namespace capstan {
namespace {

using testing::HasSubstr;

// A job for 3 classes whose lists are given; every picture that they name by `*.png` is there.
void WriteJob(const JobFolder& job, const std::string& train, const std::string& val) {
  for (const char* name : {"a.png", "b.png", "c.png"}) job.CopyPicture("really_png.JPEG", name);
  job.Write("train.txt", train);
  job.Write("val.txt", val);
  job.Write("job.yaml", job.Classification(3));
}

const std::string kByteOrderMark = "\xEF\xBB\xBF";
const std::string kVal = "a.png 0\n";

TEST(Labels, ByteOrderMarkCrLfAndBlankLines) {  // LBL-01
  for (const std::string end : {"\r\n", ""}) {
    const JobFolder job("lines");
    WriteJob(job, kByteOrderMark + "a.png\t1\r\n\r\nb.png\t2" + end, kVal);
    const Outcome out = job.Run("train", "-o 'dataset.train.delimiter=\"\\t\"'");
    EXPECT_EQ(out.status, 0) << out.output;
    EXPECT_EQ(out.output.find("skipped"), std::string::npos) << out.output;
  }
}

TEST(Labels, ALineWithoutTheDelimiterIsNamed) {  // LBL-02
  std::string list;
  for (int i = 1; i <= 100; ++i) list += i == 37 ? "d.jpg    0\n" : "a.png\t0\n";
  const JobFolder job("delimiter");
  WriteJob(job, list, kVal);
  const Outcome one = job.Run("train", "-o 'dataset.train.delimiter=\"\\t\"'");
  EXPECT_EQ(one.status, 3) << one.output;
  EXPECT_LT(one.seconds, 10);
  EXPECT_THAT(one.output, HasSubstr("train.txt:37: no delimiter"));
  EXPECT_THAT(one.output, HasSubstr("1 line(s) cannot be used"));
  EXPECT_EQ(job.Read("output/metrics.jsonl").find("\"train\""), std::string::npos);

  const Outcome all = job.Run("train");  // a space, the default: lines 1..36 have none
  EXPECT_EQ(all.status, 3) << all.output;
  EXPECT_THAT(all.output, HasSubstr("99 line(s) cannot be used"));
  EXPECT_THAT(all.output, HasSubstr("set delimiter: \"\\t\""));
}

TEST(Labels, PathsMayHoldBlanks) {  // LBL-03
  for (const std::string delimiter : {" ", "\t"}) {
    const JobFolder job("blanks");
    WriteJob(job, "dog 1/img (2).jpg" + delimiter + "0\n中文 目录/a.jpg" + delimiter + "1\n", kVal);
    job.CopyPicture("red.jpg", "dog 1/img (2).jpg");
    job.CopyPicture("red.jpg", "中文 目录/a.jpg");
    const Outcome out =
        job.Run("train", delimiter == " " ? "" : "-o 'dataset.train.delimiter=\"\\t\"'");
    EXPECT_EQ(out.status, 0) << out.output;
    EXPECT_EQ(out.output.find("skipped"), std::string::npos) << out.output;
  }
}

TEST(Labels, ClassIdsOutOfRangeAreFoundInBothLists) {  // LBL-04
  const std::string good = "a.png 0\nb.png 1\nc.png 2\n";
  for (const auto& [value, problem] : std::vector<std::pair<std::string, std::string>>{
           {"3", "class id 3 is outside 0..2"},
           {"-1", "class id -1 is outside 0..2"},
           {"1.0", "class id '1.0' is not a whole number"},
           {"x", "class id 'x' is not a whole number"},
           {"", "no delimiter \" \" between path and class id"}}) {
    SCOPED_TRACE("value '" + value + "'");
    const std::string bad = good + "a.png " + value + "\n";
    for (const bool in_train : {true, false}) {
      const JobFolder job("range");
      WriteJob(job, in_train ? bad : good, in_train ? good : bad);
      const Outcome out = job.Run("train");
      EXPECT_EQ(out.status, 3) << out.output;
      EXPECT_LT(out.seconds, 10);
      EXPECT_THAT(out.output,
                  HasSubstr(fmt::format("{}.txt:4: {}", in_train ? "train" : "val", problem)));
    }
  }
}

TEST(Labels, SetsTooSmallForABatch) {  // LBL-08
  const JobFolder job("small");
  std::string val;
  for (int i = 0; i < 20; ++i) val += "a.png 1\n";
  WriteJob(job, "a.png 0\nb.png 1\na.png 2\nb.png 0\nc.png 1\n", val);
  const Outcome whole = job.Run("train", "-o dataset.eval.batch_size=64");
  EXPECT_EQ(whole.status, 0) << whole.output;
  EXPECT_THAT(job.Read("output/metrics.jsonl"), HasSubstr("\"samples\":20"));

  const Outcome no_step = job.Run("train", "-o dataset.train.batch_size=8 checkpoint.resume=none");
  EXPECT_EQ(no_step.status, 2) << no_step.output;
  EXPECT_THAT(no_step.output, HasSubstr("5 samples, batch 8, drop_last: no step possible"));

  job.Write("train.txt", "");
  const Outcome empty = job.Run("train");
  EXPECT_EQ(empty.status, 3) << empty.output;
  EXPECT_THAT(empty.output, HasSubstr("train.txt: the image list is empty"));
}

}  // namespace
}  // namespace capstan
