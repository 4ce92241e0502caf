// One choice of a job section that this layer offers (a dataset type, a transform): its name in the
// job file, the reflected struct of its options, and one sentence for the documentation.
// Plain constant data; the trainer hands these tables to the job reader.
#pragma once

#include "engine/base/reflect.h"

namespace capstan {

struct DataChoice {
  const char* name;
  const TypeInfo* options;
  const char* doc;
};

}  // namespace capstan
