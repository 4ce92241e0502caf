// Whatever the bytes of a job file, in our form or a dialect, with or without an override: there is
// a message that names the file, or a job that survives rendering.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/status.h"
#include "engine/config/load_job.h"
#include "engine/config/render.h"
#include "engine/config/sample_choices.h"

namespace capstan {
namespace {

constexpr std::string_view kOverride = "-o ";
constexpr char kFile[] = "job.yaml";

void Check(std::string_view text) {
  // A base would make the result depend on the folder.
  if (text.find("_base_") != std::string_view::npos) return;
  std::vector<std::string> overrides;
  if (text.starts_with(kOverride)) {
    const size_t end = text.find('\n');
    overrides.emplace_back(text.substr(kOverride.size(), end - kOverride.size()));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  const ChoiceTable choices = SampleChoices();
  const absl::StatusOr<JobSpec> job = ParseJob(text, kFile, choices, overrides);
  if (!job.ok()) {
    const std::string message = MessageOf(job.status());
    CHECK(message.starts_with(kFile) || message.starts_with(kOverride)) << message;
    return;
  }
  const std::string rendered = Render(*job);
  const absl::StatusOr<JobSpec> again = ParseJob(rendered, kFile, choices);
  CHECK(again.ok()) << MessageOf(again.status()) << "\n" << rendered;
  CHECK_EQ(Render(*again), rendered);
}

}  // namespace
}  // namespace capstan

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  capstan::Check({reinterpret_cast<const char*>(data), size});
  return 0;
}
