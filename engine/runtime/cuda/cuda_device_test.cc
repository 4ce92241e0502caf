#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "engine/base/status.h"
#include "engine/runtime/device.h"

namespace capstan {
namespace {

class CudaDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    auto device = MakeCudaDevice(0);
    ASSERT_TRUE(device.ok()) << MessageOf(device.status());
    device_ = *std::move(device);
  }

  std::unique_ptr<Device> device_;
};

// More than the staging memory holds at once.
TEST_F(CudaDeviceTest, CopiesThereAndBack) {
  std::vector<int32_t> numbers(30'000'001), back(numbers.size());
  std::iota(numbers.begin(), numbers.end(), 7);
  const auto bytes = static_cast<int64_t>(numbers.size() * sizeof(int32_t));
  const auto memory = device_->Allocate(bytes);
  ASSERT_TRUE(memory.ok()) << MessageOf(memory.status());
  ASSERT_TRUE(device_->CopyToHost(back.data(), *memory, bytes).ok());
  EXPECT_EQ(back, std::vector<int32_t>(numbers.size())) << "fresh memory is zero";
  std::vector<int32_t> given = numbers;
  ASSERT_TRUE(device_->CopyFromHost(*memory, given.data(), bytes).ok());
  given.assign(given.size(), -1);  // free to change at once
  ASSERT_TRUE(device_->CopyToHost(back.data(), *memory, bytes).ok());
  EXPECT_EQ(back, numbers);
  device_->Free(*memory, bytes);
}

TEST_F(CudaDeviceTest, RecordsCopiesAndRepeatsThem) {
  const auto memory = device_->Allocate(2 * sizeof(int64_t));
  ASSERT_TRUE(memory.ok());
  auto* cells = static_cast<int64_t*>(*memory);
  const auto recording = device_->Record(
      [&] { return device_->libraries()->CopyOnDevice(cells + 1, cells, sizeof(int64_t)); });
  ASSERT_TRUE(recording.ok()) << MessageOf(recording.status());
  for (const int64_t value : {5, 6}) {
    ASSERT_TRUE(device_->CopyFromHost(cells, &value, sizeof(value)).ok());
    ASSERT_TRUE((*recording)->Launch().ok());
    int64_t copied = 0;
    ASSERT_TRUE(device_->CopyToHost(&copied, cells + 1, sizeof(copied)).ok());
    EXPECT_EQ(copied, value);
  }
  device_->Free(*memory, 2 * sizeof(int64_t));
}

TEST_F(CudaDeviceTest, FailedRecordingLeavesTheDeviceUsable) {
  const auto failed = device_->Record([] { return Internal("no"); });
  EXPECT_FALSE(failed.ok());
  EXPECT_TRUE(device_->Synchronize().ok());
}

TEST_F(CudaDeviceTest, TooMuchMemorySaysHowMuchThereIs) {
  const auto memory = device_->Allocate(int64_t{1} << 42);
  ASSERT_EQ(memory.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(MessageOf(memory.status()).find("4.00 TiB of GPU memory wanted"), std::string::npos)
      << MessageOf(memory.status());
  EXPECT_TRUE(device_->Synchronize().ok());
}

TEST(CudaDevice, NoSuchGpu) {
  const auto device = MakeCudaDevice(64);
  ASSERT_EQ(device.status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace capstan
