#include "engine/config/yaml_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "engine/config/lookalike.h"

namespace capstan {
namespace {

constexpr size_t kMaxBytes = size_t{4} << 20;
constexpr size_t kMaxNodes = 200'000;
constexpr size_t kMaxDepth = 64;

// Ends parsing from inside a yaml-cpp callback; caught in Parse(). The reason is a diagnostic.
struct Stop {};

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n'; }

// The text being parsed and the places in it.
class Source {
 public:
  static constexpr size_t npos = std::string_view::npos;

  // `origin` with line 0 stands for every place in the text.
  Source(std::string_view text, Position origin) : text_(text), origin_(std::move(origin)) {
    starts_.push_back(0);
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') starts_.push_back(i + 1);
    }
  }

  std::string_view text() const { return text_; }
  size_t LineOf(size_t offset) const {
    return static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), offset) -
                               starts_.begin()) -
           1;
  }
  std::string_view Line(size_t line) const {
    const size_t end = text_.find('\n', starts_[line]);
    return text_.substr(starts_[line], end - starts_[line]);
  }
  Position At(size_t offset) const {
    if (origin_.line == 0) return origin_;
    offset = std::min(offset, text_.size());
    const size_t line = LineOf(offset);
    const size_t column = CountCharacters(text_.substr(starts_[line], offset - starts_[line]));
    return {origin_.file, static_cast<int>(line) + 1, static_cast<int>(column) + 1};
  }
  Position AtLine(size_t line, size_t offset_in_line) const {
    return At(starts_[line] + offset_in_line);
  }

  // Start of a scalar after its anchor and tag.
  size_t SkipProperties(size_t i) const {
    while (i < text_.size() && (text_[i] == '&' || text_[i] == '!')) {
      while (i < text_.size() && !IsBlank(text_[i])) ++i;
      i = SkipBlanks(i);
    }
    return i;
  }
  size_t SkipBlanks(size_t i) const {
    while (i < text_.size() && IsBlank(text_[i])) ++i;
    return i;
  }
  // End of the quoted text that starts at `i`, or npos when its quote never closes.
  size_t EndOfQuoted(size_t i) const {
    const char quote = text_[i++];
    for (; i < text_.size(); ++i) {
      if (text_[i] == '\\' && quote == '"') {
        ++i;
      } else if (text_[i] == quote) {
        if (quote == '"' || text_.substr(i + 1, 1) != "'") return i + 1;
        ++i;
      }
    }
    return npos;
  }
  // Where a bracket at or after `i` opens that nothing closes; nullopt when the bracket at `i` does
  // close.
  std::optional<size_t> FindUnclosed(size_t i) const {
    std::vector<size_t> open;
    for (; i < text_.size(); ++i) {
      const char c = text_[i];
      const char before = i == 0 ? ' ' : text_[i - 1];
      if ((c == '"' || c == '\'') && std::string_view(" \t\n[{,:").find(before) != npos) {
        const size_t end = EndOfQuoted(i);
        if (end == npos) break;
        i = end - 1;
      } else if (c == '#' && IsBlank(before)) {
        i = text_.find('\n', i);
        if (i == npos) break;
      } else if (c == '[' || c == '{') {
        open.push_back(i);
      } else if (c == ']' || c == '}') {
        if (open.empty() || text_[open.back()] != (c == ']' ? '[' : '{')) break;
        open.pop_back();
        if (open.empty()) return std::nullopt;
      }
    }
    return open.empty() ? std::nullopt : std::optional(open.back());
  }
  // End of the unquoted text that starts at `i` and reads `value` once its line ends are folded.
  // `line_starts` receives where each further line begins.
  size_t EndOfPlain(size_t i, std::string_view value, std::vector<size_t>* line_starts) const {
    for (size_t j = 0; j < value.size() && i < text_.size();) {
      if (!IsBlank(value[j]) || !IsBlank(text_[i])) {
        ++i, ++j;
        continue;
      }
      const size_t next = SkipBlanks(i);
      if (text_.substr(i, next - i).find('\n') != npos) {
        line_starts->push_back(next);
      }
      i = next;
      while (j < value.size() && IsBlank(value[j])) ++j;
    }
    return i;
  }

 private:
  std::string_view text_;
  Position origin_;
  std::vector<size_t> starts_;
};

