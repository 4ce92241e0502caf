#include "engine/config/render.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "engine/base/text.h"
#include "engine/config/diagnostics.h"
#include "engine/config/job_keys.h"

namespace capstan {
namespace {

// Words that some YAML reader takes for a switch or null.
constexpr std::array<std::string_view, 11> kReserved = {"y",    "n",     "yes",  "no",  "on", "off",
                                                        "true", "false", "null", "nan", "inf"};

// Unquoted only where every YAML reader agrees that it is a text.
std::string YamlText(const std::string& text) {
  std::string folded = text;
  for (char& c : folded) c = (c >= 'A' && c <= 'Z') ? static_cast<char>(c + 32) : c;
  bool plain = !text.empty() && ((folded[0] >= 'a' && folded[0] <= 'z') || folded[0] == '/');
  for (const char c : folded) {
    plain &= (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
             std::string_view("_-./").find(c) != std::string_view::npos;
  }
  for (const std::string_view word : kReserved) plain &= folded != word;
  return plain ? text : Quote(text);
}

// Shortest text that reads back to the same bits. YAML 1.1 wants a point before an exponent.
std::string YamlNumber(double value) {
  std::string text = fmt::format("{}", value);
  const size_t e = text.find('e');
  if (e != std::string::npos && text.find('.') == std::string::npos) text.insert(e, ".0");
  return text;
}

// Each field of a struct by its key, with the selector and options of an inlined section in place.
template <typename Visit>
void VisitKeys(const TypeInfo& type, const void* value, const Visit& visit) {
  for (const FieldInfo& field : type.fields()) {
    const void* inner = field.Get(value);
    if (!IsInlinedSection(field)) {
      visit(field, *field.type, inner);
      continue;
    }
    if (field.type->kind == Kind::kOptional) {
      inner = field.type->value(const_cast<void*>(inner));
      if (inner == nullptr) continue;
    }
    const auto& section = *static_cast<const Section*>(inner);
    visit(field, TypeOf<std::string>(), &section.name);
    VisitKeys(*section.options.type(), section.options.data(), visit);
  }
}

// The field that a short form gives, where all others have their defaults: `auto` for
// `{mode: auto}`. Null where the map is due.
const FieldInfo* FieldOfShortForm(const TypeInfo& type, const void* value) {
  if (type.shorthand == nullptr || type.shorthand->also_key != nullptr) return nullptr;
  const AnyStruct defaults = AnyStruct::Create(type);
  const FieldInfo* found = nullptr;
  for (const FieldInfo& field : type.fields()) {
    const std::string text = PrintValue(*field.type, field.Get(value));
    const bool same = text == PrintValue(*field.type, field.Get(defaults.data()));
    const bool is_key = std::string_view(field.name) == type.shorthand->key;
    if (same == is_key) return nullptr;
    if (is_key) found = &field;
  }
  return found;
}

// A value on one line.
std::string Flow(const FieldInfo& field, const TypeInfo& type, const void* value);

std::string FlowMap(const TypeInfo& type, const void* value) {
  std::string out;
  VisitKeys(type, value, [&](const FieldInfo& field, const TypeInfo& inner, const void* v) {
    out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", field.name, Flow(field, inner, v));
  });
  return "{" + out + "}";
}

std::string Flow(const FieldInfo& field, const TypeInfo& type, const void* value) {
  switch (type.kind) {
    case Kind::kBool:
    case Kind::kInt:
      return PrintValue(type, value);
    case Kind::kFloat:
      return YamlNumber(*static_cast<const double*>(value));
    case Kind::kString: {
      const auto& text = *static_cast<const std::string*>(value);
      return text == field.unset ? Quote(text) : YamlText(text);
    }
    case Kind::kEnum:
      return YamlText(PrintValue(type, value));
    case Kind::kOptional: {
      const void* inner = type.value(const_cast<void*>(value));
      return inner == nullptr ? field.unset : Flow(field, *type.element, inner);
    }
    case Kind::kList: {
      std::string out;
      for (size_t i = 0; i < type.size(value); ++i) {
        out +=
            (i == 0 ? "" : ", ") + Flow(field, *type.element, type.at(const_cast<void*>(value), i));
      }
      return "[" + out + "]";
    }
    case Kind::kStruct:
      if (const FieldInfo* f = FieldOfShortForm(type, value)) {
        return Flow(*f, *f->type, f->Get(value));
      }
      return FlowMap(type, value);
    case Kind::kSection: {
      const auto& section = *static_cast<const Section*>(value);
      return fmt::format("{}: {}", YamlText(section.name),
                         FlowMap(*section.options.type(), section.options.data()));
    }
  }
  return "";
}

void Block(const TypeInfo& type, const void* value, const std::string& indent, std::string* out);

void BlockEntry(const FieldInfo& field, const TypeInfo& type, const void* value,
                const std::string& indent, std::string* out) {
  if (type.kind == Kind::kOptional && type.value(const_cast<void*>(value)) != nullptr) {
    BlockEntry(field, *type.element, type.value(const_cast<void*>(value)), indent, out);
  } else if (type.kind == Kind::kStruct && FieldOfShortForm(type, value) == nullptr) {
    *out += fmt::format("{}{}:\n", indent, field.name);
    Block(type, value, indent + "  ", out);
  } else if (type.kind == Kind::kList && type.element->kind == Kind::kSection &&
             type.size(value) > 0) {
    *out += fmt::format("{}{}:\n", indent, field.name);
    for (size_t i = 0; i < type.size(value); ++i) {
      *out += fmt::format("{}  - {}\n", indent,
                          Flow(field, *type.element, type.at(const_cast<void*>(value), i)));
    }
  } else {
    *out += fmt::format("{}{}: {}\n", indent, field.name, Flow(field, type, value));
  }
}

void Block(const TypeInfo& type, const void* value, const std::string& indent, std::string* out) {
  VisitKeys(type, value, [&](const FieldInfo& field, const TypeInfo& inner, const void* v) {
    BlockEntry(field, inner, v, indent, out);
  });
}

struct Leaf {
  std::string path;
  std::string text;
};

void AddLeaves(const TypeInfo& type, const void* value, const std::string& path,
               std::vector<Leaf>* leaves) {
  VisitKeys(type, value, [&](const FieldInfo& field, const TypeInfo& inner, const void* v) {
    const std::string inner_path = JoinPath(path, field.name);
    const bool set_optional =
        inner.kind == Kind::kOptional && inner.value(const_cast<void*>(v)) != nullptr;
    const TypeInfo& bare = set_optional ? *inner.element : inner;
    if (bare.kind == Kind::kStruct) {
      AddLeaves(bare, set_optional ? inner.value(const_cast<void*>(v)) : v, inner_path, leaves);
    } else {
      leaves->push_back({inner_path, Flow(field, inner, v)});
    }
  });
}

const Leaf* FindLeaf(const std::vector<Leaf>& leaves, const std::string& path) {
  for (const Leaf& leaf : leaves) {
    if (leaf.path == path) return &leaf;
  }
  return nullptr;
}

}  // namespace

std::vector<ChangedKey> ChangedKeys(const JobSpec& before, const JobSpec& after) {
  constexpr char kNotSet[] = "not set";
  std::vector<Leaf> old_leaves, new_leaves;
  AddLeaves(TypeOf<JobSpec>(), &before, "", &old_leaves);
  AddLeaves(TypeOf<JobSpec>(), &after, "", &new_leaves);
  std::vector<ChangedKey> changed;
  for (const Leaf& leaf : new_leaves) {
    const Leaf* old = FindLeaf(old_leaves, leaf.path);
    if (old == nullptr || old->text != leaf.text) {
      changed.push_back({leaf.path, old == nullptr ? kNotSet : old->text, leaf.text});
    }
  }
  for (const Leaf& leaf : old_leaves) {
    if (FindLeaf(new_leaves, leaf.path) == nullptr) {
      changed.push_back({leaf.path, leaf.text, kNotSet});
    }
  }
  return changed;
}

std::string Render(const JobSpec& job) {
  std::string out;
  Block(TypeOf<JobSpec>(), &job, "", &out);
  return out;
}

}  // namespace capstan
