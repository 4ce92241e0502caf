#include "engine/data/image_dataset.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "engine/base/check.h"
#include "engine/base/status.h"
#include "engine/data/class_names.h"
#include "engine/data/file.h"
#include "engine/data/image_folder.h"
#include "engine/data/image_list.h"
#include "engine/data/synthetic.h"

namespace capstan {
namespace {

namespace fs = std::filesystem;

const std::string kByteOrderMark = "\xEF\xBB\xBF";

class ImageDatasetTest : public testing::Test {
 protected:
  ImageDatasetTest()
      : root_(fs::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~ImageDatasetTest() override { fs::remove_all(root_); }

  void Write(const std::string& name, const std::string& content) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name, std::ios::binary) << content;
  }

  absl::StatusOr<std::unique_ptr<ImageDataset>> OpenList(const std::string& content,
                                                         int64_t classes = 0,
                                                         const std::string& delimiter = " ") {
    Write("list.txt", content);
    return OpenImageDataset(
        {"image_list", AnyStruct::Of(ImageListOptions{
                           .root = root_.string(), .list = "list.txt", .delimiter = delimiter})},
        classes);
  }

  std::string Fault(const std::string& content, int64_t classes = 0) {
    const auto set = OpenList(content, classes);
    return set.ok() ? "" : MessageOf(set.status());
  }

  const fs::path root_;
};

void ExpectContains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks: " << part;
}

TEST_F(ImageDatasetTest, ByteOrderMarkCrLfAndBlankLines) {
  for (const std::string end : {"\r\n", ""}) {
    const auto set = OpenList(kByteOrderMark + "a.jpg 4\r\n\r\nb.jpg 7" + end);
    ASSERT_TRUE(set.ok()) << MessageOf(set.status());
    ASSERT_EQ((*set)->size(), 2);
    EXPECT_EQ((*set)->Describe(0), "a.jpg (list.txt:1)");
    EXPECT_EQ((*set)->Describe(1), "b.jpg (list.txt:3)");
    EXPECT_EQ((*set)->Label(0), 4);
    EXPECT_EQ((*set)->Label(1), 7);
    EXPECT_EQ((*set)->classes(), 8);
  }
}

TEST_F(ImageDatasetTest, TheLastDelimiterSplits) {
  for (const std::string delimiter : {" ", "\t"}) {
    const auto set = OpenList(
        "dog 1/img (2).jpg" + delimiter + "0\n中文 目录/a.jpg" + delimiter + "1\n", 2, delimiter);
    ASSERT_TRUE(set.ok()) << MessageOf(set.status());
    ASSERT_EQ((*set)->size(), 2);
    EXPECT_EQ((*set)->Describe(0), "dog 1/img (2).jpg (list.txt:1)");
    EXPECT_EQ((*set)->Describe(1), "中文 目录/a.jpg (list.txt:2)");
    EXPECT_EQ((*set)->Label(0), 0);
    EXPECT_EQ((*set)->Label(1), 1);
  }
}

TEST_F(ImageDatasetTest, BadClassIdsNameFileLineValueAndRange) {
  const std::string path = (root_ / "list.txt").string();
  ExpectContains(Fault("a.jpg 0\nb.jpg 3\n", 3), path + ":2: class id 3 is outside 0..2");
  ExpectContains(Fault("a.jpg -1\n", 3), path + ":1: class id -1 is outside 0..2");
  ExpectContains(Fault("a.jpg -1\n"), "class id -1 is outside 0, 1, 2, ...");
  ExpectContains(Fault("a.jpg 1.0\n", 3), "class id '1.0' is not a whole number");
  ExpectContains(Fault("a.jpg x\n", 3), "class id 'x' is not a whole number");
  ExpectContains(Fault("a.jpg 99999999999\n", 3), "class id '99999999999' is not a whole number");
  ExpectContains(Fault("a.jpg \n", 3), path + ":1: no delimiter \" \"");
  ExpectContains(Fault("a.jpg\t0\n", 3), "set delimiter: \"\\t\"");
  ExpectContains(Fault(" 0\n", 3), "no path");
}