size_t CountNodes(const YamlNode& node) {
  size_t n = 1;
  for (const YamlNode& item : node.items) n += CountNodes(item);
  for (const YamlEntry& entry : node.entries) n += CountNodes(entry.value);
  return n;
}

// Builds the tree from yaml-cpp's events. Its own node type is not used: that one returns the first
// of two equal keys, keeps `<<` as a key and writes through aliases.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(const Source& source, Diagnostics* diagnostics)
      : source_(source), diagnostics_(diagnostics) {}

  YamlNode TakeRoot() {
    for (YamlEntry& entry : root_.entries) {
      entry.holds_anchor = std::any_of(used_anchors_.begin(), used_anchors_.end(), [&](size_t a) {
        const auto it = root_key_of_anchor_.find(a);
        return it != root_key_of_anchor_.end() && it->second == entry.key;
      });
    }
    return std::move(root_);
  }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto offset = static_cast<size_t>(mark.pos);
    if (ExpectsKey()) {
      Fault(offset, "a key is missing here, or is the word null; quote it if it is meant");
      open_.back().skip_entry = true;
    }
    // yaml-cpp places an empty value at what follows it; its key says better where it is.
    const bool after_key = !open_.empty() && open_.back().key.has_value();
    Finish(YamlNode::Null(after_key && !IsNullWord(offset) ? open_.back().key->at
                                                           : source_.At(offset)),
           anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto offset = static_cast<size_t>(mark.pos);
    const auto it = anchors_.find(anchor);
    if (it == anchors_.end()) {
      Fault(offset, "this alias stands inside the value that it names; it cannot contain itself");
      Finish(YamlNode::Null(source_.At(offset)), 0);
      return;
    }
    used_anchors_.insert(anchor);
    Count(it->second.size, offset);
    YamlNode copy = it->second.node;
    if (ExpectsKey()) {
      Fault(offset, "an alias cannot be a key; write the key itself");
      copy = YamlNode::Null(source_.At(offset));
      open_.back().skip_entry = true;
    }
    Finish(std::move(copy), 0);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const auto offset = static_cast<size_t>(mark.pos);
    Count(1, offset);
    YamlNode node = YamlNode::Scalar(value, source_.At(offset));
    node.quoted = tag != "?";
    if (node.quoted && tag != "!" && tag != "tag:yaml.org,2002:str") RefuseTag(offset, tag);
    const bool sound = CheckScalar(offset, value);
    if (ExpectsKey()) open_.back().skip_entry = !sound;
    Finish(std::move(node), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    Open(YamlNode::Kind::kList, mark, tag, anchor, style);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    Open(YamlNode::Kind::kMap, mark, tag, anchor, style);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapEnd() override {
    RefuseTwins(&open_.back().node);
    Merge(&open_.back().node);
    Close();
  }

 private:
  struct OpenNode {
    YamlNode node;
    size_t anchor;
    bool flow;
    std::optional<YamlEntry> key;  // read, its value is still to come
    bool skip_entry = false;       // the key has been reported as senseless
  };
  struct Anchored {
    YamlNode node;
    size_t size;
  };

  bool ExpectsKey() const {
    return !open_.empty() && open_.back().node.kind == YamlNode::Kind::kMap &&
           !open_.back().key.has_value();
  }
  bool IsNullWord(size_t offset) const {
    const std::string_view text = source_.text().substr(std::min(offset, source_.text().size()));
    const std::string_view word = text.substr(0, text.find_first_of(" \t\n,:]}"));
    return word == "~" || word == "null" || word == "Null" || word == "NULL";
  }
  void Fault(size_t offset, std::string problem) {
    diagnostics_->Add(source_.At(offset), "", std::move(problem));
  }
  void RefuseTag(size_t offset, const std::string& tag) {
    Fault(offset, fmt::format("a job uses no YAML tags, found '{}'; remove it", tag));
  }
  void Count(size_t nodes, size_t offset) {
    count_ += nodes;
    if (count_ <= kMaxNodes) return;
    Fault(offset, fmt::format("the job has more than {} values, counting each use of an alias; "
                              "move lists of data into files",
                              kMaxNodes));
    throw Stop{};
  }

  // False when a key has no ':'. Also finds what yaml-cpp passes in silence.
  bool CheckScalar(size_t mark, const std::string& value) {
    const size_t start = source_.SkipProperties(mark);
    const std::string_view text = source_.text();
    if (start >= text.size() || text[start] == '|' || text[start] == '>') return true;
    size_t end = 0;
    if (text[start] == '"' || text[start] == '\'') {
      end = source_.EndOfQuoted(start);
      if (end == Source::npos) {
        Fault(start, fmt::format("the quote {} is never closed", text[start]));
        throw Stop{};
      }
    } else {
      std::vector<size_t> line_starts;
      end = source_.EndOfPlain(start, value, &line_starts);
      CheckPlain(start, value, line_starts);
    }
    if (!ExpectsKey()) return true;
    if (value.empty()) {
      Fault(start, "a key is empty; give it a name");
      return false;
    }
    if (text.substr(source_.SkipBlanks(end), 1) == ":") return true;
    const std::string hint = SpellingHint(value);
    Fault(start, fmt::format("'{}' is a key without ':'; {}", value,
                             hint.empty() ? "write 'key: value'" : hint));
    return false;
  }

  void CheckPlain(size_t start, std::string_view value, const std::vector<size_t>& line_starts) {
    if (const std::string edge = SuspectEdge(value); !edge.empty()) {
      Fault(start, fmt::format("'{}' {}; type the plain character", value, edge));
    }
    // A line that was meant as `key: value` has become part of the text of the line above.
    for (const size_t i : line_starts) {
      std::string_view word = source_.text().substr(i);
      word = word.substr(0, word.find_first_of(" \t\n"));
      if (const std::string hint = SpellingHint(word); !hint.empty()) {
        Fault(i, fmt::format("'{}' continues the text of the line above; {}", word, hint));
      }
    }
  }

  void Open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor, YAML::EmitterStyle::value style) {
    const auto offset = static_cast<size_t>(mark.pos);
    if (tag != "?" && !tag.empty()) RefuseTag(offset, tag);
    if (open_.size() == kMaxDepth) {
      Fault(offset, fmt::format("nested deeper than {} levels", kMaxDepth));
      throw Stop{};
    }
    // yaml-cpp invents keys inside a bracket that never closes.
    const bool flow = style == YAML::EmitterStyle::Flow;
    if (flow && (open_.empty() || !open_.back().flow)) {
      if (const auto bracket = source_.FindUnclosed(source_.SkipProperties(offset))) {
        Fault(*bracket,
              fmt::format("not valid YAML: this '{}' is never closed", source_.text()[*bracket]));
        throw Stop{};
      }
    }
    if (ExpectsKey()) {
      Fault(offset, "a key must be plain text, found a list or a map");
      throw Stop{};
    }
    Count(1, offset);
    YamlNode node;
    node.kind = kind;
    node.at = source_.At(offset);
    open_.push_back({std::move(node), anchor, flow, {}, false});
  }

  void Close() {
    OpenNode done = std::move(open_.back());
    open_.pop_back();
    Finish(std::move(done.node), done.anchor);
  }

  // Puts a complete node where it belongs: a key, a value, an item or the root.
  void Finish(YamlNode node, size_t anchor) {
    if (anchor != 0) {
      anchors_[anchor] = {node, CountNodes(node)};
      if (!open_.empty() && open_.front().key.has_value()) {
        root_key_of_anchor_[anchor] = open_.front().key->key;
      }
    }
    if (open_.empty()) {
      root_ = std::move(node);
    } else if (open_.back().node.kind == YamlNode::Kind::kList) {
      open_.back().node.items.push_back(std::move(node));
    } else if (!open_.back().key.has_value()) {
      // '<<' in quotes is an ordinary key; the bare one is marked by an empty text, which no
      // other kept key has.
      const bool merge = node.text == "<<" && !node.quoted;
      open_.back().key = YamlEntry{merge ? "" : std::move(node.text), node.at, {}, false};
    } else {
      YamlEntry entry = *std::move(open_.back().key);
      open_.back().key.reset();
      entry.value = std::move(node);
      if (!open_.back().skip_entry) open_.back().node.entries.push_back(std::move(entry));
    }
  }

  // Keeps the first of equal keys.
  void RefuseTwins(YamlNode* map) {
    std::map<std::string, YamlEntry*> first;
    std::vector<YamlEntry> kept;
    kept.reserve(map->entries.size());
    for (YamlEntry& entry : map->entries) {
      const auto [it, added] = first.emplace(entry.key, nullptr);
      if (added) {
        it->second = &kept.emplace_back(std::move(entry));
        continue;
      }
      diagnostics_->Add(
          entry.at, "",
          fmt::format("the key '{}' is given twice, at lines {} and {}; keep one",
                      entry.key.empty() ? "<<" : entry.key, it->second->at.line, entry.at.line));
    }
    map->entries = std::move(kept);
  }

  void Merge(YamlNode* map) {
    std::vector<YamlEntry> own;
    std::vector<YamlNode> bases;
    for (YamlEntry& entry : map->entries) {
      if (!entry.key.empty()) {
        own.push_back(std::move(entry));
        continue;
      }
      const bool list = entry.value.kind == YamlNode::Kind::kList;
      for (YamlNode& base : list ? entry.value.items : std::vector{std::move(entry.value)}) {
        if (base.kind == YamlNode::Kind::kMap) {
          bases.push_back(std::move(base));
        } else {
          diagnostics_->Add(
              entry.at, "",
              fmt::format("'<<' merges a map or a list of maps, found {}", base.Describe()));
        }
      }
    }
    map->entries = std::move(own);
    for (YamlNode& base : bases) {
      for (YamlEntry& entry : base.entries) {
        if (map->Find(entry.key) == nullptr) map->entries.push_back(std::move(entry));
      }
    }
  }

  const Source& source_;
  Diagnostics* diagnostics_;
  YamlNode root_;
  std::vector<OpenNode> open_;
  std::map<size_t, Anchored> anchors_;
  std::map<size_t, std::string> root_key_of_anchor_;
  std::set<size_t> used_anchors_;
  size_t count_ = 0;
};

