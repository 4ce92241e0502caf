// Whatever a program wrote as the manifest or the state of a checkpoint: a message, or values that
// survive being written. The checksum that ends a manifest is made here: without it no change would
// get past the first check.
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/check.h"
#include "engine/base/status.h"
#include "engine/checkpoint/file_io.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/training_state.h"

namespace capstan {
namespace {

void CheckManifest(std::string_view body) {
  (void)ManifestFromJson(body);
  std::string text(body);
  text += fmt::format("  \"manifest_xxh3\": \"{}\"\n}}\n", ChecksumText(Xxh3(body)));
  const absl::StatusOr<Manifest> manifest = ManifestFromJson(text);
  if (!manifest.ok()) {
    CHECK(!MessageOf(manifest.status()).empty());
    return;
  }
  const std::string written = ManifestToJson(*manifest);
  const absl::StatusOr<Manifest> again = ManifestFromJson(written);
  CHECK(again.ok()) << MessageOf(again.status()) << "\n" << written;
  CHECK_EQ(ManifestToJson(*again), written);
}

void CheckState(std::string_view text) {
  const absl::StatusOr<TrainingState> state = StateFromJson(text);
  if (!state.ok()) {
    CHECK(!MessageOf(state.status()).empty());
    return;
  }
  const absl::StatusOr<std::string> written = StateToJson(*state);
  CHECK(written.ok()) << MessageOf(written.status());
  const absl::StatusOr<TrainingState> again = StateFromJson(*written);
  CHECK(again.ok()) << MessageOf(again.status()) << "\n" << *written;
  CHECK_EQ(*StateToJson(*again), *written);
}

}  // namespace
}  // namespace capstan

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  capstan::CheckManifest(text);
  capstan::CheckState(text);
  return 0;
}
