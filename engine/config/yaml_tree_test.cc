#include "engine/config/yaml_tree.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/base/status.h"

namespace capstan {
namespace {

// The tree on one line; quoted scalars in quotes, null as '~'.
std::string Show(const YamlNode& node) {
  std::string out;
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "~";
    case YamlNode::Kind::kScalar:
      return node.quoted ? "'" + node.text + "'" : node.text;
    case YamlNode::Kind::kList:
      for (const YamlNode& item : node.items) out += (out.empty() ? "" : ", ") + Show(item);
      return "[" + out + "]";
    case YamlNode::Kind::kMap:
      for (const YamlEntry& entry : node.entries) {
        out += (out.empty() ? "" : ", ") + entry.key + ": " + Show(entry.value);
      }
      return "{" + out + "}";
  }
  return out;
}

// The tree, or the messages if there are any.
std::string Parse(std::string_view text) {
  Diagnostics diagnostics;
  const std::optional<YamlNode> root = ParseYaml(text, "f", &diagnostics);
  if (!diagnostics.empty()) return MessageOf(diagnostics.ToStatus());
  return root.has_value() ? Show(*root) : "no tree";
}

TEST(YamlTree, KeepsScalarsAsWritten) {
  EXPECT_EQ(Parse("a: 010\nb: 'no'\nc: no\nd: 1.0\ne:\nf: null\ng: ~\nh: NULL\n"
                  "i: [0123, y, \"\"]\n"),
            "{a: 010, b: 'no', c: no, d: 1.0, e: ~, f: ~, g: ~, h: ~, i: [0123, y, '']}");
  EXPECT_EQ(Parse("a: \"x\\ty\\\"\"\nb: 'it''s'\nc: |\n  two\n  lines\nd: !!str 5\n"),
            "{a: 'x\ty\"', b: 'it's', c: 'two\nlines\n', d: '5'}");
  EXPECT_EQ(Parse(""), "~");
  EXPECT_EQ(Parse("# nothing\n"), "~");
  EXPECT_EQ(Parse("key:\t5\nb: {\n\tc: 1}\n"), "{key: 5, b: {c: 1}}");
  EXPECT_EQ(Parse("- CTCLabelEncode:\n- KeepKeys: {a: 1}\n- Bare\n"),
            "[{CTCLabelEncode: ~}, {KeepKeys: {a: 1}}, Bare]");
  EXPECT_EQ(Parse("a: two\n  words # comment\nb: 1\n"), "{a: two words, b: 1}");
}

TEST(YamlTree, PositionsCountCharacters) {
  Diagnostics diagnostics;
  const auto root = ParseYaml("# 注释\n名: {键: 值, b: [1,\n  二]}\nc:\n", "f", &diagnostics);
  ASSERT_TRUE(root.has_value() && diagnostics.empty());
  const YamlEntry& map = root->entries[0];
  EXPECT_EQ(map.at.ToString(), "f:2:1");
  EXPECT_EQ(map.value.Find("键")->at.ToString(), "f:2:5");
  EXPECT_EQ(map.value.Find("键")->value.at.ToString(), "f:2:8");
  EXPECT_EQ(map.value.Find("b")->value.items[1].at.ToString(), "f:3:3");
  EXPECT_EQ(root->Find("c")->value.at.ToString(), "f:4:1");
}

// CFG-03.
TEST(YamlTree, RefusesAKeyGivenTwice) {
  EXPECT_EQ(Parse("optimizer: {lr: 0.1}\n\n\nb: 1\noptimizer: {lr: 0.01}\n"),
            "f:5:1: the key 'optimizer' is given twice, at lines 1 and 5; keep one");
  EXPECT_EQ(Parse("a:\n  lr: 1\n  b: {x: 1, x: 2}\n  \"lr\": 2\n"),
            "f:3:13: the key 'x' is given twice, at lines 3 and 3; keep one\n"
            "f:4:3: the key 'lr' is given twice, at lines 2 and 4; keep one");
}

// CFG-04.
TEST(YamlTree, MergesMaps) {
  EXPECT_EQ(Parse("b: &b {lr: 0.1, wd: 0.0005}\no: {<<: *b, lr: 0.2}\n"),
            "{b: {lr: 0.1, wd: 0.0005}, o: {lr: 0.2, wd: 0.0005}}");
  EXPECT_EQ(Parse("b: &b {lr: 1, x: 1}\nc: &c {lr: 2, y: 2}\no:\n  <<: [*b, *c]\n  z: 3\n"),
            "{b: {lr: 1, x: 1}, c: {lr: 2, y: 2}, o: {z: 3, lr: 1, x: 1, y: 2}}");
  EXPECT_EQ(Parse("b: &b {x: 1}\nc: &c {<<: *b, y: 2}\nd: {<<: *c}\n"),
            "{b: {x: 1}, c: {y: 2, x: 1}, d: {y: 2, x: 1}}");
  EXPECT_EQ(Parse("o: {<<: 3}\n"), "f:1:5: '<<' merges a map or a list of maps, found '3'");
  EXPECT_EQ(Parse("b: &b {x: 1}\no: {<<: *b, <<: *b}\n"),
            "f:2:13: the key '<<' is given twice, at lines 2 and 2; keep one");
  EXPECT_EQ(Parse("o: {'<<': 3}\n"), "{o: {<<: 3}}");
}

TEST(YamlTree, CopiesAliases) {
  EXPECT_EQ(Parse("a: &n 25\nb: *n\nc: [*n, 1]\n"), "{a: 25, b: 25, c: [25, 1]}");
  EXPECT_EQ(Parse("a: &x [*x]\n"),
            "f:1:8: this alias stands inside the value that it names; it cannot contain itself");
  EXPECT_EQ(Parse("a: *nope\n"),
            "f:1:4: not valid YAML (the referenced anchor is not defined); check the indentation, "
            "quotes and ':' of this line and the one above");
}

TEST(YamlTree, RefusesBombs) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    bomb += fmt::format("a{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}]\n", i,
                        i - 1);
  }
  EXPECT_NE(Parse(bomb).find("more than 200000 values"), std::string::npos);
  EXPECT_EQ(Parse("a: " + std::string(100, '[') + std::string(100, ']')),
            "f:1:67: nested deeper than 64 levels");
  EXPECT_NE(Parse(std::string((4 << 20) + 1, '#')).find("4194305 bytes"), std::string::npos);
}

