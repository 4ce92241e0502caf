#include "engine/config/lookalike.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>

namespace capstan {
namespace {

struct Lookalike {
  uint32_t code;
  const char* name;
  const char* plain;  // what was meant
  bool structural;    // breaks YAML structure; the others break numbers and words
};

constexpr std::array kLookalikes = {
    Lookalike{0xFF1A, "full-width colon", "':'", true},
    Lookalike{0xFF0C, "full-width comma", "','", true},
    Lookalike{0x3001, "ideographic comma", "','", true},
    Lookalike{0x3000, "ideographic space", "a plain space", true},
    Lookalike{0x00A0, "no-break space", "a plain space", true},
    Lookalike{0x200B, "zero-width space", "needed here", true},
    Lookalike{0xFEFF, "byte-order mark", "allowed inside a file", true},
    Lookalike{0xFF5B, "full-width brace", "'{'", true},
    Lookalike{0xFF5D, "full-width brace", "'}'", true},
    Lookalike{0xFF3B, "full-width bracket", "'['", true},
    Lookalike{0xFF3D, "full-width bracket", "']'", true},
    Lookalike{0x3010, "black lenticular bracket", "'['", true},
    Lookalike{0x3011, "black lenticular bracket", "']'", true},
    Lookalike{0x201C, "curly quote", "'\"'", true},
    Lookalike{0x201D, "curly quote", "'\"'", true},
    Lookalike{0x2018, "curly quote", "\"'\"", true},
    Lookalike{0x2019, "curly quote", "\"'\"", true},
    Lookalike{0xFF03, "full-width number sign", "'#'", true},
    Lookalike{0xFF0D, "full-width minus", "'-'", false},
    Lookalike{0x2212, "minus sign", "'-'", false},
    Lookalike{0x2013, "en dash", "'-'", false},
    Lookalike{0xFF0E, "full-width full stop", "'.'", false},
    Lookalike{0x3002, "ideographic full stop", "'.'", false},
};

// Length of the UTF-8 sequence at the start of `text` and its code point; 0 when it is not valid.
size_t Decode(std::string_view text, uint32_t* code) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) {
    *code = first;
    return 1;
  }
  const size_t n = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < n) return 0;
  uint32_t c = first & (0xFF >> (n + 1));
  for (size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    c = c << 6 | (byte(i) & 0x3F);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (c < kSmallest[n] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) return 0;
  *code = c;
  return n;
}

const Lookalike* FindLookalike(uint32_t code) {
  for (const Lookalike& l : kLookalikes) {
    if (l.code == code) return &l;
  }
  return nullptr;
}

bool IsInvisible(uint32_t code) {
  return code == 0x3000 || code == 0x00A0 || code == 0x200B || code == 0xFEFF;
}

// Blanks cannot be shown between quotes, so only their names are.
std::string Describe(const Lookalike& l, std::string_view character) {
  if (IsInvisible(l.code)) return fmt::format("U+{:04X} ({}) is not {}", l.code, l.name, l.plain);
  return fmt::format("'{}' (U+{:04X}, {}) is not {}", character, l.code, l.name, l.plain);
}

bool IsWordByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

// Offset of the ':' in `word:text`, a key whose blank was forgotten. URLs and Windows paths pass.
std::optional<size_t> FindTightColon(std::string_view text) {
  size_t n = 0;
  while (n < text.size() && IsWordByte(text[n])) ++n;
  if (n == 0 || n + 1 >= text.size() || text[n] != ':') return std::nullopt;
  const char next = text[n + 1];
  if (next == ' ' || next == '\t' || next == '/' || next == '\\') return std::nullopt;
  return n;
}

}  // namespace

size_t CountCharacters(std::string_view text) {
  size_t n = 0;
  for (const char c : text) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return n;
}

std::optional<size_t> FindBadUtf8(std::string_view text) {
  uint32_t code = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t n = Decode(text.substr(i), &code);
    if (n == 0) return i;
    i += n;
  }
  return std::nullopt;
}

std::string SpellingHint(std::string_view text) {
  uint32_t code = 0;
  for (size_t i = 0, n = 0; i < text.size(); i += n) {
    n = Decode(text.substr(i), &code);
    if (n == 0) return "";
    const std::string_view character = text.substr(i, n);
    if (code >= 0xFF10 && code <= 0xFF19) {
      return fmt::format("'{}' (U+{:04X}, full-width digit) is not '{}'", character, code,
                         code - 0xFF10);
    }
    if (const Lookalike* l = FindLookalike(code)) return Describe(*l, character);
  }
  return FindTightColon(text) ? "a blank is missing after ':'" : "";
}

std::string SuspectEdge(std::string_view text) {
  if ((text.starts_with("“") && text.ends_with("”")) ||
      (text.starts_with("‘") && text.ends_with("’"))) {
    return "is in curly quotes";
  }
  uint32_t code = 0;
  for (size_t i = 0, n = 0; i < text.size(); i += n) {
    n = Decode(text.substr(i), &code);
    if (n == 0) return "";
    if ((i == 0 || i + n == text.size()) && IsInvisible(code)) {
      return fmt::format("{} with U+{:04X} ({})", i == 0 ? "begins" : "ends", code,
                         FindLookalike(code)->name);
    }
  }
  return "";
}

std::optional<Suspect> FindSuspect(std::string_view line) {
  size_t start = line.find_first_not_of(" \t");
  if (start == std::string_view::npos) return std::nullopt;
  if (const size_t tab = line.substr(0, start).find('\t'); tab != std::string_view::npos) {
    return Suspect{tab, "a tab in the indentation; indent with spaces"};
  }
  char quote = 0;
  uint32_t code = 0;
  for (size_t i = start, n = 0; i < line.size(); i += n) {
    n = Decode(line.substr(i), &code);
    if (n == 0) return std::nullopt;
    const char c = line[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
      if (c == '\\' && quote == '"') ++i;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t')) {
      break;
    } else if (const Lookalike* l = FindLookalike(code); l != nullptr && l->structural) {
      return Suspect{i, Describe(*l, line.substr(i, n)) + "; type the plain character"};
    }
  }
  while (line.substr(start, 2) == "- ") start += 2;
  if (const auto colon = FindTightColon(line.substr(start))) {
    return Suspect{start + *colon, "a blank is missing after ':'"};
  }
  return std::nullopt;
}

}  // namespace capstan
