// Whatever the bytes of a safetensors file: a message that names it, or tensors that lie side by
// side in it and can be read. An input that begins with '{' is an index, up to the first 0 byte;
// behind that stands the one file that is beside it, part.safetensors.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/base/check.h"
#include "engine/base/status.h"
#include "engine/checkpoint/file_io.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/tensor/tensor_view.h"

namespace capstan {
namespace {

// One folder a process, removed at its end.
const std::string& Folder() {
  static const std::string* const folder = [] {
    const char* parent = std::getenv("TMPDIR");
    auto* path = new std::string(parent == nullptr ? "/tmp" : parent);
    *path += "/capstan_fuzz_XXXXXX";
    CHECK(mkdtemp(path->data()) != nullptr) << *path;
    std::atexit([] { (void)RemoveTree(Folder()); });
    return path;
  }();
  return *folder;
}

void Write(const std::string& path, std::string_view bytes) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  CHECK(file != nullptr) << path;
  CHECK_EQ(std::fwrite(bytes.data(), 1, bytes.size(), file), bytes.size());
  CHECK_EQ(std::fclose(file), 0);
}

void Check(std::string_view bytes) {
  const std::string part = Folder() + "/part.safetensors";
  std::string path = part;
  if (bytes.starts_with('{')) {
    path = Folder() + "/index.json";
    const size_t end = bytes.find('\0');
    Write(path, bytes.substr(0, end));
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
  }
  Write(part, bytes);

  const absl::StatusOr<TensorFiles> files = TensorFiles::Open(path);
  if (!files.ok()) {
    const std::string message = MessageOf(files.status());
    CHECK(message.find(Folder()) != std::string::npos) << message;
    return;
  }
  CHECK_EQ(files->files().size(), size_t{1});
  uint64_t data = 0;
  for (const SafetensorsEntry& entry : files->files()[0].entries()) {
    CHECK(files->Find(entry.name) == &entry) << entry.name;
    CHECK(entry.offset + entry.bytes <= bytes.size()) << entry.name;
    data += entry.bytes;
    if (!entry.unreadable.empty()) continue;
    CHECK_EQ(static_cast<uint64_t>(entry.type.bytes()), entry.bytes);
    const HostTensor tensor(entry.type);
    const absl::Status status = files->Read(entry.name, tensor.view());
    // A bool is 0 or 1.
    CHECK(status.ok() || entry.type.dtype == DType::kBool) << MessageOf(status);
  }
  CHECK(data + 8 <= bytes.size()) << data;
}

}  // namespace
}  // namespace capstan

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  capstan::Check({reinterpret_cast<const char*>(data), size});
  return 0;
}
