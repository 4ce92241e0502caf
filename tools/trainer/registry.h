// Everything this build of the trainer knows: operators, kernels, models, and the choices that jobs
// may name.
#pragma once

#include "engine/train/compile.h"

namespace capstan {

EngineTables MakeTables();

}  // namespace capstan
