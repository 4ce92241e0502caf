// Field reflection: a plain struct lists its fields once, and printing, parsing, hashing, equality,
// schema checks and documentation all follow from that list.
//
//   struct DropoutAttrs {
//     double rate = 0.5;                                      // the ONLY default
//     static constexpr auto Fields() {
//       return std::array{Field<&DropoutAttrs::rate>("rate", "share of elements set to zero",
//                                                    Bounds{.min = 0, .max = 1})};
//     }
//   };
//
// Field types: bool, int64_t, double, std::string, an enum with EnumNamesOf, std::vector<T>,
// std::optional<T>, a nested struct with Fields(), and Section (a struct chosen by name).
// All tables are constant; everything here is safe from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "engine/base/check.h"

namespace capstan {

enum class Kind { kBool, kInt, kFloat, kString, kEnum, kList, kOptional, kStruct, kSection };

// Allowed range of a number (or of every number of a list), ends included unless `open_min`.
struct Bounds {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool open_min = false;
};
inline constexpr Bounds kPositive{.min = 0, .open_min = true};
inline constexpr Bounds kNonNegative{.min = 0};
inline constexpr Bounds kAtLeastOne{.min = 1};

struct FieldInfo;

// What a lone scalar means where a job wants the map of a struct: `grad_clip: 1.0` reads as
// `{global_norm: 1.0}`. A struct asks for it with a static member `kShorthand`.
struct Shorthand {
  const char* key;                   // takes the scalar
  const char* also_key = nullptr;    // set as well, to ...
  const char* also_value = nullptr;  // ... this text
};

// One type, erased. Function pointers that a kind does not use are null.
struct TypeInfo {
  Kind kind;
  void* (*create)();
  void (*destroy)(void*);
  void (*assign)(void* to, const void* from);
  const TypeInfo* element = nullptr;                 // list, optional
  std::span<const FieldInfo> (*fields)() = nullptr;  // struct
  std::span<const char* const> (*enum_names)() = nullptr;
  int64_t (*enum_get)(const void*) = nullptr;
  void (*enum_set)(void*, int64_t) = nullptr;
  size_t (*size)(const void*) = nullptr;    // list
  void (*resize)(void*, size_t) = nullptr;  // list
  void* (*at)(void*, size_t) = nullptr;     // list
  void* (*value)(void*) = nullptr;          // optional: null when not set
  void* (*emplace)(void*) = nullptr;        // optional
  void (*reset)(void*) = nullptr;           // optional
  const Shorthand* shorthand = nullptr;     // struct, where it has one
};

// One field of a struct: its name, type, place and meaning.
struct FieldInfo {
  const char* name;
  const TypeInfo* type;
  void* (*get)(void* object);
  const char* doc;
  Bounds bounds;
  const char* category;        // kSection fields: the table of choices to look the name up in
  bool required = false;       // a job must give it
  const char* also = nullptr;  // another spelling that jobs may use
  const char* unset = "null";  // how a job spells "not set" (optional fields)

  constexpr FieldInfo Required() const {
    FieldInfo f = *this;
    f.required = true;
    return f;
  }
  constexpr FieldInfo Also(const char* spelling) const {
    FieldInfo f = *this;
    f.also = spelling;
    return f;
  }
  constexpr FieldInfo Unset(const char* spelling) const {
    FieldInfo f = *this;
    f.unset = spelling;
    return f;
  }

  const void* Get(const void* object) const { return get(const_cast<void*>(object)); }
};

template <typename T>
constexpr const TypeInfo& TypeOf();

// An immutable struct value of a type known at run time (operator attributes, job sections).
// Copies share the value. Empty until given one.
class AnyStruct {
 public:
  AnyStruct() = default;

  template <typename T>
  static AnyStruct Of(T value) {
    return AnyStruct(&TypeOf<T>(), std::make_shared<T>(std::move(value)));
  }
  // A default-constructed value of `type`.
  static AnyStruct Create(const TypeInfo& type);

  template <typename T>
  const T& As() const {
    CHECK(type_ == &TypeOf<T>()) << "AnyStruct holds another type";
    return *static_cast<const T*>(value_.get());
  }

  bool empty() const { return value_ == nullptr; }
  const TypeInfo* type() const { return type_; }
  const void* data() const { return value_.get(); }
  // For the reader that fills a fresh value; the value must not be shared yet.
  void* mutable_data() {
    CHECK(value_.use_count() == 1) << "AnyStruct is shared";
    return value_.get();
  }
  // A private copy, for changing a field of a shared value.
  AnyStruct Clone() const;

  // Equal types and equal text (PrintValue).
  friend bool operator==(const AnyStruct& a, const AnyStruct& b);

 private:
  AnyStruct(const TypeInfo* type, std::shared_ptr<void> value)
      : type_(type), value_(std::move(value)) {}

