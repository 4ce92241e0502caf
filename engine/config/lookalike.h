// Characters that look like YAML's punctuation and are not: full-width forms, odd blanks, curly
// quotes. They turn `epochs：5` into one long text, so messages name them.
//
//   SpellingHint("epochs：5");   // "'：' (U+FF1A, full-width colon) is not ':'"
//   SpellingHint("epochs:5");    // "a blank is missing after ':'"
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace capstan {

// Number of characters in UTF-8 text.
size_t CountCharacters(std::string_view text);

// Offset of the first byte that is not valid UTF-8, if there is one.
std::optional<size_t> FindBadUtf8(std::string_view text);

// What looks wrong in a short unquoted text; empty when nothing does.
std::string SpellingHint(std::string_view text);

// What nobody means at the ends of an unquoted text: "begins with U+00A0 (no-break space)", or
// "is in curly quotes". Empty when there is nothing.
std::string SuspectEdge(std::string_view text);

// A place of a line that likely broke the YAML structure.
struct Suspect {
  size_t offset;  // bytes from the start of the line
  std::string problem;
};

// Looks outside quotes and comments of one line for a look-alike of punctuation, a tab in the
// indentation, or a ':' without a blank.
std::optional<Suspect> FindSuspect(std::string_view line);

}  // namespace capstan
