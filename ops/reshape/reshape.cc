#include "ops/reshape/reshape.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/ir/grad.h"

namespace capstan {
namespace {

absl::Status InferReshape(OpCall& call) {
  const TensorType& x = call.In(0);
  const std::vector<int64_t>& sizes = call.Attrs<ReshapeAttrs>().shape;
  if (sizes.size() > static_cast<size_t>(Shape::kMaxNdim)) {
    return InvalidArgument("a shape has at most {} dimensions, not {}", Shape::kMaxNdim,
                           sizes.size());
  }
  for (const int64_t size : sizes) {
    if (size < 1) return InvalidArgument("size {} is not positive", size);
  }
  const Shape shape(sizes);
  if (shape.count() != x.count()) {
    return InvalidArgument("{} has {} elements, {} has {}", x.shape.ToString(), x.count(),
                           shape.ToString(), shape.count());
  }
  call.outputs = {{x.dtype, shape}};
  return absl::OkStatus();
}

void GradOfReshape(GradContext& g) {
  g.Set(0, Reshape(g.b(), g.dout(0), g.b().shape(g.in(0)).ToVector()));
}

// The factor rule. Both shapes are cut into the shortest runs of dimensions with equal products;
// a run's dimensions are products of common factors, of which only the first (most significant) may
// be split: a part of the others is not contiguous in the merged dimension.
class ReshapeRule {
 public:
  ReshapeRule(const Shape& from, const Shape& to) : from_(from), to_(to) {}

  std::string Text() {
    int i = 0, j = 0;
    while (i < from_.ndim() || j < to_.ndim()) {
      if (i < from_.ndim() && from_[i] == 1) {
        in_.emplace_back("1");
        ++i;
      } else if (j < to_.ndim() && to_[j] == 1) {
        out_.emplace_back("1");
        bound_.emplace_back("1");
        ++j;
      } else {
        AddRun(&i, &j);
      }
    }
    return JoinDims(in_) + " -> " + JoinDims(out_) +
           (bound_.empty() ? "" : " | shape=[" + JoinDims(bound_) + "]");
  }

 private:
  // The run that begins at input dimension *i and output dimension *j.
  void AddRun(int* i, int* j) {
    const int first_i = *i, first_j = *j;
    int64_t in = from_[(*i)++], out = to_[(*j)++];
    std::vector<int64_t> ends;  // products at the ends of dimensions, from the run's begin
    while (in != out) {
      const int64_t end = std::min(in, out);
      if (ends.empty() || ends.back() != end) ends.push_back(end);  // a size of one adds none
      if (in < out) {
        in *= from_[(*i)++];
      } else {
        out *= to_[(*j)++];
      }
    }
    ends.push_back(in);
    const bool chain = IsChain(ends);
    AddDims(from_, first_i, *i, chain ? &ends : nullptr, &in_, nullptr);
    AddDims(to_, first_j, *j, chain ? &ends : nullptr, &out_, &bound_);
    next_ += chain ? static_cast<int>(ends.size()) : 0;
  }

  static bool IsChain(const std::vector<int64_t>& ends) {
    for (size_t e = 1; e < ends.size(); ++e) {
      if (ends[e] % ends[e - 1] != 0) return false;
    }
    return true;
  }

  // Dimensions [first, last) as products of the run's factors: factor e spans ends[e-1]..ends[e].
  // Without `ends` nothing is common: each dimension is a whole of its own.
  void AddDims(const Shape& shape, int first, int last, const std::vector<int64_t>* ends,
               std::vector<std::string>* dims, std::vector<std::string>* bound) {
    size_t e = 0;
    int64_t product = 1;
    for (int d = first; d < last; ++d) {
      product *= shape[d];
      std::vector<std::string> marked, names;
      if (ends == nullptr) {
        names.push_back(fmt::format("w{}", whole_));
        marked.push_back(fmt::format("w{}!", whole_++));
      } else if (shape[d] == 1) {
        names.emplace_back("1");
        marked.emplace_back("1");
      }
      for (; ends != nullptr && e < ends->size() && (*ends)[e] <= product; ++e) {
        names.push_back(fmt::format("f{}", next_ + static_cast<int>(e)));
        marked.push_back(names.back() + (e == 0 ? "" : "!"));
      }
      dims->push_back(Product(marked));
      if (bound != nullptr) bound->push_back(Product(names));
    }
  }

  static std::string Product(const std::vector<std::string>& factors) {
    return factors.size() == 1 ? factors[0] : "(" + JoinDims(factors) + ")";
  }

  const Shape &from_, &to_;
  std::vector<std::string> in_, out_, bound_;
  int next_ = 0;   // number of the next factor
  int whole_ = 0;  // number of the next dimension without common factors
};

std::string ReshapeAxes(const OpCall& call) {
  return ReshapeRule(call.In(0).shape, call.Out(0).shape).Text();
}

Cost ReshapeCost(const OpCall& call) { return {0, ArgumentBytes(call)}; }

std::vector<Example> ReshapeExamples() {
  const auto to = [](std::vector<int64_t> shape) {
    return AnyStruct::Of(ReshapeAttrs{.shape = std::move(shape)});
  };
  return {
      {.attrs = to({4, 60}), .inputs = {FloatInput({4, 3, 4, 5})}},
      {.attrs = to({4, 3, 2, 1, 5}), .inputs = {FloatInput({12, 10})}},
      {.attrs = to({4, 2, 9}), .inputs = {FloatInput({4, 6, 3})}},
      {.attrs = to({3, 2}), .inputs = {FloatInput({2, 3})}},
      {.attrs = to({}), .inputs = {FloatInput({1, 1})}},
      {.attrs = to({5, 5}),
       .inputs = {FloatInput({4, 6})},
       .error = "[4,6] has 24 elements, [5,5] has 25"},
  };
}

}  // namespace

constinit const OpDef kReshape = {
    .name = "reshape",
    .doc = "The same elements in row-major order under another shape: y.flat[i] = x.flat[i].",
    .inputs = {{"x", DTypeClass::kAny}},
    .outputs = {{"y", DTypeClass::kAny}},
    .attrs = &TypeOf<ReshapeAttrs>(),
    .infer = InferReshape,
    .grad = GradOfReshape,
    .axes = {.fn = ReshapeAxes},
    .cost = ReshapeCost,
    .traits = {.view = true, .linear_in = 0b1},
    .examples = ReshapeExamples,
};

ValueId Reshape(Builder& b, ValueId x, std::vector<int64_t> shape) {
  if (!b.ok()) return kNoValue;
  const auto rest = std::find(shape.begin(), shape.end(), -1);
  if (rest != shape.end()) {
    *rest = 1;
    const int64_t given = Shape(shape).count(), count = b.type(x).count();
    // A remainder is left to infer, which reports both shapes.
    if (given > 0) *rest = std::max<int64_t>(count / given, 1);
  }
  return b.Add1(kReshape, AnyStruct::Of(ReshapeAttrs{std::move(shape)}), {x});
}

ValueId Flatten(Builder& b, ValueId x) {
  if (!b.ok()) return kNoValue;
  return Reshape(b, x, {b.shape(x)[0], -1});
}

std::vector<const OpDef*> ReshapeRows() { return {&kReshape}; }

}  // namespace capstan