// Ignores everything but where a document starts.
class DocumentStart : public YAML::EventHandler {
 public:
  std::optional<size_t> offset;

  void OnDocumentStart(const YAML::Mark& mark) override {
    offset = static_cast<size_t>(mark.pos);
    throw Stop{};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

// yaml-cpp notices a broken line at the next one that makes no sense with it, so the search for
// the cause goes up from there to the nearest line that is in order.
void ReportSyntaxError(const Source& source, size_t offset, const std::string& message,
                       Diagnostics* diagnostics) {
  const size_t last = source.LineOf(std::min(offset, source.text().size()));
  for (size_t line = last + 1; line-- > 0;) {
    const std::string_view text = source.Line(line);
    if (const auto suspect = FindSuspect(text)) {
      diagnostics->Add(source.AtLine(line, suspect->offset), "",
                       "not valid YAML: " + suspect->problem);
      return;
    }
    const bool in_order = text.find(": ") != std::string_view::npos || text.ends_with(':') ||
                          text.find("- ") != std::string_view::npos;
    if (line < last && in_order) break;
  }
  diagnostics->Add(source.At(offset), "",
                   fmt::format("not valid YAML ({}); check the indentation, quotes and ':' of this "
                               "line and the one above",
                               message));
}

// Text that is not worth parsing: too large, another encoding, control characters.
bool CheckText(const Source& source, Diagnostics* diagnostics) {
  const std::string_view text = source.text();
  if (text.size() > kMaxBytes) {
    diagnostics->Add(
        source.At(0), "",
        fmt::format("the file has {} bytes; a job has at most {}", text.size(), kMaxBytes));
    return false;
  }
  const auto control = std::find_if(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n';
  });
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    diagnostics->Add(source.At(0), "", "the file is UTF-16; save it as UTF-8");
    return false;
  }
  if (control != text.end()) {
    diagnostics->Add(source.At(static_cast<size_t>(control - text.begin())), "",
                     fmt::format("control character U+{:04X}; remove it",
                                 static_cast<unsigned>(static_cast<unsigned char>(*control))));
    return false;
  }
  if (const auto bad = FindBadUtf8(text)) {
    diagnostics->Add(source.At(*bad), "", "the text is not UTF-8 (GBK?); save it as UTF-8");
    return false;
  }
  return true;
}

