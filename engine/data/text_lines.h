// Walks the lines of a text file held in memory: a byte order mark is skipped, LF and CRLF end a
// line, the last line needs no end.
#pragma once

#include <cstdint>
#include <string_view>

namespace capstan {

// Calls `visit(number, line)` for each line; numbers start at 1. Lines are parts of `text`.
template <typename Visit>
void ForEachLine(std::string_view text, Visit visit) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    visit(number, line);
  }
}

}  // namespace capstan
