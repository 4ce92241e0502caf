#include "engine/shard/factor_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/base/status.h"
#include "engine/shard/rule_parser.h"

namespace capstan {
namespace {

constexpr int64_t kUnknown = -1;

Split SplitOf(char mark) {
  return mark == '!' ? Split::kForbidden : mark == '~' ? Split::kLocal : Split::kFree;
}

const FieldInfo* FindField(const TypeInfo& type, std::string_view name) {
  for (const FieldInfo& field : type.fields()) {
    if (name == field.name) return &field;
  }
  return nullptr;
}

bool IsIntList(const TypeInfo& type) {
  return type.kind == Kind::kList && type.element->kind == Kind::kInt;
}

}  // namespace

// Makes a BoundRule: expands "b*", numbers the factors, then solves for their sizes. Each dimension
// and each bound attribute is an equation (product of factors = size).
class RuleBinder {
 public:
  RuleBinder(const RuleText& text, const OpCall& call) : text_(text) { rule_.call_ = call; }

  absl::StatusOr<BoundRule> Bind() {
    RETURN_IF_ERROR(CheckArguments());
    for (size_t i = 0; i < call().inputs.size(); ++i) {
      const auto& type = call().inputs[i];
      if (!type.has_value()) {
        rule_.inputs_.emplace_back();
        continue;
      }
      ASSIGN_OR_RETURN(BoundRule::Arg arg, BindArg(text_.inputs[i], *type, InputName(i)));
      rule_.inputs_.push_back(std::move(arg));
    }
    for (size_t i = 0; i < call().outputs.size(); ++i) {
      const std::string name = call().op->outputs[static_cast<int>(i)].name;
      ASSIGN_OR_RETURN(BoundRule::Arg arg, BindArg(text_.outputs[i], call().outputs[i], name));
      rule_.outputs_.push_back(std::move(arg));
    }
    for (const BindingText& binding : text_.bindings) RETURN_IF_ERROR(BindAttr(binding));
    RETURN_IF_ERROR(Solve());
    RETURN_IF_ERROR(CheckRepeats());
    return std::move(rule_);
  }

 private:
  struct Equation {
    BoundRule::Dim factors;
    int64_t size;
    std::string where;
  };

  const OpCall& call() const { return rule_.call_; }

  std::string InputName(size_t i) const {
    const ArgList& inputs = call().op->inputs;
    const int last = inputs.size() - 1;
    if (static_cast<int>(i) < last || (last >= 0 && !inputs[last].variadic)) {
      return inputs[static_cast<int>(i)].name;
    }
    return fmt::format("{}[{}]", inputs[last].name, static_cast<int>(i) - last);
  }

