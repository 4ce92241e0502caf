// A job as canonical YAML: every key with its value, defaults included, in the structs' order. The
// text is the same for the same job, byte for byte, and loads back to the same job. This is what
// `trainer render` prints and what a run keeps as job.yaml.
//
//   Render(job);   // "version: 1\nname: resnet50-imagenet\nmodel:\n  name: resnet50\n  ..."
#pragma once

#include <string>
#include <vector>

#include "engine/config/job_spec.h"

namespace capstan {

std::string Render(const JobSpec& job);

// A key whose value differs between two jobs; "not set" where a job has no such key. Values are
// rendered on one line; lists are compared as a whole.
struct ChangedKey {
  std::string path;
  std::string before;
  std::string after;
};
// In the order of `after`, keys that are gone last. For "train.epochs: 90 -> 120" on resuming.
std::vector<ChangedKey> ChangedKeys(const JobSpec& before, const JobSpec& after);

}  // namespace capstan
