// From the text of a YAML scalar to numbers, switches and words, by our own rules rather than any
// YAML version's (so that `1e-4` is a number, `010` is refused and `no` is a word).
//
// Each function returns what is wrong, with what to do, or "" and sets *out.
//   integer   [+-]digits; no point, exponent, leading zero or '_'; within 64 bits
//   number    also `1e-4`, `5.`, `.5` and a quotient `1.0/255.0`; finite, no leading zero
//   switch    true, false (True and False, as Python prints them)
// A quoted text is never a number or a switch.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/base/reflect.h"
#include "engine/config/yaml_tree.h"

namespace capstan {

std::string ReadInt(const YamlNode& node, int64_t* out);
std::string ReadFloat(const YamlNode& node, double* out);
std::string ReadBool(const YamlNode& node, bool* out);
std::string ReadEnum(const YamlNode& node, std::span<const char* const> names, int64_t* out);

// "must be at least 1", "must be from 0 to 1", or "" where any number will do.
std::string DescribeBounds(const Bounds& bounds);
// What is wrong with `value`, written as `text`; or "".
std::string CheckBounds(double value, const std::string& text, const Bounds& bounds);

// "'lr' is not a model; did you mean 'crnn'? choose one of crnn, resnet50".
std::string NotOneOf(const std::string& text, const std::string& what,
                     const std::vector<std::string>& allowed);

}  // namespace capstan