TEST_F(ImageDatasetTest, AllFaultsOfAListAreCounted) {
  std::string content = "good.jpg 1\n";
  for (int i = 0; i < 30; ++i) content += "bad.jpg x\n";
  const std::string fault = Fault(content);
  ExpectContains(fault, "30 line(s) cannot be used");
  ExpectContains(fault, "list.txt:11: ");
  ExpectContains(fault, "and 20 more");
}

TEST_F(ImageDatasetTest, EmptyAndMissingLists) {
  ExpectContains(Fault(""), "the image list is empty");
  ExpectContains(Fault("\n\r\n"), "the image list is empty");
  const auto set = OpenImageDataset(
      {"image_list", AnyStruct::Of(ImageListOptions{.root = root_.string(), .list = "none.txt"})},
      0);
  ExpectContains(MessageOf(set.status()), "none.txt");
}

TEST_F(ImageDatasetTest, PicturesAreReadBelowRoot) {
  std::string bytes;
  CHECK_OK(ReadFile("engine/data/testdata/really_png.JPEG", &bytes));
  Write("a b/x.JPEG", bytes);
  const auto set = OpenList("a b/x.JPEG 0\nmissing.jpg 0\n");
  ASSERT_TRUE(set.ok()) << MessageOf(set.status());
  Image image;
  ASSERT_TRUE((*set)->Load(0, &bytes, &image).ok());
  EXPECT_EQ(image.pixels[1], 200);
  ExpectContains(MessageOf((*set)->Load(1, &bytes, &image)), "missing.jpg");
}

