#include "cli/trouble.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace heddle::cli {
namespace {

constexpr std::size_t kMessageWidth = 160;  // `describe` and -o json have all of it

bool Earlier(const std::optional<base::WallTime>& a, const std::optional<base::WallTime>& b) {
  return a && (!b || *a < *b);
}

std::string KindWord(const Trouble& trouble) {
  std::string word = trouble.kind == "Node"   ? "node"
                     : trouble.kind == "Gang" ? "gang"
                     : trouble.kind == "Port" ? "port"
                                              : trouble.kind;
  if (trouble.names.size() == 1) return word;
  if (word.ends_with("Policy")) return word.substr(0, word.size() - 1) + "ies";
  return word + (word.ends_with("y") ? "" : "s");
}

std::string AdviceOf(const Trouble& trouble) {
  if (trouble.message.empty()) return trouble.remedy;
  const std::string who = trouble.names.size() == 1 ? "it says" : trouble.names.front() + " says";
  return fmt::format("{}; {}: {}", trouble.remedy, who, Shortened(trouble.message, kMessageWidth));
}

}  // namespace

std::string_view GravityName(Gravity gravity) {
  switch (gravity) {
    case Gravity::kProblem:
      return "problem";
    case Gravity::kWarning:
      return "warning";
    case Gravity::kNote:
      break;
  }
  return "note";
}

std::vector<Trouble> Sorted(std::vector<Trouble> troubles) {
  std::stable_sort(troubles.begin(), troubles.end(), [](const Trouble& a, const Trouble& b) {
    return std::tie(a.gravity, a.order, a.what, a.kind, a.names) <
           std::tie(b.gravity, b.order, b.what, b.kind, b.names);
  });
  return troubles;
}

std::vector<Trouble> Folded(std::vector<Trouble> troubles) {
  using Key = std::tuple<Gravity, int, std::string, std::string, std::string>;
  std::map<Key, std::vector<Trouble>> alike;
  for (Trouble& one : troubles)
    alike[{one.gravity, one.order, one.kind, one.what, one.remedy}].push_back(std::move(one));
  std::vector<Trouble> folded;
  for (auto& [key, members] : alike) {
    members = Sorted(std::move(members));  // by name: all else is equal
    Trouble all = members.front();
    for (std::size_t i = 1; i < members.size(); ++i) {
      Trouble& next = members[i];
      all.names.insert(all.names.end(), next.names.begin(), next.names.end());
      if (Earlier(next.since, all.since)) all.since = next.since;
    }
    folded.push_back(std::move(all));
  }
  // What has struck most objects goes first among its like.
  std::stable_sort(folded.begin(), folded.end(), [](const Trouble& a, const Trouble& b) {
    const auto key = [](const Trouble& one) {
      return std::tuple(one.gravity, one.order, -std::int64_t(one.names.size()));
    };
    return key(a) < key(b);
  });
  return folded;
}

std::string WhereText(const Trouble& trouble) {
  const std::string kind = KindWord(trouble);
  if (trouble.names.size() == 1) return fmt::format("{} {}", kind, trouble.names.front());
  return fmt::format("{} {}: {}", trouble.names.size(), kind, FirstNames(trouble.names));
}

crds::Json ToJson(const Trouble& trouble) {
  return {{"severity", GravityName(trouble.gravity)},
          {"kind", trouble.kind},
          {"reason", trouble.reason},
          {"what", trouble.what},
          {"names", trouble.names},
          {"count", trouble.names.size()},
          {"since", trouble.since ? crds::Json(base::FormatTime(*trouble.since)) : crds::Json()},
          {"message", trouble.message},
          {"do", trouble.remedy}};
}

std::string TroublesText(const std::vector<Trouble>& troubles, base::WallTime now, const Style& style) {
  std::vector<AdviceRow> rows;
  for (const Trouble& one : troubles) {
    const Colour colour = one.gravity == Gravity::kProblem ? Colour::kBad
                          : one.gravity == Gravity::kNote  ? Colour::kFaint
                                                           : Colour::kNone;
    rows.push_back({{Cell(std::string(GravityName(one.gravity)), colour), Cell(AgeText(one.since, now)),
                     Cell(one.what), Cell(WhereText(one))},
                    AdviceOf(one)});
  }
  return AdviceText({"SEVERITY", "FOR", "WHAT", "WHERE", "WHAT TO DO"}, rows, style);
}

}  // namespace heddle::cli
