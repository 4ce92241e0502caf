// The schema of a job for people and editors, generated from the same tables that the reader
// checks with, so the three cannot disagree.
//
//   JsonSchema(choices);          // for `trainer schema`: draft 2020-12, closed, with choices
//   MarkdownReference(choices);   // for docs/job-file.md: a table of keys for each section
#pragma once

#include <string>

#include "engine/config/choice_table.h"

namespace capstan {

std::string JsonSchema(const ChoiceTable& choices);
std::string MarkdownReference(const ChoiceTable& choices);

}  // namespace capstan
