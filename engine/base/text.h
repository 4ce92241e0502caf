// Small text helpers: quoting, nearest names for error messages, human-readable amounts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace capstan {

// "text" with \" \\ \n \t \r and \u00XX escapes for control characters; UTF-8 passes through.
std::string Quote(std::string_view text);

// Parses a quoted text from the start of *text and removes it. Inverse of Quote.
absl::Status Unquote(std::string_view* text, std::string* out);

// Parts between separators; an empty text has one empty part.
std::vector<std::string_view> Split(std::string_view text, char separator);

// Without leading and trailing blanks, tabs and line ends.
std::string_view Trim(std::string_view text);

// The candidate with the smallest edit distance to `name` (insert, delete, replace, swap of two
// neighbours; case and '-'/'_' differences cost nothing), or "" when none is near enough to be a
// likely misspelling.
std::string Nearest(std::string_view name, const std::vector<std::string>& candidates);

// "1.50 GiB", "12 B".
std::string HumanBytes(double bytes);

// "3:12:40" or "4:05" (hours:minutes:seconds).
std::string HumanDuration(double seconds);

}  // namespace capstan
