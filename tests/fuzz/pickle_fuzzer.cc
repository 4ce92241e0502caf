// Whatever the bytes of a file of PyTorch or PaddlePaddle: a message that names it, or tensors of
// which each is read or refused, and none is larger than the file.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/check.h"
#include "engine/base/status.h"
#include "engine/tensor/tensor_view.h"
#include "engine/weights/byte_source.h"
#include "engine/weights/weights_file.h"

namespace capstan {
namespace {

constexpr char kName[] = "w.pth";
// Tensors may share their bytes: a file of many would keep the fuzzer from trying others.
constexpr size_t kTensorsRead = 32;

void Check(std::string_view bytes) {
  const absl::StatusOr<WeightsFile> file = WeightsFile::OpenPickled(MemoryBytes(kName, bytes));
  if (!file.ok()) {
    const std::string message = MessageOf(file.status());
    CHECK(message.find(kName) != std::string::npos) << message;
    return;
  }
  CHECK(!file->entries().empty()) << file->format();
  size_t read = 0;
  for (const WeightEntry& entry : file->entries()) {
    if (!entry.unreadable.empty()) continue;
    CHECK(static_cast<size_t>(entry.type.bytes()) <= bytes.size()) << entry.type.ToString();
    if (++read > kTensorsRead) return;
    const HostTensor tensor(TensorType{DType::kF32, entry.type.shape});
    const absl::Status status = file->Read(entry, tensor.view());
    CHECK(status.ok() || MessageOf(status).find(kName) != std::string::npos) << MessageOf(status);
  }
}

}  // namespace
}  // namespace capstan

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  capstan::Check({reinterpret_cast<const char*>(data), size});
  return 0;
}
