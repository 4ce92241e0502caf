#include "engine/config/schema.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/config/sample_choices.h"

namespace capstan {
namespace {

using Json = nlohmann::json;

// The form of `schema` for the choice of that name.
Json FormOf(const Json& schema, const std::string& selector, const std::string& choice) {
  for (Json form : schema["anyOf"]) {
    if (form.contains("properties") && form["properties"][selector]["const"] == choice) return form;
  }
  return {};
}

TEST(JsonSchema, IsClosedAndKnowsTheChoices) {
  const Json schema = Json::parse(JsonSchema(SampleChoices()));
  EXPECT_EQ(schema["additionalProperties"], false);
  EXPECT_EQ(schema["required"], Json({"model"}));
  EXPECT_EQ(schema["properties"]["_base_"]["type"], "string");

  const Json train = schema["properties"]["train"]["anyOf"][0]["properties"];
  EXPECT_EQ(train["epochs"]["anyOf"][0],
            Json({{"type", "integer"}, {"minimum", 1.0}, {"maximum", 1e9}}));
  EXPECT_EQ(train["seed"]["default"], 42);
  const Json level = schema["properties"]["amp"]["anyOf"][0]["properties"]["level"];
  EXPECT_EQ(level["anyOf"][0]["enum"], Json({"off", "O1", "O2"}));
  EXPECT_EQ(level["default"], "off");

  const Json optimizer = schema["properties"]["optimizer"]["anyOf"][0];
  const Json momentum = FormOf(optimizer, "name", "momentum");
  EXPECT_TRUE(momentum["properties"].contains("weight_decay"));
  EXPECT_TRUE(momentum["properties"].contains("no_decay"));
  EXPECT_FALSE(momentum["properties"].contains("betas"));
  EXPECT_EQ(momentum["required"], Json({"name", "lr"}));
  EXPECT_TRUE(
      schema["properties"]["strategy"]["anyOf"][0]["properties"].contains("overlap_communication"));
}

TEST(MarkdownReference, ListsKeysAndChoices) {
  const std::string text = MarkdownReference(SampleChoices());
  for (const char* line :
       {"| `epochs` | integer, or null; must be from 1 to 1000000000 | `null` | passes over the "
        "training data |\n",
        "| `level` | off, O1, O2 | `off` | off; O1: chosen operators in 16 bits; O2: weights too "
        "|\n",
        "| `name` | model by name | required | the model; its options are keys here |\n",
        "| `overlap` | true or false | `true` | communicate while computing (also read: "
        "`overlap_communication`) |\n",
        "### `dataset.train.loader`\n", "### optimizer `adam`\n\nAdam.\n",
        "| `betas` | list of number; must be from 0 to 1 | `[0.9, 0.999]` | shares kept of both "
        "moments |\n",
        "### transform `ToCHWImage`\n\nchannels first.\n\nNo options.\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace capstan