// CFG-06.
TEST(YamlTree, NamesLookalikes) {
  EXPECT_EQ(Parse("train:\n  epochs：5\n  seed: 1\n"),
            "f:2:9: not valid YAML: '：' (U+FF1A, full-width colon) is not ':'; type the plain "
            "character");
  EXPECT_EQ(Parse("train:\n  seed: 1\n  epochs：5\n"),
            "f:3:3: 'epochs：5' is a key without ':'; '：' (U+FF1A, full-width colon) is not ':'");
  EXPECT_EQ(Parse("a: 1\nepochs:\xE3\x80\x80"
                  "5\nb: 2\n"),
            "f:2:8: not valid YAML: U+3000 (ideographic space) is not a plain space; type the "
            "plain character");
  EXPECT_EQ(Parse("a: 1\nepochs:5\nb: 2\n"), "f:2:7: not valid YAML: a blank is missing after ':'");
  EXPECT_EQ(Parse("epochs: \xC2\xA0"
                  "5\n"),
            "f:1:9: '\xC2\xA0"
            "5' begins with U+00A0 (no-break space); type the plain "
            "character");
  EXPECT_EQ(Parse("out: “x y”\n"), "f:1:6: '“x y”' is in curly quotes; type the plain character");
  EXPECT_EQ(Parse("m: ｛a: 1｝\n"),
            "f:1:4: not valid YAML: '｛' (U+FF5B, full-width brace) is not '{'; type the plain "
            "character");
  EXPECT_EQ(Parse("m: 'a：b'\nn: 你好：世界\n"), "{m: 'a：b', n: 你好：世界}");
}