  const TypeInfo* type_ = nullptr;
  std::shared_ptr<void> value_;
};

// `{name: momentum, momentum: 0.9}` in a job: the name chooses the struct that holds the rest.
struct Section {
  std::string name;
  AnyStruct options;
};

namespace internal {

template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};
template <typename T>
struct IsOptional : std::false_type {};
template <typename T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <typename T>
struct FieldTable {
  static constexpr auto kFields = T::Fields();
};

template <typename T>
struct EnumTable {
  static constexpr auto kNames = EnumNamesOf(T{});
};

template <typename T>
constexpr TypeInfo MakeTypeInfo();

template <typename T>
inline constexpr TypeInfo kTypeInfo = MakeTypeInfo<T>();

template <typename T>
constexpr TypeInfo MakeTypeInfo() {
  TypeInfo t{};
  t.create = +[]() -> void* { return new T(); };
  t.destroy = +[](void* p) { delete static_cast<T*>(p); };
  t.assign =
      +[](void* to, const void* from) { *static_cast<T*>(to) = *static_cast<const T*>(from); };
  if constexpr (std::is_same_v<T, bool>) {
    t.kind = Kind::kBool;
  } else if constexpr (std::is_same_v<T, int64_t>) {
    t.kind = Kind::kInt;
  } else if constexpr (std::is_same_v<T, double>) {
    t.kind = Kind::kFloat;
  } else if constexpr (std::is_same_v<T, std::string>) {
    t.kind = Kind::kString;
  } else if constexpr (std::is_same_v<T, Section>) {
    t.kind = Kind::kSection;
  } else if constexpr (std::is_enum_v<T>) {
    t.kind = Kind::kEnum;
    t.enum_names = +[]() -> std::span<const char* const> { return EnumTable<T>::kNames; };
    t.enum_get = +[](const void* p) { return static_cast<int64_t>(*static_cast<const T*>(p)); };
    t.enum_set = +[](void* p, int64_t v) { *static_cast<T*>(p) = static_cast<T>(v); };
  } else if constexpr (IsVector<T>::value) {
    using E = typename T::value_type;
    static_assert(!std::is_same_v<E, bool>, "vector<bool> has no addressable elements");
    t.kind = Kind::kList;
    t.element = &kTypeInfo<E>;
    t.size = +[](const void* p) { return static_cast<const T*>(p)->size(); };
    t.resize = +[](void* p, size_t n) { static_cast<T*>(p)->resize(n); };
    t.at = +[](void* p, size_t i) -> void* { return &(*static_cast<T*>(p))[i]; };
  } else if constexpr (IsOptional<T>::value) {
    using E = typename T::value_type;
    t.kind = Kind::kOptional;
    t.element = &kTypeInfo<E>;
    t.value = +[](void* p) -> void* {
      auto& o = *static_cast<T*>(p);
      return o.has_value() ? &*o : nullptr;
    };
    t.emplace = +[](void* p) -> void* { return &static_cast<T*>(p)->emplace(); };
    t.reset = +[](void* p) { static_cast<T*>(p)->reset(); };
  } else {
    static_assert(std::is_class_v<T>, "this field type cannot be reflected");
    t.kind = Kind::kStruct;
    t.fields = +[]() -> std::span<const FieldInfo> { return FieldTable<T>::kFields; };
    if constexpr (requires { T::kShorthand; }) t.shorthand = &T::kShorthand;
  }
  return t;
}

template <typename M>
struct MemberOf;
template <typename C, typename T>
struct MemberOf<T C::*> {
  using Class = C;
  using Type = T;
};

}  // namespace internal

template <typename T>
constexpr const TypeInfo& TypeOf() {
  return internal::kTypeInfo<T>;
}

// One entry of a struct's Fields(). `Owner` is that struct; it differs from the member's own class
// where the member is inherited.
template <auto Member, typename Owner = typename internal::MemberOf<decltype(Member)>::Class>
constexpr FieldInfo Field(const char* name, const char* doc, Bounds bounds = {}) {
  using M = internal::MemberOf<decltype(Member)>;
  return FieldInfo{name,
                   &internal::kTypeInfo<typename M::Type>,
                   +[](void* object) -> void* { return &(static_cast<Owner*>(object)->*Member); },
                   doc,
                   bounds,
                   nullptr};
}

// A Section field, or a list or optional of Sections; `category` names the table of choices.
template <auto Member, typename Owner = typename internal::MemberOf<decltype(Member)>::Class>
constexpr FieldInfo SectionField(const char* name, const char* category, const char* doc) {
  FieldInfo f = Field<Member, Owner>(name, doc);
  f.category = category;
  return f;
}

// The fields of a base struct followed by those of the struct itself.
template <size_t N, size_t M>
constexpr std::array<FieldInfo, N + M> JoinFields(const std::array<FieldInfo, N>& base,
                                                  const std::array<FieldInfo, M>& own) {
  std::array<FieldInfo, N + M> all{};
  for (size_t i = 0; i < N; ++i) all[i] = base[i];
  for (size_t i = 0; i < M; ++i) all[N + i] = own[i];
  return all;
}

// An attribute struct without fields.
struct NoAttrs {
  static constexpr std::array<FieldInfo, 0> Fields() { return {}; }
};

// Text of a value: `true`, `3`, `0.5`, `"text"`, `name` (enum), `[1, 2]`, `null`, `{a=1, b=[2]}`.
// Numbers print so that they parse back to the same bits. A struct prints fields that differ from
// their default only (all of them with `all`).
std::string PrintValue(const TypeInfo& type, const void* value, bool all = false);

// Parses what PrintValue prints, from the start of *text, and removes it from *text. Fields left
// out keep the value they have. Errors name the field and the text found.
absl::Status ParseValue(const TypeInfo& type, std::string_view* text, void* value);

}  // namespace capstan
