// Passes: text in, text out; and equal numbers before and after.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "engine/base/status.h"
#include "engine/ir/text.h"
#include "engine/ir/verify.h"
#include "engine/passes/pass.h"
#include "engine/passes/pipeline.h"
#include "tests/compiler/programs.h"

namespace capstan {
namespace {

// Convolution, batch norm, relu, residual add, mean over the image, classifier, loss.
constexpr char kResidual[] = R"(graph micro {
  %0 = data image : f64[3,4,5,5]
  %1 = data label : i64[3]
  %2 = data inv_targets : f64[]
  %3 = param conv.weight : f64[4,4,3,3] role=weight init={kind=normal, value=0.3}
  %4 = param bn.weight : f64[4] role=norm init={value=1}
  %5 = param bn.bias : f64[4] role=norm init={}
  %6 = param fc.weight : f64[3,4] role=weight init={kind=normal, value=0.3}
  %7 = state bn.running_mean : f64[4] init={}
  %8 = state bn.running_var : f64[4] init={value=1}
  %9 = conv2d(%0, %3){padding=[1, 1]} : f64[3,4,5,5] @conv
  %10, %11, %12, %13, %14 = batch_norm(%9, %4, %5, %7, %8){STATS} : f64[3,4,5,5], f64[4], f64[4], f64[4], f64[4] @bn
  %15 = add(%10, %0){} : f64[3,4,5,5] @block
  %16 = relu(%15){} : f64[3,4,5,5] @block
  %17 = global_avg_pool(%16){} : f64[3,4,1,1] @pool
  %18 = reshape(%17){shape=[3, 4]} : f64[3,4] @fc
  %19 = matmul(%18, %6){transpose_b=true} : f64[3,3] @fc
  %20 = softmax_cross_entropy(%19, %1){} : f64[3] @loss
  %21 = reduce_sum(%20){} : f64[] @loss
  %22 = scale(%21, %2){} : f64[] @loss
  update %7 = %13
  update %8 = %14
  output loss = %22
}
)";

std::string Residual(const std::string& stats) {
  std::string text = kResidual;
  text.replace(text.find("STATS"), 5, stats);
  return text;
}

PassContext Context() {
  return {.ops = &TestOps(),
          .update = {.row = "momentum_update",
                     .attrs = "{momentum=0.9}",
                     .slots = {"momentum"},
                     .weight_decay = 0.01,
                     .no_decay = {Role::kNorm},
                     .clip_global_norm = 0.5}};
}

// The text of the first program after one pass.
std::string After(absl::StatusOr<bool> (*pass)(Module&, const PassContext&),
                  const std::string& text) {
  Module module = ParseModule({{ProgramKind::kMicro, text}});
  const absl::StatusOr<bool> changed = pass(module, Context());
  EXPECT_TRUE(changed.ok()) << changed.status();
  return PrintGraph(module.programs[0].graph);
}

TEST(Simplify, DropsMergesAndRemovesWhatChangesNothing) {
  EXPECT_EQ(After(Simplify, R"(graph micro {
  %0 = data x : f32[2,3]
  %1 = relu(%0){} : f32[2,3] @a
  %2 = relu(%0){} : f32[2,3] @b
  %3 = add(%1, %2){} : f32[2,3] @c
  %4 = reshape(%3){shape=[2, 3]} : f32[2,3] @d
  %5 = relu(%3){} : f32[2,3] @unused
  output y = %4
}
)"),
            R"(graph micro {
  %0 = data x : f32[2,3]
  %1 = relu(%0){} : f32[2,3] @a
  %2 = add(%1, %1){} : f32[2,3] @c
  output y = %2
}
)");
}

TEST(Simplify, KeepsRandomRowsOfDifferentStreamsApart) {
  const std::string text = R"(graph micro {
  %0 = data x : f32[2,3]
  %1 = dropout(%0){stream="a"} : f32[2,3] @a
  %2 = dropout(%0){stream="b"} : f32[2,3] @b
  %3 = add(%1, %2){} : f32[2,3] @c
  output y = %3
}
)";
  EXPECT_EQ(After(Simplify, text), text);
}

TEST(Differentiate, WritesTheBackwardAsGraph) {
  Module module = ParseModule({{ProgramKind::kMicro, R"(graph micro {
  %0 = data x : f32[2,3]
  %1 = param w : f32[3,4] role=weight init={}
  %2 = matmul(%0, %1){} : f32[2,4] @fc
  %3 = relu(%2){} : f32[2,4] @fc
  %4 = reduce_sum(%3){} : f32[] @loss
  output loss = %4
}
)"}});
  ASSERT_TRUE(*Differentiate(module, Context()));
  ASSERT_EQ(module.programs.size(), 2u);
  EXPECT_EQ(PrintGraph(module.programs[0].graph), R"(graph micro_first {
  %0 = data x : f32[2,3]
  %1 = param w : f32[3,4] role=weight init={}
  %2 = state w@grad : f32[3,4] init={}
  %3 = matmul(%0, %1){} : f32[2,4] @fc
  %4 = relu(%3){} : f32[2,4] @fc
  %5 = reduce_sum(%4){} : f32[] @loss
  %6 = fill(){value=1} : f32[] from differentiate
  %7 = broadcast(%6){axes=[0, 1], sizes=[2, 4]} : f32[2,4] @loss from differentiate
  %8 = relu_grad(%4, %7){} : f32[2,4] @fc from differentiate
  %9 = matmul(%0, %8){transpose_a=true} : f32[3,4] @fc from differentiate
  update %2 = %9
  output loss = %5
}
)");
  const std::string next = PrintGraph(module.programs[1].graph);
  EXPECT_NE(next.find("%10 = add(%2, %9){}"), std::string::npos) << next;
}