// Line ends as LF; a lone CR is left for CheckText.
std::string WithoutCarriageReturns(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r' || text.substr(i + 1, 1) != "\n") out += text[i];
  }
  return out;
}

std::optional<YamlNode> Parse(std::string_view raw, const Position& origin,
                              Diagnostics* diagnostics) {
  if (raw.starts_with("\xEF\xBB\xBF")) raw.remove_prefix(3);
  const std::string text = WithoutCarriageReturns(raw);
  const Source source(text, origin);
  if (!CheckText(source, diagnostics)) return std::nullopt;

  std::istringstream stream(text);
  TreeBuilder builder(source, diagnostics);
  try {
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    DocumentStart second;
    try {
      parser.HandleNextDocument(second);
    } catch (const Stop&) {
      diagnostics->Add(source.At(*second.offset), "",
                       "a second document begins here; a job is one (remove '---', or check the "
                       "indentation)");
    }
  } catch (const Stop&) {
    return std::nullopt;
  } catch (const YAML::Exception& e) {
    ReportSyntaxError(source, static_cast<size_t>(std::max(e.mark.pos, 0)), e.msg, diagnostics);
    return std::nullopt;
  }
  YamlNode root = builder.TakeRoot();
  if (root.kind == YamlNode::Kind::kNull) root.at = source.At(0);
  return root;
}

}  // namespace

