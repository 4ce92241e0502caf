#include "engine/base/reflect.h"

#include <fmt/format.h>

#include <charconv>

#include "engine/base/status.h"
#include "engine/base/text.h"

namespace capstan {
namespace {

void SkipSpace(std::string_view* text) {
  while (!text->empty() && (text->front() == ' ' || text->front() == '\n')) text->remove_prefix(1);
}

bool Consume(std::string_view* text, std::string_view token) {
  SkipSpace(text);
  if (text->substr(0, token.size()) != token) return false;
  text->remove_prefix(token.size());
  return true;
}

absl::Status Expected(const char* what, std::string_view found) {
  return InvalidArgument("expected {}, found '{}'", what, found.substr(0, 24));
}

std::string_view TakeWord(std::string_view* text) {
  SkipSpace(text);
  const size_t n = std::min(text->find_first_of(" ,=[]{}\n"), text->size());
  const std::string_view word = text->substr(0, n);
  text->remove_prefix(n);
  return word;
}

template <typename T>
absl::Status ParseNumber(std::string_view* text, const char* what, void* value) {
  const std::string_view word = TakeWord(text);
  const auto r = std::from_chars(word.data(), word.data() + word.size(), *static_cast<T*>(value));
  if (r.ec != std::errc() || r.ptr != word.data() + word.size()) return Expected(what, word);
  return absl::OkStatus();
}

absl::Status ParseList(const TypeInfo& type, std::string_view* text, void* value) {
  if (!Consume(text, "[")) return Expected("'['", *text);
  type.resize(value, 0);
  if (Consume(text, "]")) return absl::OkStatus();
  do {
    const size_t n = type.size(value);
    type.resize(value, n + 1);
    RETURN_IF_ERROR(ParseValue(*type.element, text, type.at(value, n)));
  } while (Consume(text, ","));
  return Consume(text, "]") ? absl::OkStatus() : Expected("',' or ']'", *text);
}

absl::Status ParseStruct(const TypeInfo& type, std::string_view* text, void* value) {
  if (!Consume(text, "{")) return Expected("'{'", *text);
  if (Consume(text, "}")) return absl::OkStatus();
  do {
    const std::string_view name = TakeWord(text);
    const FieldInfo* field = nullptr;
    for (const FieldInfo& f : type.fields()) {
      if (name == f.name) field = &f;
    }
    if (field == nullptr) return InvalidArgument("no field is called '{}'", name);
    if (!Consume(text, "=")) return Expected("'='", *text);
    RETURN_IF_ERROR(ParseValue(*field->type, text, field->get(value)), "in field '{}'", name);
  } while (Consume(text, ","));
  return Consume(text, "}") ? absl::OkStatus() : Expected("',' or '}'", *text);
}

}  // namespace

AnyStruct AnyStruct::Create(const TypeInfo& type) {
  return AnyStruct(&type, std::shared_ptr<void>(type.create(), type.destroy));
}

AnyStruct AnyStruct::Clone() const {
  AnyStruct copy = Create(*type_);
  type_->assign(copy.mutable_data(), data());
  return copy;
}

bool operator==(const AnyStruct& a, const AnyStruct& b) {
  if (a.value_ == b.value_) return true;
  if (a.type_ != b.type_ || a.empty() || b.empty()) return false;
  return PrintValue(*a.type_, a.data()) == PrintValue(*b.type_, b.data());
}

std::string PrintValue(const TypeInfo& type, const void* value, bool all) {
  switch (type.kind) {
    case Kind::kBool:
      return *static_cast<const bool*>(value) ? "true" : "false";
    case Kind::kInt:
      return fmt::format("{}", *static_cast<const int64_t*>(value));
    case Kind::kFloat:
      return fmt::format("{}", *static_cast<const double*>(value));
    case Kind::kString:
      return Quote(*static_cast<const std::string*>(value));
    case Kind::kEnum:
      return type.enum_names()[type.enum_get(value)];
    case Kind::kOptional: {
      const void* inner = type.value(const_cast<void*>(value));
      return inner == nullptr ? "null" : PrintValue(*type.element, inner, all);
    }
    case Kind::kList: {
      std::string out = "[";
      for (size_t i = 0; i < type.size(value); ++i) {
        if (i > 0) out += ", ";
        out += PrintValue(*type.element, type.at(const_cast<void*>(value), i), all);
      }
      return out + "]";
    }
    case Kind::kStruct: {
      const std::shared_ptr<void> defaults(type.create(), type.destroy);
      std::string out;
      for (const FieldInfo& f : type.fields()) {
        const std::string text = PrintValue(*f.type, f.Get(value), all);
        if (!all && text == PrintValue(*f.type, f.Get(defaults.get()))) continue;
        out += fmt::format("{}{}={}", out.empty() ? "" : ", ", f.name, text);
      }
      return "{" + out + "}";
    }
    case Kind::kSection: {
      const auto& section = *static_cast<const Section*>(value);
      if (section.options.empty()) return section.name;
      return section.name + PrintValue(*section.options.type(), section.options.data(), all);
    }
  }
  CHECK(false) << "unknown kind";
  return "";
}

absl::Status ParseValue(const TypeInfo& type, std::string_view* text, void* value) {
  switch (type.kind) {
    case Kind::kBool: {
      const std::string_view word = TakeWord(text);
      if (word != "true" && word != "false") return Expected("true or false", word);
      *static_cast<bool*>(value) = word == "true";
      return absl::OkStatus();
    }
    case Kind::kInt:
      return ParseNumber<int64_t>(text, "an integer", value);
    case Kind::kFloat:
      return ParseNumber<double>(text, "a number", value);
    case Kind::kString:
      SkipSpace(text);
      return Unquote(text, static_cast<std::string*>(value));
    case Kind::kEnum: {
      const std::string_view word = TakeWord(text);
      const auto names = type.enum_names();
      for (size_t i = 0; i < names.size(); ++i) {
        if (word == names[i]) {
          type.enum_set(value, static_cast<int64_t>(i));
          return absl::OkStatus();
        }
      }
      return InvalidArgument("'{}' is not one of {}", word, fmt::join(names, ", "));
    }
    case Kind::kOptional:
      if (Consume(text, "null")) {
        type.reset(value);
        return absl::OkStatus();
      }
      return ParseValue(*type.element, text, type.emplace(value));
    case Kind::kList:
      return ParseList(type, text, value);
    case Kind::kStruct:
      return ParseStruct(type, text, value);
    case Kind::kSection:
      return InvalidArgument("a section cannot be parsed without its table of choices");
  }
  CHECK(false) << "unknown kind";
  return absl::OkStatus();
}

}  // namespace capstan
