#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "engine/config/job_keys.h"
#include "engine/config/job_spec.h"
#include "engine/config/schema.h"

namespace capstan {
namespace {

using Json = nlohmann::ordered_json;

class SchemaWriter {
 public:
  explicit SchemaWriter(const ChoiceTable& choices) : choices_(choices) {}

  // A map with the keys of `type`; one alternative for each choice of an inlined section.
  Json Struct(const TypeInfo& type) {
    const FieldInfo* section = nullptr;
    for (const FieldInfo& field : type.fields()) {
      if (IsInlinedSection(field)) section = &field;
    }
    const auto category = section == nullptr ? choices_.end() : choices_.find(section->category);
    std::vector<Json> forms;
    if (category != choices_.end()) {
      for (const Choice& choice : category->second) {
        forms.push_back(Object(type, section, &choice));
      }
    } else {
      forms.push_back(Object(type, section, nullptr));
    }
    if (const Json scalar = ShortForm(type, section); !scalar.is_null()) forms.push_back(scalar);
    return forms.size() == 1 ? forms[0] : Json{{"anyOf", forms}};
  }

 private:
  Json Object(const TypeInfo& type, const FieldInfo* section, const Choice* choice) {
    Json properties = Json::object();
    Json required = Json::array();
    const AnyStruct defaults = AnyStruct::Create(type);
    for (const FieldInfo& field : type.fields()) {
      if (&field != section) {
        AddProperty(field, defaults.data(), &properties, &required);
        continue;
      }
      properties[field.name] = choice == nullptr
                                   ? Json{{"type", "string"}}
                                   : Json{{"const", choice->name}, {"description", choice->doc}};
      if (field.type->kind == Kind::kSection) required.push_back(field.name);
      if (choice == nullptr) continue;
      const AnyStruct options = AnyStruct::Create(*choice->options);
      for (const FieldInfo& option : choice->options->fields()) {
        AddProperty(option, options.data(), &properties, &required);
      }
    }
    Json object{{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
    if (!required.empty()) object["required"] = required;
    return object;
  }

  void AddProperty(const FieldInfo& field, const void* defaults, Json* properties, Json* required) {
    Json value = Value(field, *field.type);
    // An empty value means "not set" for every key.
    value = Json{{"anyOf", {value, Json{{"type", "null"}}}}, {"description", field.doc}};
    const Json standard = Default(*field.type, field.Get(defaults));
    if (!field.required && !standard.is_null()) value["default"] = standard;
    if (field.required) required->push_back(field.name);
    (*properties)[field.name] = value;
    if (field.also != nullptr) (*properties)[field.also] = value;
  }

  Json Value(const FieldInfo& field, const TypeInfo& type) {
    switch (type.kind) {
      case Kind::kBool:
        return {{"type", "boolean"}};
      case Kind::kInt:
        return WithBounds({{"type", "integer"}}, field.bounds);
      case Kind::kFloat:
        return WithBounds({{"type", "number"}}, field.bounds);
      case Kind::kString:
        // Unquoted numbers and switches are texts here, as written.
        return {{"type", {"string", "number", "boolean"}}};
      case Kind::kEnum: {
        const auto names = type.enum_names();
        return {{"enum", std::vector<std::string>(names.begin(), names.end())}};
      }
      case Kind::kOptional: {
        const Json inner = Value(field, *type.element);
        if (std::strcmp(field.unset, "null") == 0) return inner;
        return {{"anyOf", {inner, Json{{"const", field.unset}}}}};
      }
      case Kind::kList:
        return {{"type", "array"}, {"items", Value(field, *type.element)}};
      case Kind::kStruct:
        return Struct(type);
      case Kind::kSection:
        return SectionItem(field);
    }
    return {};
  }

  // `Name` or `Name: {options}`.
  Json SectionItem(const FieldInfo& field) {
    Json forms = Json::array();
    forms.push_back({{"enum", ChoiceNames(choices_, field.category)}});
    if (const auto category = choices_.find(field.category); category != choices_.end()) {
      for (const Choice& choice : category->second) {
        Json body{{"anyOf", {Struct(*choice.options), Json{{"type", "null"}}}},
                  {"description", choice.doc}};
        forms.push_back({{"type", "object"},
                         {"properties", {{choice.name, body}}},
                         {"required", {choice.name}},
                         {"additionalProperties", false}});
      }
    }
    return {{"anyOf", forms}};
  }

  Json ShortForm(const TypeInfo& type, const FieldInfo* section) {
    if (type.shorthand == nullptr) {
      if (section == nullptr) return nullptr;
      return {{"enum", ChoiceNames(choices_, section->category)}};
    }
    for (const FieldInfo& field : type.fields()) {
      if (std::strcmp(field.name, type.shorthand->key) == 0) return Value(field, *field.type);
    }
    return {{"type", "number"}};
  }

  static Json WithBounds(Json schema, const Bounds& bounds) {
    if (std::isfinite(bounds.min)) {
      schema[bounds.open_min ? "exclusiveMinimum" : "minimum"] = bounds.min;
    }
    if (std::isfinite(bounds.max)) schema["maximum"] = bounds.max;
    return schema;
  }

  // Defaults of scalars only; null where there is none to show.
  static Json Default(const TypeInfo& type, const void* value) {
    switch (type.kind) {
      case Kind::kBool:
        return *static_cast<const bool*>(value);
      case Kind::kInt:
        return *static_cast<const int64_t*>(value);
      case Kind::kFloat:
        return *static_cast<const double*>(value);
      case Kind::kString:
        return *static_cast<const std::string*>(value);
      case Kind::kEnum:
        return type.enum_names()[static_cast<size_t>(type.enum_get(value))];
      case Kind::kOptional: {
        const void* inner = type.value(const_cast<void*>(value));
        return inner == nullptr ? Json() : Default(*type.element, inner);
      }
      default:
        return nullptr;
    }
  }

  const ChoiceTable& choices_;
};

}  // namespace

std::string JsonSchema(const ChoiceTable& choices) {
  Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
              {"title", "Capstan job"}};
  const Json root = SchemaWriter(choices).Struct(TypeOf<JobSpec>());
  for (const auto& [key, value] : root.items()) schema[key] = value;
  schema["properties"]["_base_"] = {{"type", "string"},
                                    {"description", "a job file that this one starts from"}};
  return schema.dump(2) + "\n";
}

}  // namespace capstan
