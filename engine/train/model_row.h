// ModelRow: one model that a job may name, as data. The folders under models/ make them, the tool
// hands them in; engine/ includes no model.
//
//   const ModelRow* row = FindModel(tables.models, "resnet50");
//   ValueId logits = row->build(b, image, options);     // options: an AnyStruct of *row->options
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/reflect.h"
#include "engine/ir/builder.h"
#include "engine/weights/weight_names.h"

namespace capstan {

// Parameters that lie about as far from the image: names, or what names begin with up to a point.
struct ModelLayer {
  std::vector<std::string> names;  // {"conv1", "bn1"}
};

struct ModelRow {
  const char* name = "";              // as in `model: {name: resnet50}`
  const char* doc = "";               // one line for help and the reference of keys
  const TypeInfo* options = nullptr;  // the struct behind the section's other keys
  // Images [n, c, h, w] to scores before softmax, [n, classes]. After an error b.status() says what
  // is wrong and the result is kNoValue.
  ValueId (*build)(Builder& b, ValueId image, const AnyStruct& options) = nullptr;
  // The number of classes, for checks against the data.
  int64_t (*classes)(const AnyStruct& options) = nullptr;
  // The families of weights files that fit. Null: files with the model's own names alone.
  std::vector<WeightNames> (*weight_names)() = nullptr;
  // From the image up; layers may have learning rates of their own. Null: the model has no such
  // list.
  std::vector<ModelLayer> (*layers)() = nullptr;
};

}  // namespace capstan
