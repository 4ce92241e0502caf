#include "engine/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/base/status.h"

namespace capstan {
namespace {

// Lower case, with '-' read as '_': differences that people do not see.
std::string Fold(std::string_view name) {
  std::string out(name);
  for (char& c : out) c = c == '-' ? '_' : (c >= 'A' && c <= 'Z') ? static_cast<char>(c + 32) : c;
  return out;
}

// Damerau-Levenshtein distance with adjacent swaps (optimal string alignment).
size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] =
          std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string Quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
          out += c;
        }
    }
  }
  return out + "\"";
}

absl::Status Unquote(std::string_view* text, std::string* out) {
  out->clear();
  if (text->empty() || text->front() != '"') {
    return InvalidArgument("expected a quoted text, found '{}'", text->substr(0, 24));
  }
  for (size_t i = 1; i < text->size(); ++i) {
    const char c = (*text)[i];
    if (c == '"') {
      text->remove_prefix(i + 1);
      return absl::OkStatus();
    }
    if (c != '\\') {
      *out += c;
      continue;
    }
    if (++i == text->size()) break;
    const char e = (*text)[i];
    if (e == 'u') {
      if (i + 4 >= text->size()) break;
      unsigned code = 0;
      for (int k = 1; k <= 4; ++k) {
        const char h = (*text)[i + k];
        code = code * 16 + (h <= '9' ? h - '0' : (h | 32) - 'a' + 10);
      }
      *out += static_cast<char>(code);
      i += 4;
    } else {
      *out += e == 'n' ? '\n' : e == 't' ? '\t' : e == 'r' ? '\r' : e;
    }
  }
  return InvalidArgument("a quoted text does not end: {}", text->substr(0, 24));
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::string Nearest(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string folded = Fold(name);
  size_t best = std::numeric_limits<size_t>::max();
  std::string nearest;
  for (const std::string& c : candidates) {
    const size_t d = EditDistance(folded, Fold(c));
    if (d < best) {
      best = d;
      nearest = c;
    }
  }
  // Beyond half of its length a name is another word rather than a misspelling.
  return best <= std::max<size_t>(2, name.size() / 2) && best < name.size() ? nearest : "";
}

std::string HumanBytes(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 4) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.2f} {}", bytes, kUnits[unit]);
}

std::string HumanDuration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  const auto s = static_cast<int64_t>(std::llround(seconds));
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

}  // namespace capstan
