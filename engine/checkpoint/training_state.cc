#include "engine/checkpoint/training_state.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/base/check.h"
#include "engine/base/status.h"
#include "engine/base/text.h"
#include "engine/checkpoint/safetensors.h"

namespace capstan {
namespace {

using Json = nlohmann::ordered_json;

absl::Status ToJson(const TypeInfo& type, const void* value, Json* out) {
  switch (type.kind) {
    case Kind::kBool:
      *out = *static_cast<const bool*>(value);
      return absl::OkStatus();
    case Kind::kInt:
      *out = *static_cast<const int64_t*>(value);
      return absl::OkStatus();
    case Kind::kFloat: {
      const double number = *static_cast<const double*>(value);
      // JSON has no such numbers; the printer would write null.
      if (std::isnan(number))
        *out = "nan";
      else if (std::isinf(number))
        *out = number > 0 ? "inf" : "-inf";
      else
        *out = number;
      return absl::OkStatus();
    }
    case Kind::kString: {
      const auto& text = *static_cast<const std::string*>(value);
      if (!IsUtf8(text)) return InvalidArgument("the text is not UTF-8");
      *out = text;
      return absl::OkStatus();
    }
    case Kind::kList: {
      *out = Json::array();
      for (size_t i = 0; i < type.size(value); ++i) {
        Json element;
        RETURN_IF_ERROR(ToJson(*type.element, type.at(const_cast<void*>(value), i), &element));
        out->push_back(std::move(element));
      }
      return absl::OkStatus();
    }
    case Kind::kOptional: {
      const void* held = type.value(const_cast<void*>(value));
      *out = nullptr;
      return held == nullptr ? absl::OkStatus() : ToJson(*type.element, held, out);
    }
    case Kind::kStruct:
      *out = Json::object();
      for (const FieldInfo& field : type.fields()) {
        RETURN_IF_ERROR(ToJson(*field.type, field.Get(value), &(*out)[field.name]),
                        "while storing {}", field.name);
      }
      return absl::OkStatus();
    case Kind::kEnum:
    case Kind::kSection:
      break;
  }
  CHECK(false) << "a state has no field of this kind";
  return absl::OkStatus();
}

absl::Status FromJson(const Json& json, const TypeInfo& type, const std::string& key, void* value) {
  const auto wrong = [&key](const char* wanted) {
    return DataLoss("key {}: expected {}", key, wanted);
  };
  switch (type.kind) {
    case Kind::kBool:
      if (!json.is_boolean()) return wrong("true or false");
      *static_cast<bool*>(value) = json.get<bool>();
      return absl::OkStatus();
    case Kind::kInt:
      if (!json.is_number_integer() ||
          (json.is_number_unsigned() && json.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))) {
        return wrong("an integer of 64 bits");
      }
      *static_cast<int64_t*>(value) = json.get<int64_t>();
      return absl::OkStatus();
    case Kind::kFloat:
      if (json.is_number())
        *static_cast<double*>(value) = json.get<double>();
      else if (json == "nan")
        *static_cast<double*>(value) = std::nan("");
      else if (json == "inf")
        *static_cast<double*>(value) = HUGE_VAL;
      else if (json == "-inf")
        *static_cast<double*>(value) = -HUGE_VAL;
      else
        return wrong("a number");
      return absl::OkStatus();
    case Kind::kString:
      if (!json.is_string()) return wrong("a text");
      *static_cast<std::string*>(value) = json.get_ref<const std::string&>();
      return absl::OkStatus();
    case Kind::kList:
      if (!json.is_array()) return wrong("a list");
      type.resize(value, json.size());
      for (size_t i = 0; i < json.size(); ++i) {
        RETURN_IF_ERROR(FromJson(json[i], *type.element, key, type.at(value, i)));
      }
      return absl::OkStatus();
    case Kind::kOptional:
      type.reset(value);
      return json.is_null() ? absl::OkStatus()
                            : FromJson(json, *type.element, key, type.emplace(value));
    case Kind::kStruct:
      if (!json.is_object()) return wrong("a map");
      for (const FieldInfo& field : type.fields()) {
        const std::string path = key.empty() ? field.name : key + "." + field.name;
        const auto it = json.find(field.name);
        if (it != json.end()) {
          RETURN_IF_ERROR(FromJson(*it, *field.type, path, field.get(value)));
        } else if (field.required) {
          return DataLoss("key {} is missing", path);
        }
      }
      return absl::OkStatus();
    case Kind::kEnum:
    case Kind::kSection:
      break;
  }
  CHECK(false) << "a state has no field of this kind";
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> StateToJson(const TrainingState& state) {
  Json json;
  RETURN_IF_ERROR(ToJson(TypeOf<TrainingState>(), &state, &json));
  return json.dump(2) + "\n";
}

absl::StatusOr<TrainingState> StateFromJson(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return DataLoss("it is not valid JSON");
  if (!json.is_object()) return DataLoss("it is not a JSON map");
  TrainingState state;
  RETURN_IF_ERROR(FromJson(json, TypeOf<TrainingState>(), "", &state));
  return state;
}

}  // namespace capstan
