// Factor rules: which sizes of an operator's arguments are the same size, and what follows for
// cutting a call into parts. Everything about sharding an operator is derived from this one text.
//
// The language of OpDef::axes:
//
//   rule     = args "->" args [ "|" bindings ]        args of one side are separated by commas
//   arg      = dim dim ...                            dimensions, outermost first
//            | "."                                    a scalar
//            | "_"                                    an absent optional input
//            | "?"                                    opaque bytes (each part has bytes of its own)
//   dim      = factor | "(" factor factor ... ")"     a product of factors, major to minor
//            | "1"                                    size one, no factor
//            | name "*"                               any number of dimensions, equally many and
//                                                     of the same sizes in all arguments
//   factor   = name [ mark ],  name = [a-z][a-z0-9_]*
//   mark     = "!"                                    must not be split
//            | "~"                                    may be split, but statistics over it are then
//                                                     local to each part (batch norm)
//   bindings = attr "=" dim                           the attribute holds that size
//            | attr "=" "[" dim dim ... "]"           the list attribute holds those sizes
//
// A mark counts wherever the name stands. A factor of an output that no split touches passes
// through. Splitting a factor that an output has cuts that output; an output without it is partial,
// to be combined by its ArgDef::combine, or local where the factor is marked "~". Inputs without it
// are whole.
//
//   matmul          "b* m k, b* k n -> b* m n"
//   grouped conv    "n (g c) h! w!, (g o) c x! y! -> n (g o) p! q! | groups=g"
//   layer norm      "b* d!, d!, d! -> b* d!"
//   reshape         "n c! h! w! -> n (c! h! w!) | shape=[n (c h w)]"
//
// A bound rule is immutable and safe from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/op_def.h"

namespace capstan {

enum class Split : uint8_t { kFree, kLocal, kForbidden };  // no mark, "~", "!"

struct Factor {
  std::string name;  // "b*0" is the first dimension of "b*"
  Split split = Split::kFree;
  int64_t size = 0;
};

enum class Placement : uint8_t {
  kWhole,    // every part has all of it
  kSplit,    // cut along `dim`
  kPartial,  // outputs: the parts are combined by `combine`
  kLocal,    // outputs: each part has its own; opaque arguments always
};

// What becomes of one argument when one factor is split. Where the factor is not the major one of
// its dimension a part consists of `repeats` pieces: the dimension is repeats x factor x unit.
struct ArgPlacement {
  Placement kind = Placement::kWhole;
  int dim = -1;
  int64_t repeats = 1;
  int64_t unit = 1;
  Combine combine = Combine::kSum;
};

// One way to run an operator in parts. ToString: "c: split 1, split 1 -> sum".
struct Signature {
  std::string factor;
  std::vector<ArgPlacement> inputs;
  std::vector<ArgPlacement> outputs;

  std::string ToString() const;
};

struct Range {
  int64_t offset = 0;
  int64_t length = 0;
  friend bool operator==(const Range&, const Range&) = default;
};

// The elements of an argument that a part has: all of them, or these ranges of one dimension.
struct ArgPart {
  int dim = -1;  // -1: all
  std::vector<Range> ranges;
};

// One part of a call: attributes and types of the part, and where its arguments lie in the whole.
// Opaque arguments keep the type that they have in the whole call.
struct CallPart {
  OpCall call;
  std::vector<ArgPart> inputs;
  std::vector<ArgPart> outputs;
};

class BoundRule {
 public:
  // Parses the call's rule and finds the sizes of its factors. The outputs must be inferred.
  // Errors: the text is not a rule; it does not fit the arguments; sizes contradict each other; a
  // size cannot be told.
  static absl::StatusOr<BoundRule> Of(const OpCall& call);
  // The same for a given text.
  static absl::StatusOr<BoundRule> Of(std::string_view text, const OpCall& call);

  const std::vector<Factor>& factors() const { return factors_; }
  // Index of a factor; -1 when there is none.
  int Find(std::string_view name) const;
  // Factors of size two and more that may be split and that an argument has.
  std::vector<int> Splittable() const;

  Signature SignatureOf(int factor) const;
  // Of all splittable factors.
  std::vector<Signature> Signatures() const;
  // The part with [offset, offset + length) of the factor.
  CallPart PartOf(int factor, int64_t offset, int64_t length) const;

  // Dimensions with sizes: "n=8 (g=2 c=3), (g=2 o=4) c=3 -> n=8 (g=2 o=4)".
  std::string ToString() const;

 private:
  using Dim = std::vector<int>;  // factors, major to minor; none: size one
  struct Arg {
    bool opaque = false;
    std::vector<Dim> dims;
  };
  struct Binding {
    std::string attr;
    bool list = false;
    std::vector<Dim> dims;
  };
  friend class RuleBinder;

  ArgPlacement PlacementOf(const Arg& arg, int factor, const ArgDef* output) const;
  ArgPart PartOfArg(const ArgPlacement& placement, int factor, Range range) const;
  AnyStruct AttrsOfPart(int factor, int64_t length) const;
  std::string ToString(const std::vector<Arg>& args) const;

  OpCall call_;
  std::vector<Factor> factors_;
  std::vector<Arg> inputs_, outputs_;
  std::vector<Binding> bindings_;
};

}  // namespace capstan
