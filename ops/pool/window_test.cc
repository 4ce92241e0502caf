#include "ops/pool/window.h"

#include <gtest/gtest.h>

namespace capstan {
namespace {

int64_t Size(int64_t in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
             bool ceil_mode) {
  const auto two = [](int64_t v) { return std::vector<int64_t>{v, v}; };
  const auto window = MakeWindow(two(kernel), two(stride), two(padding), two(dilation));
  const auto size = OutputSize(*window, in, in, ceil_mode);
  return size.ok() ? (*size)[0] : -1;
}

TEST(Window, OutputSize) {
  EXPECT_EQ(Size(32, 3, 1, 1, 1, false), 32);
  EXPECT_EQ(Size(224, 7, 2, 3, 1, false), 112);
  EXPECT_EQ(Size(7, 3, 2, 0, 2, false), 2);
  EXPECT_EQ(Size(6, 3, 2, 0, 1, false), 2);
  EXPECT_EQ(Size(6, 3, 2, 0, 1, true), 3);
  EXPECT_EQ(Size(2, 3, 1, 0, 1, true), -1);
  EXPECT_EQ(Size(0, 2, 1, 1, 1, false), -1);
}

// torch.nn.MaxPool2d(kernel, stride, padding, ceil_mode=True) on images of these sizes.
TEST(Window, LastWindowBeginsInsideImageOrLeftPadding) {
  EXPECT_EQ(Size(4, 1, 3, 0, 1, true), 2);
  EXPECT_EQ(Size(3, 1, 3, 0, 1, true), 1);  // a second window would begin at 3
  EXPECT_EQ(Size(5, 2, 3, 1, 1, true), 2);  // a third window would begin at 5
  EXPECT_EQ(Size(6, 2, 3, 1, 1, true), 3);  // begins at 5, the last pixel
}

TEST(Window, Inside) {
  const Window window = {.kernel = {3, 2}, .stride = {2, 2}, .padding = {1, 0}};
  EXPECT_EQ(window.Inside(0, 0, 4).begin, 0);
  EXPECT_EQ(window.Inside(0, 0, 4).end, 2);
  EXPECT_EQ(window.Inside(0, 2, 4).size(), 1);
  EXPECT_EQ(window.Inside(1, 1, 4).begin, 2);
}

TEST(Window, SeeingIsTheInverseOfInside) {
  for (const Window& window : {Window{.kernel = {3, 2}, .stride = {2, 2}, .padding = {1, 0}},
                               Window{.kernel = {2, 5}, .stride = {3, 1}, .padding = {1, 2}}}) {
    for (size_t d = 0; d < 2; ++d) {
      constexpr int64_t kSize = 9, kOutputs = 4;
      for (int64_t place = 0; place < kSize; ++place) {
        const PixelRange seeing = window.Seeing(d, place, kOutputs);
        for (int64_t o = 0; o < kOutputs; ++o) {
          const PixelRange inside = window.Inside(d, o, kSize);
          EXPECT_EQ(o >= seeing.begin && o < seeing.end,
                    place >= inside.begin && place < inside.end)
              << d << " " << place << " " << o;
        }
      }
    }
  }
}

TEST(Window, ErrorsNameSizes) {
  EXPECT_EQ(MakeWindow({3}, {1, 1}, {0, 0}, {1, 1}).status().message(),
            "kernel has 1 number; wanted two, height and width");
  EXPECT_EQ(MakeWindow({3, 3}, {1, 0}, {0, 0}, {1, 1}).status().message(),
            "stride 0 is too small; the least is 1");
  const Window window = {.kernel = {1, 5}, .padding = {0, 1}};
  EXPECT_EQ(OutputSize(window, 2, 2, false).status().message(),
            "the window spans 5 pixels of width, which is larger than the image: 2, with padding "
            "4");
}

}  // namespace
}  // namespace capstan