  absl::Status CheckArguments() const {
    const size_t given = call().inputs.size();
    if (text_.outputs.size() != call().outputs.size()) {
      return InvalidArgument("the rule has {} outputs, the call {}", text_.outputs.size(),
                             call().outputs.size());
    }
    for (size_t i = 0; i < std::max(given, text_.inputs.size()); ++i) {
      const bool absent_in_rule =
          i >= text_.inputs.size() || text_.inputs[i].kind == ArgText::Kind::kAbsent;
      if (call().Has(static_cast<int>(i)) == !absent_in_rule) continue;
      return InvalidArgument("input {} is {} in the call but {} in the rule", i,
                             absent_in_rule ? "given" : "absent",
                             absent_in_rule ? "absent" : "given");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<BoundRule::Arg> BindArg(const ArgText& text, const TensorType& type,
                                         const std::string& name) {
    if ((text.kind == ArgText::Kind::kOpaque) != (type.dtype == DType::kOpaque)) {
      return InvalidArgument("'{}' is {}; opaque arguments, and only they, are '?'", name,
                             type.ToString());
    }
    BoundRule::Arg arg;
    arg.opaque = text.kind == ArgText::Kind::kOpaque;
    if (arg.opaque) return arg;
    ASSIGN_OR_RETURN(arg.dims, BindDims(text.dims, type.ndim()), "while binding '{}', {}", name,
                     type.ToString());
    for (int d = 0; d < type.ndim(); ++d) {
      equations_.push_back({arg.dims[static_cast<size_t>(d)], type.shape[d],
                            fmt::format("dimension {} of '{}'", d, name)});
    }
    return arg;
  }

  absl::StatusOr<std::vector<BoundRule::Dim>> BindDims(const std::vector<DimText>& text, int ndim) {
    std::vector<BoundRule::Dim> dims;
    const auto any =
        std::count_if(text.begin(), text.end(), [](const DimText& d) { return d.any; });
    const int rest = ndim - static_cast<int>(text.size()) + static_cast<int>(any);
    if (any > 1) return InvalidArgument("a rule has one '*' per argument");
    if (any == 0 ? static_cast<int>(text.size()) != ndim : rest < 0) {
      return InvalidArgument("{} dimensions, the rule has {}{}", ndim, text.size() - any,
                             any > 0 ? " or more" : "");
    }
    for (const DimText& dim : text) {
      if (dim.any) {
        RETURN_IF_ERROR(Expand(dim.factors[0], rest, &dims));
        continue;
      }
      BoundRule::Dim factors;
      for (const FactorText& factor : dim.factors) {
        ASSIGN_OR_RETURN(const int index, FactorIndex(factor.name, factor.mark));
        factors.push_back(index);
      }
      dims.push_back(std::move(factors));
    }
    return dims;
  }

  // The dimensions that "b*" stands for.
  absl::Status Expand(const FactorText& factor, int count, std::vector<BoundRule::Dim>* dims) {
    const auto [known, fresh] = any_counts_.emplace(factor.name, count);
    if (known->second != count) {
      return InvalidArgument("'{}*' is {} dimensions here but {} elsewhere", factor.name, count,
                             known->second);
    }
    for (int i = 0; i < count; ++i) {
      ASSIGN_OR_RETURN(const int index,
                       FactorIndex(fmt::format("{}*{}", factor.name, i), factor.mark));
      dims->push_back({index});
    }
    return absl::OkStatus();
  }

  absl::StatusOr<int> FactorIndex(const std::string& name, char mark) {
    int index = rule_.Find(name);
    if (index < 0) {
      index = static_cast<int>(rule_.factors_.size());
      rule_.factors_.push_back({.name = name, .size = kUnknown});
    }
    Split& split = rule_.factors_[static_cast<size_t>(index)].split;
    if (mark != 0 && split != Split::kFree && split != SplitOf(mark)) {
      return InvalidArgument("factor '{}' is marked both '!' and '~'", name);
    }
    if (mark != 0) split = SplitOf(mark);
    return index;
  }

  absl::Status BindAttr(const BindingText& text) {
    const FieldInfo* field = FindField(*call().op->attrs, text.attr);
    if (field == nullptr) return InvalidArgument("there is no attribute '{}'", text.attr);
    BoundRule::Binding binding{text.attr, text.list, {}};
    const void* value = field->Get(call().attrs.data());
    if (text.list && IsIntList(*field->type)) {
      const auto& sizes = *static_cast<const std::vector<int64_t>*>(value);
      ASSIGN_OR_RETURN(binding.dims, BindDims(text.dims, static_cast<int>(sizes.size())),
                       "while binding attribute '{}'", text.attr);
      for (size_t i = 0; i < sizes.size(); ++i) {
        equations_.push_back(
            {binding.dims[i], sizes[i], fmt::format("element {} of attribute '{}'", i, text.attr)});
      }
    } else if (!text.list && field->type->kind == Kind::kInt) {
      ASSIGN_OR_RETURN(binding.dims, BindDims(text.dims, 1), "while binding attribute '{}'",
                       text.attr);
      equations_.push_back({binding.dims[0], *static_cast<const int64_t*>(value),
                            fmt::format("attribute '{}'", text.attr)});
    } else {
      return InvalidArgument("attribute '{}' is not {}", text.attr,
                             text.list ? "a list of integers" : "an integer");
    }
    rule_.bindings_.push_back(std::move(binding));
    return absl::OkStatus();
  }

  int64_t& SizeOf(int factor) { return rule_.factors_[static_cast<size_t>(factor)].size; }

  // Takes from one equation what it tells. `*open`: factors are still unknown.
  absl::Status Use(const Equation& e, bool* changed, bool* open) {
    int64_t known = 1;
    std::vector<int> unknown;
    for (const int f : e.factors) {
      if (SizeOf(f) == kUnknown) {
        unknown.push_back(f);
      } else {
        known *= SizeOf(f);
      }
    }
    if (unknown.empty()) {
      if (known == e.size) return absl::OkStatus();
      return InvalidArgument("{} is {} but the rule says {}", e.where, e.size, Product(e.factors));
    }
    if (e.size < 1 || e.size % known != 0) {
      return InvalidArgument("{} is {}, no multiple of {}", e.where, e.size, known);
    }
    const int64_t rest = e.size / known;
    if (rest != 1 && unknown.size() > 1) {
      *open = true;
      return absl::OkStatus();
    }
    for (const int f : unknown) SizeOf(f) = rest;
    *changed = true;
    return absl::OkStatus();
  }

  absl::Status Solve() {
    bool changed = true, open = true;
    while (changed) {
      changed = open = false;
      for (const Equation& e : equations_) RETURN_IF_ERROR(Use(e, &changed, &open));
    }
    for (const Factor& f : rule_.factors_) {
      if (f.size != kUnknown) continue;
      return InvalidArgument("cannot tell the size of factor '{}'; bind an attribute to it",
                             f.name);
    }
    return absl::OkStatus();
  }

  std::string Product(const BoundRule::Dim& dim) const {
    std::vector<std::string> parts;
    for (const int f : dim) {
      const Factor& factor = rule_.factors_[static_cast<size_t>(f)];
      parts.push_back(fmt::format("{}={}", factor.name, factor.size));
    }
    return parts.empty() ? "1" : fmt::format("{}", fmt::join(parts, " "));
  }

  // A diagonal cannot be cut.
  absl::Status CheckRepeats() const {
    for (const auto* args : {&rule_.inputs_, &rule_.outputs_}) {
      for (const BoundRule::Arg& arg : *args) {
        std::vector<int> count(rule_.factors_.size());
        for (const BoundRule::Dim& dim : arg.dims) {
          for (const int f : dim) {
            const Factor& factor = rule_.factors_[static_cast<size_t>(f)];
            if (++count[static_cast<size_t>(f)] < 2 || factor.split == Split::kForbidden) continue;
            return InvalidArgument("factor '{}' is twice in one argument; mark it '!'",
                                   factor.name);
          }
        }
      }
    }
    return absl::OkStatus();
  }

  const RuleText& text_;
  BoundRule rule_;
  std::map<std::string, int> any_counts_;
  std::vector<Equation> equations_;
};

absl::StatusOr<BoundRule> BoundRule::Of(const OpCall& call) {
  return Of(call.op->axes.For(call), call);
}

absl::StatusOr<BoundRule> BoundRule::Of(std::string_view text, const OpCall& call) {
  ASSIGN_OR_RETURN(const RuleText parsed, ParseRule(text));
  auto rule = RuleBinder(parsed, call).Bind();
  if (!rule.ok()) {
    return Annotate(rule.status(), "while fitting the rule '{}' to {}", std::string(text),
                    call.ToString());
  }
  return rule;
}

int BoundRule::Find(std::string_view name) const {
  for (size_t i = 0; i < factors_.size(); ++i) {
    if (factors_[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

std::vector<int> BoundRule::Splittable() const {
  std::vector<bool> used(factors_.size());
  for (const auto* args : {&inputs_, &outputs_}) {
    for (const Arg& arg : *args) {
      for (const Dim& dim : arg.dims) {
        for (const int f : dim) used[static_cast<size_t>(f)] = true;
      }
    }
  }
  std::vector<int> result;
  for (size_t i = 0; i < factors_.size(); ++i) {
    if (used[i] && factors_[i].size > 1 && factors_[i].split != Split::kForbidden) {
      result.push_back(static_cast<int>(i));
    }
  }
  return result;
}

ArgPlacement BoundRule::PlacementOf(const Arg& arg, int factor, const ArgDef* output) const {
  if (arg.opaque) return {.kind = Placement::kLocal};
  for (size_t d = 0; d < arg.dims.size(); ++d) {
    const Dim& dim = arg.dims[d];
    const auto at = std::find(dim.begin(), dim.end(), factor);
    if (at == dim.end()) continue;
    ArgPlacement split{.kind = Placement::kSplit, .dim = static_cast<int>(d)};
    for (auto f = dim.begin(); f != at; ++f) split.repeats *= factors_[size_t(*f)].size;
    for (auto f = at + 1; f != dim.end(); ++f) split.unit *= factors_[size_t(*f)].size;
    return split;
  }
  if (output == nullptr) return {.kind = Placement::kWhole};
  if (factors_[static_cast<size_t>(factor)].split == Split::kLocal) {
    return {.kind = Placement::kLocal};
  }
  return {.kind = Placement::kPartial, .combine = output->combine};
}

Signature BoundRule::SignatureOf(int factor) const {
  Signature s{.factor = factors_[static_cast<size_t>(factor)].name};
  for (const Arg& arg : inputs_) s.inputs.push_back(PlacementOf(arg, factor, nullptr));
  for (size_t i = 0; i < outputs_.size(); ++i) {
    s.outputs.push_back(PlacementOf(outputs_[i], factor, &call_.op->outputs[static_cast<int>(i)]));
  }
  return s;
}

std::vector<Signature> BoundRule::Signatures() const {
  std::vector<Signature> all;
  for (const int f : Splittable()) all.push_back(SignatureOf(f));
  return all;
}

ArgPart BoundRule::PartOfArg(const ArgPlacement& placement, int factor, Range range) const {
  if (placement.kind != Placement::kSplit) return {};
  ArgPart part{.dim = placement.dim};
  const int64_t size = factors_[static_cast<size_t>(factor)].size;
  for (int64_t r = 0; r < placement.repeats; ++r) {
    part.ranges.push_back(
        {(r * size + range.offset) * placement.unit, range.length * placement.unit});
  }
  return part;
}

AnyStruct BoundRule::AttrsOfPart(int factor, int64_t length) const {
  if (bindings_.empty()) return call_.attrs;
  AnyStruct attrs = call_.attrs.Clone();
  const auto size_of = [&](const Dim& dim) {
    int64_t size = 1;
    for (const int f : dim) size *= f == factor ? length : factors_[static_cast<size_t>(f)].size;
    return size;
  };
  for (const Binding& binding : bindings_) {
    void* value = FindField(*attrs.type(), binding.attr)->get(attrs.mutable_data());
    if (!binding.list) {
      *static_cast<int64_t*>(value) = size_of(binding.dims[0]);
      continue;
    }
    auto& sizes = *static_cast<std::vector<int64_t>*>(value);
    for (size_t i = 0; i < sizes.size(); ++i) sizes[i] = size_of(binding.dims[i]);
  }
  return attrs;
}

CallPart BoundRule::PartOf(int factor, int64_t offset, int64_t length) const {
  const Signature signature = SignatureOf(factor);
  CallPart part{.call = call_};
  part.call.attrs = AttrsOfPart(factor, length);
  const auto cut = [&](const ArgPlacement& placement, TensorType* type) {
    ArgPart arg = PartOfArg(placement, factor, {offset, length});
    if (arg.dim >= 0) type->shape[arg.dim] = placement.repeats * length * placement.unit;
    return arg;
  };
  for (size_t i = 0; i < inputs_.size(); ++i) {
    TensorType absent;
    auto& type = part.call.inputs[i];
    part.inputs.push_back(cut(signature.inputs[i], type.has_value() ? &*type : &absent));
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    part.outputs.push_back(cut(signature.outputs[i], &part.call.outputs[i]));
  }
  return part;
}

std::string BoundRule::ToString() const {
  return ToString(inputs_) + (inputs_.empty() ? "-> " : " -> ") + ToString(outputs_);
}

std::string BoundRule::ToString(const std::vector<Arg>& args) const {
  std::vector<std::string> texts;
  for (const Arg& arg : args) {
    std::vector<std::string> dims;
    for (const Dim& dim : arg.dims) {
      std::vector<std::string> product;
      for (const int f : dim) {
        const Factor& factor = factors_[static_cast<size_t>(f)];
        product.push_back(fmt::format("{}={}", factor.name, factor.size));
      }
      dims.push_back(product.empty()       ? "1"
                     : product.size() == 1 ? product[0]
                                           : fmt::format("({})", fmt::join(product, " ")));
    }
    texts.push_back(arg.opaque ? "?" : JoinDims(dims));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

namespace {

std::string ToString(const ArgPlacement& p) {
  switch (p.kind) {
    case Placement::kWhole:
      return "whole";
    case Placement::kSplit:
      return fmt::format("split {}{}", p.dim,
                         p.repeats > 1 ? fmt::format(" in {} pieces", p.repeats) : "");
    case Placement::kPartial:
      return std::array{"sum", "max", "min", "or"}[static_cast<size_t>(p.combine)];
    case Placement::kLocal:
      return "local";
  }
  return "?";
}

std::string ToString(const std::vector<ArgPlacement>& placements) {
  std::vector<std::string> texts;
  for (const ArgPlacement& p : placements) texts.push_back(ToString(p));
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

std::string Signature::ToString() const {
  return factor + ": " + capstan::ToString(inputs) + (inputs.empty() ? "-> " : " -> ") +
         capstan::ToString(outputs);
}

}  // namespace capstan
