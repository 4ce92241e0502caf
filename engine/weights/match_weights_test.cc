#include "engine/weights/match_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/checkpoint/checkpoint_testing.h"

namespace capstan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Named = std::vector<std::pair<std::string, Shape>>;

// A file of zeros of these names and shapes.
class MatchWeightsTest : public ::testing::Test {
 protected:
  absl::StatusOr<WeightMatch> Match(const Named& stored, const std::vector<WeightNames>& families) {
    std::vector<HostTensor> held;
    std::vector<NamedTensor> tensors;
    for (const auto& [name, shape] : stored) {
      held.emplace_back(TensorType{DType::kF32, shape});
      tensors.push_back({name, held.back().view()});
    }
    const std::string path = scratch_.File("w.safetensors");
    CHECK_OK(WriteSafetensors(path, tensors));
    auto file = WeightsFile::Open(path);
    CHECK_OK(file);
    file_ = *std::move(file);
    return MatchWeights(file_, wanted_, families);
  }
  std::vector<std::string> Problems(const WeightMatch& match) const {
    return ProblemsOf(match, file_, wanted_);
  }

  // 20 layers and a head.
  MatchWeightsTest() {
    for (int i = 0; i < 20; ++i) wanted_.push_back({"l" + std::to_string(i) + ".weight", {2, 3}});
    wanted_.push_back({"fc.weight", {5, 3}});
    wanted_.push_back({"fc.bias", {5}});
  }
  Named AsWanted(const std::string& prefix = "") const {
    Named named;
    for (const WantedWeight& w : wanted_) named.emplace_back(prefix + w.name, w.shape);
    return named;
  }

  const ScratchFolder scratch_;
  WeightsFile file_;
  std::vector<WantedWeight> wanted_;
};

TEST_F(MatchWeightsTest, OwnNames) {
  const auto match = Match(AsWanted(), {});
  ASSERT_TRUE(match.ok()) << match.status();
  EXPECT_EQ(match->matched.size(), wanted_.size());
  for (const MatchedWeight& m : match->matched) {
    EXPECT_EQ(file_.entries()[m.entry].name, wanted_[m.wanted].name);
    EXPECT_FALSE(m.transposed);
  }
  EXPECT_THAT(Problems(*match), IsEmpty());
}

TEST_F(MatchWeightsTest, PrefixesOfWrappersAreDropped) {
  for (const char* prefix : {"module.", "_orig_mod.", "module._orig_mod."}) {
    const auto match = Match(AsWanted(prefix), {});
    ASSERT_TRUE(match.ok()) << match.status();
    EXPECT_EQ(match->matched.size(), wanted_.size()) << prefix;
  }
  Named twice = AsWanted();
  twice.emplace_back("module.fc.bias", Shape{5});
  EXPECT_THAT(MessageOf(Match(twice, {}).status()),
              HasSubstr("\"fc.bias\" and \"module.fc.bias\" are both \"fc.bias\""));
}

TEST_F(MatchWeightsTest, TheFamilyThatFitsIsTaken) {
  const WeightNames own = {.family = "own", .ignored = {"count"}};
  WeightNames other = {.family = "other", .leaves = {{"w", "weight"}}, .transposed = {"fc.weight"}};
  Named stored;
  for (int i = 0; i < 20; ++i) {
    other.modules.push_back({"block." + std::to_string(i), "l" + std::to_string(i)});
    stored.emplace_back("block." + std::to_string(i) + ".w", Shape{2, 3});
  }
  stored.emplace_back("fc.w", Shape{3, 5});
  stored.emplace_back("fc.bias", Shape{5});
  const auto match = Match(stored, {own, other});
  ASSERT_TRUE(match.ok()) << match.status();
  EXPECT_EQ(match->family, "other");
  EXPECT_EQ(match->matched.size(), wanted_.size());
  for (const MatchedWeight& m : match->matched) {
    EXPECT_EQ(m.transposed, wanted_[m.wanted].name == "fc.weight");
  }

  Named counted = AsWanted();
  for (int i = 0; i < 20; ++i) counted.emplace_back("l" + std::to_string(i) + ".count", Shape{});
  const auto own_match = Match(counted, {own, other});
  ASSERT_TRUE(own_match.ok()) << own_match.status();
  EXPECT_EQ(own_match->family, "own");
  EXPECT_THAT(Problems(*own_match), IsEmpty());
}

TEST_F(MatchWeightsTest, AnotherHeadIsLeftOutWithBothShapes) {
  Named stored = AsWanted();
  stored[20].second = {1000, 3};
  stored[21].second = {1000};
  const auto match = Match(stored, {});
  ASSERT_TRUE(match.ok()) << match.status();
  EXPECT_EQ(match->matched.size(), 20u);
  EXPECT_THAT(Problems(*match),
              ElementsAre("skipped fc.weight: [1000,3] in the file, [5,3] in the model",
                          "skipped fc.bias: [1000] in the file, [5] in the model"));
}

TEST_F(MatchWeightsTest, MissingAndUnusedNamesAreListed) {
  Named stored = AsWanted();
  stored[0].first = "extra.weight";
  const auto match = Match(stored, {});
  ASSERT_TRUE(match.ok()) << match.status();
  EXPECT_THAT(Problems(*match),
              ElementsAre("1 not in the file: l0.weight", "1 of the file not used: extra.weight"));
}

TEST_F(MatchWeightsTest, AnotherNetworkIsRefused) {
  Named half = AsWanted();
  half.resize(10);
  const std::string few = MessageOf(Match(half, {}).status());
  EXPECT_THAT(few, HasSubstr("another network: 10 of the model's 22 tensors"));
  EXPECT_THAT(few, HasSubstr("12 not in the file: l10.weight"));

  // A larger network of the same family has all that the model wants, and more.
  Named more = AsWanted();
  for (int i = 20; i < 40; ++i) more.emplace_back("l" + std::to_string(i) + ".weight", Shape{2, 3});
  EXPECT_THAT(MessageOf(Match(more, {}).status()), HasSubstr("22 of its 42 are the model's"));

  Named wide = AsWanted();
  for (auto& [name, shape] : wide) shape[0] = 64;
  EXPECT_THAT(MessageOf(Match(wide, {}).status()), HasSubstr("[64,3] in the file, [2,3]"));
  EXPECT_FALSE(Match({}, {}).ok());
}

}  // namespace
}  // namespace capstan