TEST_F(ImageDatasetTest, AMillionRowsOpenQuicklyInLittleMemory) {
  {
    std::ofstream list(root_ / "list.txt");
    for (int i = 0; i < 1'000'000; ++i) {
      list << "train/n" << 10000000 + i / 1000 << "/n" << 10000000 + i / 1000 << '_' << i
           << ".JPEG " << i / 1000 << '\n';
    }
  }
  const auto start = std::chrono::steady_clock::now();
  const auto set = OpenImageDataset(
      {"image_list", AnyStruct::Of(ImageListOptions{.root = root_.string(), .list = "list.txt"})},
      1000);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(set.ok()) << MessageOf(set.status());
  EXPECT_EQ((*set)->size(), 1'000'000);
  EXPECT_EQ((*set)->Label(999'999), 999);
  EXPECT_LT(seconds.count(), 2.0);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(usage.ru_maxrss, 200 * 1024) << "KiB at most";
  RecordProperty("milliseconds", static_cast<int>(seconds.count() * 1000));
}

TEST_F(ImageDatasetTest, FoldersAreClassesSortedByBytes) {
  for (const char* name : {"b/2.jpg", "b/1.jpg", "Zebra/x.jpg", "a/deep/y.jpg", "a/.hidden",
                           ".git/z.jpg", "loose.jpg"}) {
    Write(name, "");
  }
  fs::create_directories(root_ / "empty");
  const auto open = [&](int64_t classes) {
    return OpenImageDataset(
        {"image_folder", AnyStruct::Of(ImageFolderOptions{.root = root_.string()})}, classes);
  };
  const auto set = open(3);
  ASSERT_TRUE(set.ok()) << MessageOf(set.status());
  EXPECT_EQ((*set)->class_names(), (std::vector<std::string>{"Zebra", "a", "b"}));
  EXPECT_EQ((*set)->classes(), 3);
  ASSERT_EQ((*set)->size(), 4);
  EXPECT_EQ((*set)->Describe(0), "Zebra/x.jpg");
  EXPECT_EQ((*set)->Describe(1), "a/deep/y.jpg");
  EXPECT_EQ((*set)->Describe(2), "b/1.jpg");
  EXPECT_EQ((*set)->Label(3), 2);
  ExpectContains(MessageOf(open(2).status()), "3 class folders");
}

TEST_F(ImageDatasetTest, ClassNames) {
  Write("names.txt", kByteOrderMark + "1 goldfish, Carassius\r\n0 tench, Tinca tinca\r\n");
  const auto names = ReadClassNames((root_ / "names.txt").string());
  ASSERT_TRUE(names.ok()) << MessageOf(names.status());
  EXPECT_EQ(*names, (std::vector<std::string>{"tench, Tinca tinca", "goldfish, Carassius"}));
  for (const auto& [content, fault] : std::vector<std::pair<std::string, std::string>>{
           {"tench\n", "names.txt:1: expected a class id"},
           {"0 a\n0 b\n", "names.txt:2: class id 0 has a name already"},
           {"0 a\n2 b\n", "class id 1 has no name, but 2 has"},
           {"", "no class name"}}) {
    Write("names.txt", content);
    ExpectContains(MessageOf(ReadClassNames((root_ / "names.txt").string()).status()), fault);
  }
}

TEST(Synthetic, SamplesAreFunctionsOfTheirNumber) {
  const SyntheticOptions options{.classes = 4, .shape = {3, 8, 9}, .samples = 20};
  SyntheticOptions shifted = options;
  shifted.first_sample = 5;
  const auto a = OpenSynthetic(options, 4), b = OpenSynthetic(shifted, 4);
  ASSERT_TRUE(a.ok() && b.ok());
  const auto shape = GeneratedShape({"synthetic", AnyStruct::Of(options)});
  ASSERT_TRUE(shape.ok()) << MessageOf(shape.status());
  EXPECT_EQ(*shape, (ImageShape{3, 8, 9}));
  EXPECT_EQ(*GeneratedShape({"image_list", AnyStruct::Of(ImageListOptions{})}), std::nullopt);
  std::string bytes;
  Image x, y;
  CHECK_OK((*a)->Load(7, &bytes, &x));
  CHECK_OK((*b)->Load(2, &bytes, &y));
  EXPECT_EQ(x.pixels, y.pixels);
  EXPECT_EQ((*a)->Label(7), (*b)->Label(2));
  CHECK_OK((*a)->Load(3, &bytes, &y));  // of the same class
  EXPECT_NE(x.pixels, y.pixels);
  EXPECT_FALSE(OpenSynthetic(options, 3).ok());
}

TEST(Synthetic, TheNearestClassMeanTellsTheClasses) {
  const auto set = OpenSynthetic({.classes = 10, .shape = {3, 16, 16}, .samples = 400}, 10);
  ASSERT_TRUE(set.ok());
  std::string bytes;
  Image image;
  std::vector<std::vector<double>> means(10, std::vector<double>(3 * 16 * 16));
  for (int64_t i = 0; i < 200; ++i) {
    CHECK_OK((*set)->Load(i, &bytes, &image));
    auto& mean = means[static_cast<size_t>((*set)->Label(i))];
    for (size_t k = 0; k < mean.size(); ++k) mean[k] += image.pixels[k] / 20.0;
  }
  int right = 0;
  for (int64_t i = 200; i < 400; ++i) {
    CHECK_OK((*set)->Load(i, &bytes, &image));
    int64_t best = 0;
    double best_distance = 1e30;
    for (size_t c = 0; c < 10; ++c) {
      double distance = 0;
      for (size_t k = 0; k < means[c].size(); ++k) {
        distance += (image.pixels[k] - means[c][k]) * (image.pixels[k] - means[c][k]);
      }
      if (distance < best_distance) {
        best_distance = distance;
        best = static_cast<int64_t>(c);
      }
    }
    right += best == (*set)->Label(i);
  }
  EXPECT_EQ(right, 200);
}

TEST(ImageDataset, EveryChoiceIsAStructWithADescription) {
  EXPECT_EQ(ImageDatasetChoices().size(), 3u);
  for (const DataChoice& choice : ImageDatasetChoices()) {
    EXPECT_EQ(choice.options->kind, Kind::kStruct) << choice.name;
  }
  EXPECT_FALSE(OpenImageDataset({"lmdb", {}}, 0).ok());
}

}  // namespace
}  // namespace capstan
