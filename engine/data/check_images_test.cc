#include "engine/data/check_images.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "engine/base/check.h"
#include "engine/base/status.h"
#include "engine/data/image_list.h"
#include "engine/data/transform_options.h"

namespace capstan {
namespace {

namespace fs = std::filesystem;

class CheckImagesTest : public testing::Test {
 protected:
  CheckImagesTest() : root_(fs::absolute(fs::path(testing::TempDir()) / "check_images")) {
    fs::remove_all(root_);
    fs::create_directories(root_ / "folder.jpg");
    std::ofstream(root_ / "html.jpg") << "<html>not a picture</html>";
    std::ofstream(root_ / "zero.jpg").flush();
    for (const char* name : {"red.jpg", "trunc_half_base.jpg"}) {
      fs::copy_file(fs::path("engine/data/testdata") / name, root_ / name);
    }
  }
  ~CheckImagesTest() override { fs::remove_all(root_); }

  absl::StatusOr<std::unique_ptr<ImageDataset>> Open(const std::string& rows, int64_t classes) {
    std::ofstream(root_ / "list.txt") << rows;
    return OpenUsableRows(
        {"image_list", AnyStruct::Of(ImageListOptions{.root = root_.string(), .list = "list.txt"})},
        classes);
  }

  std::vector<PictureFault> Check(const std::string& rows, int64_t crop, int64_t workers) {
    auto set = Open(rows, 10);
    CHECK_OK(set);
    auto pipeline = ImagePipeline::Create(
        std::vector<Section>{{"DecodeImage", AnyStruct::Of(DecodeImageOptions{})},
                             {"CropImage", AnyStruct::Of(CropImageOptions{.size = crop})},
                             {"NormalizeImage", AnyStruct::Of(NormalizeImageOptions{})}});
    CHECK_OK(pipeline);
    auto faults = CheckImages(*std::move(set), *pipeline, {.num_workers = workers}, 1);
    CHECK_OK(faults);
    return *std::move(faults);
  }

  const fs::path root_;
};

TEST_F(CheckImagesTest, NamesEveryFaultInOrderWhateverTheThreads) {
  std::string rows;
  for (int i = 0; i < 50; ++i) {
    rows +=
        "red.jpg 0\nmissing.jpg 1\nfolder.jpg 2\nzero.jpg 3\nhtml.jpg 4\n"
        "trunc_half_base.jpg 5\n";
  }
  const std::array kinds = {PictureFaultKind::kMissing, PictureFaultKind::kUnreadable,
                            PictureFaultKind::kEmpty, PictureFaultKind::kNoPicture,
                            PictureFaultKind::kDamaged};
  for (const int64_t workers : {0, 1, 4}) {
    const std::vector<PictureFault> faults = Check(rows, 2, workers);
    ASSERT_EQ(faults.size(), 250u);
    for (size_t i = 0; i < faults.size(); ++i) {
      EXPECT_EQ(faults[i].index, static_cast<int64_t>(i / 5 * 6 + i % 5 + 1));
      EXPECT_EQ(faults[i].kind, kinds[i % 5]);
    }
    EXPECT_NE(faults[4].reason.find("damaged JPEG"), std::string::npos) << faults[4].reason;
  }
}

TEST_F(CheckImagesTest, TransformsAreTried) {
  const std::vector<PictureFault> faults = Check("red.jpg 0\n", 1000, 1);
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].kind, PictureFaultKind::kUnfit);
  EXPECT_NE(faults[0].reason.find("smaller than the crop"), std::string::npos) << faults[0].reason;
}

TEST_F(CheckImagesTest, RowsAtFaultAreCountedByKind) {
  const auto set = Open("red.jpg 0\nred.jpg\nred.jpg x\n 1\nred.jpg 10\nred.jpg -1\n", 10);
  CHECK_OK(set);
  EXPECT_EQ((*set)->size(), 1);
  const RefusedRows& refused = (*set)->refused();
  EXPECT_EQ(refused.count, 5);
  EXPECT_EQ(refused.kinds, (std::map<std::string, int64_t>{{"class id out of range", 2},
                                                           {"class id that is no whole number", 1},
                                                           {"line without a path", 1},
                                                           {"line without the delimiter", 1}}));
  EXPECT_EQ(refused.examples.size(), 5u);
  EXPECT_NE(refused.examples[0].find("list.txt:2: no delimiter"), std::string::npos);
  EXPECT_TRUE(Check("red.jpg\n", 2, 1).empty());
}

}  // namespace
}  // namespace capstan
