// The closed form here against the samples that make_goldens.py wrote from its own.
#include "tests/parity/closed_form.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

namespace capstan {
namespace {

using nlohmann::json;

constexpr const char* kGoldens[] = {"tests/parity/goldens/resnet18_narrow_f32.json",
                                    "tests/parity/goldens/resnet18_narrow_f64.json"};
// Samples are printed with 16 digits.
constexpr double kPrinted = 1e-15;

json Load(const char* path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  return json::parse(file);
}

// Calls f(index, value) for every sample of a tensor.
template <typename F>
void ForSamples(const json& tensor, F&& f) {
  ASSERT_FALSE(tensor["index"].empty());
  for (size_t i = 0; i < tensor["index"].size(); ++i) {
    f(tensor["index"][i].get<int64_t>(), tensor["value"][i].get<double>());
  }
}

TEST(ClosedForm, ParametersAreThoseOfTheGoldens) {
  for (const char* path : kGoldens) {
    const json goldens = Load(path);
    const json& parameters = goldens["closed_form"]["parameters"];
    EXPECT_EQ(parameters.size(), 5u);
    for (const auto& item : parameters.items()) {
      const std::string& name = item.key();
      const json& tensor = item.value();
      SCOPED_TRACE(name);
      const Shape shape(tensor["shape"].get<std::vector<int64_t>>());
      ForSamples(tensor, [&](int64_t index, double value) {
        EXPECT_NEAR(closed_form::Parameter(name, shape, index), value, kPrinted) << index;
      });
      double squares = 0;
      for (int64_t i = 0; i < shape.count(); ++i) {
        squares += std::pow(closed_form::Parameter(name, shape, i), 2);
      }
      EXPECT_NEAR(std::sqrt(squares) / tensor["norm"].get<double>(), 1.0, 1e-14);
    }
  }
}

TEST(ClosedForm, BatchesAreThoseOfTheGoldens) {
  for (const char* path : kGoldens) {
    const json goldens = Load(path);
    const int64_t classes = goldens["spec"]["classes"];
    const int64_t batches = goldens["spec"]["batches"];
    for (int64_t batch = 0; batch < batches; ++batch) {
      const auto k = static_cast<size_t>(batch);
      ForSamples(goldens["closed_form"]["images"][k], [&](int64_t index, double value) {
        EXPECT_NEAR(closed_form::Image(batch, index), value, kPrinted) << index;
      });
      const auto labels = goldens["closed_form"]["labels"][k].get<std::vector<int64_t>>();
      EXPECT_EQ(static_cast<int64_t>(labels.size()), goldens["spec"]["image"][0]);
      for (size_t i = 0; i < labels.size(); ++i) {
        EXPECT_EQ(closed_form::Label(batch, static_cast<int64_t>(i), classes), labels[i]);
      }
    }
  }
}

}  // namespace
}  // namespace capstan