TEST(Differentiate, LaterBatchesAddTheirGradients) {
  Module module = ParseModule({{ProgramKind::kMicro, Residual("")}});
  ASSERT_TRUE(*Differentiate(module, Context()));
  // Both variants run on the same batch: the second adds as much again.
  const Results twice = RunAll(module, "reference");
  module.programs.pop_back();
  const Results once = RunAll(module, "reference");
  const std::vector<double>&a = once.at("conv.weight@grad"), &b = twice.at("conv.weight@grad");
  double norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(b[i], 2 * a[i], 1e-12);
    norm += a[i] * a[i];
  }
  EXPECT_GT(norm, 1e-6);
}

// Runs the passes up to and with `last` and compares what the programs compute with `before`.
void ExpectSameNumbers(const std::string& last, const std::string& stats, int64_t data_ranks) {
  Module module = ParseModule({{ProgramKind::kMicro, Residual(stats)}});
  PassContext context = Context();
  context.data_ranks = data_ranks;
  Results before;
  for (const Pass& pass : DefaultPipeline()) {
    if (pass.name == last) before = RunAll(module, "reference");
    const absl::StatusOr<bool> changed = pass.fn(module, context);
    ASSERT_TRUE(changed.ok()) << changed.status();
    if (pass.name != last) continue;
    EXPECT_TRUE(*changed) << last;
    for (const Program& p : module.programs) {
      EXPECT_TRUE(VerifyGraph(p.graph, pass.stage_out).ok()) << p.graph.name;
    }
    ExpectNear(before, RunAll(module, "reference"), 1e-10);
    return;
  }
  FAIL() << "no pass " << last;
}

TEST(Layout, KeepsNumbers) { ExpectSameNumbers("layout", "", 1); }
TEST(Fuse, KeepsNumbers) { ExpectSameNumbers("fuse", "", 1); }
TEST(DecomposeBatchNorm, KeepsNumbers) {
  ExpectSameNumbers("decompose_batch_norm", "stats=global", 2);
}

TEST(DecomposeBatchNorm, LeavesLocalStatisticsAndOneRankAlone) {
  for (const auto& [stats, ranks] : {std::pair("", 2), std::pair("stats=global", 1)}) {
    Module module = ParseModule({{ProgramKind::kMicro, Residual(stats)}});
    PassContext context = Context();
    context.data_ranks = ranks;
    EXPECT_FALSE(*DecomposeBatchNorm(module, context)) << stats;
  }
}

TEST(Optimizer, BucketsByDecayAndClipsOverAllOfThem) {
  Module module = ParseModule({{ProgramKind::kMicro, Residual("")}});
  ASSERT_TRUE(*Differentiate(module, Context()));
  ASSERT_TRUE(*AddOptimizer(module, Context()));
  ASSERT_EQ(module.buckets.size(), 2u);
  EXPECT_EQ(module.buckets[0].name, "f64.decay");
  EXPECT_EQ(module.buckets[0].segments[0].param, "fc.weight");
  EXPECT_EQ(module.buckets[0].segments[1].offset % 16, 0);
  EXPECT_EQ(module.buckets[1].name, "f64.no_decay");
  const std::string update = PrintGraph(module.programs.back().graph);
  EXPECT_NE(update.find("squared_norm("), std::string::npos) << update;
  EXPECT_NE(update.find("weight_decay=0.01"), std::string::npos) << update;
}

// Two kinds of buckets even without decay; each knows where its tensors end.
TEST(Optimizer, LayerwiseRowsKnowTheirSegments) {
  PassContext context = Context();
  context.update = {.row = "lars_update",
                    .attrs = "{trust=0.5}",
                    .slots = {"momentum"},
                    .no_decay = {Role::kNorm},
                    .layerwise = true};
  const auto update = [&] {
    Module module = ParseModule({{ProgramKind::kMicro, Residual("")}});
    EXPECT_TRUE(*Differentiate(module, context));
    EXPECT_TRUE(*AddOptimizer(module, context));
    EXPECT_EQ(module.buckets.size(), 2u);
    for (const Bucket& bucket : module.buckets) {
      std::string ends;
      for (size_t i = 1; i < bucket.segments.size(); ++i) {
        ends += std::to_string(bucket.segments[i].offset) + ", ";
      }
      const std::string text = "segment_ends=[" + ends + std::to_string(bucket.count) + "]";
      const std::string printed = PrintGraph(module.programs.back().graph);
      EXPECT_NE(printed.find(text), std::string::npos) << text << "\n" << printed;
    }
    return PrintGraph(module.programs.back().graph);
  };
  EXPECT_NE(update().find("adapt=false"), std::string::npos) << update();
  context.update.adapt_all = true;
  EXPECT_EQ(update().find("adapt=false"), std::string::npos) << update();
}