YamlNode YamlNode::Null(Position at) {
  YamlNode node;
  node.at = std::move(at);
  return node;
}

YamlNode YamlNode::Scalar(std::string text, Position at) {
  YamlNode node;
  node.kind = Kind::kScalar;
  node.text = std::move(text);
  node.at = std::move(at);
  return node;
}

YamlNode YamlNode::Map(Position at) {
  YamlNode node;
  node.kind = Kind::kMap;
  node.at = std::move(at);
  return node;
}

const YamlEntry* YamlNode::Find(std::string_view key) const {
  const auto it = std::find_if(entries.begin(), entries.end(),
                               [&](const YamlEntry& entry) { return entry.key == key; });
  return it == entries.end() ? nullptr : &*it;
}

YamlEntry* YamlNode::Find(std::string_view key) {
  return const_cast<YamlEntry*>(std::as_const(*this).Find(key));
}

std::string YamlNode::Describe() const {
  switch (kind) {
    case Kind::kNull:
      return "nothing";
    case Kind::kScalar:
      return fmt::format("{}'{}'", quoted ? "the quoted text " : "", text);
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      return "a map";
  }
  return "";
}

std::optional<YamlNode> ParseYaml(std::string_view text, const std::string& file,
                                  Diagnostics* diagnostics) {
  return Parse(text, {file, 1, 1}, diagnostics);
}

std::optional<YamlNode> ParseYamlValue(std::string_view text, const Position& origin,
                                       Diagnostics* diagnostics) {
  return Parse(text, {origin.file, 0, 0}, diagnostics);
}

}  // namespace capstan
