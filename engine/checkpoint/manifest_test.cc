#include "engine/checkpoint/manifest.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "engine/base/status.h"

namespace capstan {
namespace {

const std::string kKey = "  \"manifest_xxh3\": \"";

Manifest Sample() {
  return {.iteration = 1000,
          .sequence = 7,
          .groups = {{"weights", {"weights.safetensors"}}},
          .files = {{"weights.safetensors", {432, 0xac082be2ac516994}}, {"state.json", {307, 1}}}};
}

// `text` with the checksum that fits it.
std::string Sealed(const std::string& text) {
  const std::string body = text.substr(0, text.rfind(kKey));
  return body + kKey + ChecksumText(Xxh3(body)) + "\"\n}\n";
}

// The sample with one text replaced, sealed.
std::string ErrorOf(const std::string& from, const std::string& to) {
  std::string text = ManifestToJson(Sample());
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  return MessageOf(ManifestFromJson(Sealed(text)).status());
}

TEST(Manifest, PrintsAndParses) {
  const std::string text = ManifestToJson(Sample());
  auto manifest = ManifestFromJson(text);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->iteration, 1000);
  EXPECT_EQ(manifest->sequence, 7);
  EXPECT_EQ(manifest->files[0].summary, Sample().files[0].summary);
  EXPECT_EQ(manifest->groups[0].files, Sample().groups[0].files);
  EXPECT_EQ(manifest->TotalBytes(), 739);
  EXPECT_EQ(ManifestToJson(*manifest), text);
  EXPECT_EQ(Sealed(text), text);
}

TEST(Manifest, SealedButWrong) {
  const std::string malformed = "the manifest is malformed: ";
  EXPECT_EQ(ErrorOf("capstan-checkpoint", "x"), malformed + "format \"x\"");
  EXPECT_EQ(ErrorOf("\"iteration\": 1000", "\"iteration\": -1"), malformed + "no count iteration");
  EXPECT_EQ(ErrorOf("\"iteration\": 1000", "\"iteration\": \"a\""),
            malformed + "no count iteration");
  EXPECT_EQ(ErrorOf("\"sequence\": 7", "\"sequence\": 9223372036854775808"),
            malformed + "no count sequence");
  EXPECT_EQ(ErrorOf("\"state.json\"", "\"../state.json\""),
            malformed + "file name \"../state.json\"");
  EXPECT_EQ(ErrorOf("\"state.json\"", "\"..\""), malformed + "file name \"..\"");
  EXPECT_EQ(ErrorOf("\"state.json\"", "\"manifest.json\""),
            malformed + "file name \"manifest.json\"");
  EXPECT_EQ(ErrorOf("\"ac082be2ac516994\"", "\"AC082BE2AC516994\""),
            malformed + "not a checksum: \"AC082BE2AC516994\"");
  EXPECT_EQ(ErrorOf("\"groups\"", "\"group\""), malformed + "no list groups");
  EXPECT_EQ(ErrorOf("{\n  \"format\"", "[\n  \"format\""), malformed + "not a JSON map");
  EXPECT_EQ(ErrorOf("\"version\": 1", "\"version\": 2"),
            "the checkpoint has format version 2, this program reads version 1; use the newer "
            "program");
}

TEST(Manifest, RandomChangesNeverCrash) {
  const std::string good = ManifestToJson(Sample());
  std::mt19937 random(5);
  for (int round = 0; round < 20000; ++round) {
    std::string text = good;
    for (uint32_t changes = 1 + random() % 3; changes > 0; --changes) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, 1 + random() % 20);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 20));
      }
      if (text.empty()) text = " ";
    }
    if (text != good) {
      ASSERT_FALSE(ManifestFromJson(text).ok()) << text;
    }
    (void)ManifestFromJson(Sealed(text)).ok();
  }
}

}  // namespace
}  // namespace capstan
