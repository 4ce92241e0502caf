// A job as canonical YAML: every key with its value, defaults included, in the structs' order. The
// text is the same for the same job, byte for byte, and loads back to the same job. This is what
// `trainer render` prints and what a run keeps as job.yaml.
//
//   Render(job);   // "version: 1\nname: resnet50-imagenet\nmodel:\n  name: resnet50\n  ..."
#pragma once

#include <string>

#include "engine/config/job_spec.h"

namespace capstan {

std::string Render(const JobSpec& job);

}  // namespace capstan
