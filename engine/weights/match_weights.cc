#include "engine/weights/match_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "engine/base/status.h"
#include "engine/base/text.h"

namespace capstan {
namespace {

constexpr size_t kNamesShown = 8;

// Wrappers of PyTorch: DataParallel, torch.compile.
constexpr std::string_view kPrefixes[] = {"module.", "_orig_mod."};

std::string_view WithoutPrefixes(std::string_view name) {
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view prefix : kPrefixes) {
      if (!name.starts_with(prefix)) continue;
      name.remove_prefix(prefix.size());
      again = true;
    }
  }
  return name;
}

// Our name of theirs, by one family's tables.
class Translator {
 public:
  explicit Translator(const WeightNames& names) : names_(names) {
    for (const WeightName& m : names.modules) modules_[m.theirs] = m.ours;
  }

  // Empty for what is ignored.
  std::string Translate(std::string_view theirs) const {
    theirs = WithoutPrefixes(theirs);
    const size_t dot = theirs.rfind('.');
    if (dot == std::string_view::npos) return std::string(theirs);
    std::string module(theirs.substr(0, dot)), leaf(theirs.substr(dot + 1));
    const auto& ignored = names_.ignored;
    if (std::find(ignored.begin(), ignored.end(), leaf) != ignored.end()) return "";
    if (const auto it = modules_.find(module); it != modules_.end()) module = it->second;
    for (const WeightName& l : names_.leaves) {
      if (leaf == l.theirs) {
        leaf = l.ours;
        break;
      }
    }
    return module + "." + leaf;
  }

 private:
  const WeightNames& names_;
  std::unordered_map<std::string, std::string> modules_;
};

absl::StatusOr<WeightMatch> MatchFamily(const WeightsFile& file,
                                        std::span<const WantedWeight> wanted,
                                        const WeightNames& names) {
  WeightMatch match{.family = names.family};
  const Translator translator(names);
  std::unordered_map<std::string, size_t> entry_of;  // by our name
  for (const WeightEntry& entry : file.entries()) {
    const std::string ours = translator.Translate(entry.name);
    if (ours.empty()) continue;
    const auto [it, fresh] = entry_of.emplace(ours, entry.index);
    if (!fresh) {
      return InvalidArgument("{}: tensors {} and {} are both {} of the model", file.path(),
                             Quote(file.entries()[it->second].name), Quote(entry.name),
                             Quote(ours));
    }
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto it = entry_of.find(wanted[i].name);
    if (it == entry_of.end()) {
      match.missing.push_back(i);
      continue;
    }
    const WeightEntry& entry = file.entries()[it->second];
    entry_of.erase(it);
    if (!entry.unreadable.empty()) {
      return InvalidArgument("{}: tensor {} cannot be read: {}", file.path(), Quote(entry.name),
                             entry.unreadable);
    }
    MatchedWeight m{.wanted = i, .entry = entry.index, .stored = entry.type.shape};
    const auto& transposed = names.transposed;
    Shape shape = entry.type.shape;
    m.transposed = shape.ndim() == 2 && std::find(transposed.begin(), transposed.end(),
                                                  wanted[i].name) != transposed.end();
    if (m.transposed) std::swap(shape[0], shape[1]);
    (shape == wanted[i].shape ? match.matched : match.differing).push_back(m);
  }
  for (const auto& [ours, entry] : entry_of) match.unexpected.push_back(entry);
  std::sort(match.unexpected.begin(), match.unexpected.end());
  return match;
}

// "a, b, c and 4 more"
template <typename Names>
std::string Some(const std::vector<size_t>& indices, const Names& name_of) {
  std::string text;
  for (size_t i = 0; i < std::min(indices.size(), kNamesShown); ++i) {
    text += (i > 0 ? ", " : "") + name_of(indices[i]);
  }
  if (indices.size() > kNamesShown) {
    text += fmt::format(" and {} more", indices.size() - kNamesShown);
  }
  return text;
}

}  // namespace

std::vector<std::string> ProblemsOf(const WeightMatch& match, const WeightsFile& file,
                                    std::span<const WantedWeight> wanted) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < match.differing.size(); ++i) {
    if (i == kNamesShown) {
      lines.push_back(fmt::format("shapes of {} more differ", match.differing.size() - i));
      break;
    }
    const MatchedWeight& m = match.differing[i];
    lines.push_back(fmt::format(
        "skipped {}: {} in the file{}, {} in the model", wanted[m.wanted].name, m.stored.ToString(),
        m.transposed ? " ([in,out])" : "", wanted[m.wanted].shape.ToString()));
  }
  if (!match.missing.empty()) {
    lines.push_back(fmt::format("{} not in the file: {}", match.missing.size(),
                                Some(match.missing, [&](size_t i) { return wanted[i].name; })));
  }
  if (!match.unexpected.empty()) {
    lines.push_back(
        fmt::format("{} of the file not used: {}", match.unexpected.size(),
                    Some(match.unexpected, [&](size_t i) { return file.entries()[i].name; })));
  }
  return lines;
}

absl::StatusOr<WeightMatch> MatchWeights(const WeightsFile& file,
                                         std::span<const WantedWeight> wanted,
                                         const std::vector<WeightNames>& families) {
  ASSIGN_OR_RETURN(WeightMatch best,
                   MatchFamily(file, wanted, families.empty() ? WeightNames{"own"} : families[0]));
  for (size_t i = 1; i < families.size(); ++i) {
    ASSIGN_OR_RETURN(WeightMatch match, MatchFamily(file, wanted, families[i]));
    if (match.matched.size() > best.matched.size()) best = std::move(match);
  }
  const size_t named = best.matched.size() + best.differing.size();
  const auto share = [](size_t part, size_t whole) {
    return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
  };
  const size_t in_file = named + best.unexpected.size();
  if (share(best.matched.size(), wanted.size()) >= kLeastMatched &&
      share(named, in_file) >= kLeastMatched) {
    return best;
  }
  return InvalidArgument(
      "{}: it belongs to another network: {} of the model's {} tensors are in it with their "
      "shapes, "
      "and {} of its {} are the model's ({} names); {:.0f} % of both are needed: {}",
      file.path(), best.matched.size(), wanted.size(), named, in_file, best.family,
      kLeastMatched * 100, fmt::join(ProblemsOf(best, file, wanted), "; "));
}

}  // namespace capstan