TEST(YamlTree, NamesTabsInTheIndentation) {
  EXPECT_EQ(Parse("train:\n\tepochs: 5\n"),
            "f:2:1: not valid YAML: a tab in the indentation; indent with spaces");
  EXPECT_EQ(Parse("train:\n  a: 3\n\tepochs: 5\n"),
            "f:3:1: not valid YAML: a tab in the indentation; indent with spaces");
  EXPECT_EQ(Parse("train:\n  - a\n \t- b\n"),
            "f:3:2: not valid YAML: a tab in the indentation; indent with spaces");
}

// What yaml-cpp reads in silence.
TEST(YamlTree, RefusesBrokenStructure) {
  EXPECT_EQ(Parse("a: 1\n---\nb: 2\n"),
            "f:2:1: a second document begins here; a job is one (remove '---', or check the "
            "indentation)");
  EXPECT_EQ(Parse("{a: 1}\nb: 2\n"),
            "f:2:1: a second document begins here; a job is one (remove '---', or check the "
            "indentation)");
  EXPECT_EQ(Parse("a: \"x\nb: 2\n"), "f:1:4: the quote \" is never closed");
  EXPECT_EQ(Parse("a: 1\ndeterministic\n"),
            "f:2:1: 'deterministic' is a key without ':'; write 'key: value'");
  EXPECT_EQ(Parse("t: {a: 1, deterministic}\n"),
            "f:1:11: 'deterministic' is a key without ':'; write 'key: value'");
  EXPECT_EQ(Parse("t: {a:1, b: 2}\n"),
            "f:1:5: 'a:1' is a key without ':'; a blank is missing after ':'");
  EXPECT_EQ(Parse("a: {b: 1\nc: 2\n"), "f:1:4: not valid YAML: this '{' is never closed");
  EXPECT_EQ(Parse("a: [1, \"]\", {b: 2]\n"), "f:1:13: not valid YAML: this '{' is never closed");
  EXPECT_EQ(Parse("a: [1, # ]\n  don't]\n"), "{a: [1, don't]}");
  EXPECT_EQ(Parse("null: 5\n\"\": 6\n"),
            "f:1:1: a key is missing here, or is the word null; quote it if it is meant\n"
            "f:2:1: a key is empty; give it a name");
  EXPECT_EQ(Parse("? [x]\n: 3\n"), "f:1:3: a key must be plain text, found a list or a map");
  EXPECT_EQ(Parse("a: !!float 5\n"),
            "f:1:4: a job uses no YAML tags, found 'tag:yaml.org,2002:float'; remove it");
  EXPECT_EQ(Parse("a: 1\n   epochs:5\n"),
            "f:2:4: 'epochs:5' continues the text of the line above; a blank is missing after ':'");
}

// CFG-07, and other encodings.
TEST(YamlTree, ReadsWindowsTextAndRefusesOtherEncodings) {
  EXPECT_EQ(Parse("\xEF\xBB\xBF"
                  "a: data/x\r\nb:\r\n  - c:\\d\r\n"),
            "{a: data/x, b: [c:\\d]}");
  EXPECT_EQ(Parse("a: 1\rb: 2\n"), "f:1:5: control character U+000D; remove it");
  EXPECT_EQ(Parse("a: 1\nb: \x04\n"), "f:2:4: control character U+0004; remove it");
  EXPECT_EQ(Parse("a: 1\nb: \xB1\xB1\n"), "f:2:4: the text is not UTF-8 (GBK?); save it as UTF-8");
  EXPECT_EQ(Parse("\xFF\xFE"
                  "a"),
            "f:1:1: the file is UTF-16; save it as UTF-8");
}

}  // namespace
}  // namespace capstan