// Evaluation reads averages of weights and statistics, the update program moves them at its end;
// frozen parameters are read as they are.
TEST(Average, IsKeptByUpdatesAndReadByEvaluation) {
  std::string evaluate = kResidual;
  evaluate = evaluate.substr(0, evaluate.find("  update %7"));
  evaluate.replace(evaluate.find("batch_norm(%9, %4, %5, %7, %8){STATS}"), 37,
                   "batch_norm(%9, %4, %5, %7, %8){}");
  evaluate += "  output loss = %21\n}\n";
  const std::string micro = Residual("");
  PassContext context = Context();
  context.frozen = {"bn.bias"};
  Module module = ParseModule({{ProgramKind::kMicro, micro}, {ProgramKind::kEvaluate, evaluate}});
  ASSERT_TRUE(*Differentiate(module, context));
  ASSERT_TRUE(*AddOptimizer(module, context));
  EXPECT_FALSE(*AddAverages(module, context));
  context.update.ema_decay = 0.75;
  ASSERT_TRUE(*AddAverages(module, context));
  std::string update, read;
  for (const Program& p : module.programs) {
    ASSERT_TRUE(VerifyGraph(p.graph, Stage::kOptimized).ok());
    if (p.kind == ProgramKind::kUpdate) update = PrintGraph(p.graph);
    if (p.kind == ProgramKind::kEvaluate) read = PrintGraph(p.graph);
  }
  ASSERT_EQ(module.buckets.size(), 3u);
  EXPECT_EQ(module.buckets[2].name, "f64.statistics");
  EXPECT_EQ(module.buckets[2].segments.size(), 2u);
  for (const char* text : {"ema_update(", "{decay=0.75}", "state f64.decay@ema",
                           "state f64.no_decay@ema", "state f64.statistics@weight"}) {
    EXPECT_NE(update.find(text), std::string::npos) << text << "\n" << update;
  }
  for (const char* text : {"state conv.weight@ema", "state bn.weight@ema", "param bn.bias",
                           "state bn.running_var@ema", "state fc.weight@ema"}) {
    EXPECT_NE(read.find(text), std::string::npos) << text << "\n" << read;
  }
  EXPECT_EQ(read.find("param conv.weight"), std::string::npos) << read;
}

TEST(Optimizer, RefusesToTrainNothing) {
  Module module = ParseModule({{ProgramKind::kMicro, Residual("")}});
  PassContext context = Context();
  context.frozen = {"conv.weight", "bn.weight", "bn.bias", "fc.weight"};
  ASSERT_TRUE(*Differentiate(module, context));
  const absl::StatusOr<bool> result = AddOptimizer(module, context);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(MessageOf(result.status()).find("no parameter is trained"), std::string::npos);
}

TEST(Fuse, FoldsBatchNormAddAndRelu) {
  Module module = ParseModule({{ProgramKind::kMicro, Residual("")}});
  PipelineReport report;
  ASSERT_TRUE(RunPipeline(DefaultPipeline(), Context(), {}, &module, &report).ok());
  const std::string text = PrintGraph(module.programs[0].graph);
  EXPECT_NE(text.find("relu=true"), std::string::npos) << text;
  EXPECT_EQ(text.find("= relu("), std::string::npos) << text;
}

TEST(Pipeline, DumpsWhatIsAskedForAndReportsEveryPass) {
  Module module = ParseModule({{ProgramKind::kMicro, Residual("")}});
  const std::string folder = testing::TempDir() + "/dump";
  std::filesystem::remove_all(folder);
  PipelineReport report;
  ASSERT_TRUE(RunPipeline(DefaultPipeline(), Context(), {.folder = folder, .regex = "^layout$"},
                          &module, &report)
                  .ok());
  EXPECT_EQ(report.passes.size(), DefaultPipeline().size());
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    EXPECT_NE(file.path().string().find("layout"), std::string::npos);
    std::ifstream in(file.path());
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    std::string_view rest = text;
    const absl::StatusOr<Graph> graph = ParseGraph(&rest, TestOps(), "dump");
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_EQ(PrintGraph(*graph), text.substr(0, text.size() - rest.size()));
    ++files;
  }
  EXPECT_EQ(files, 1);
  Module again = ParseModule({{ProgramKind::kMicro, Residual("")}});
  const absl::Status bad =
      RunPipeline(DefaultPipeline(), Context(), {.folder = folder, .regex = "("}, &again, &report);
  EXPECT_NE(MessageOf(bad).find("not a regular expression"), std::string::npos) << bad;
}

}  // namespace
}  // namespace capstan
