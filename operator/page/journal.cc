#include "operator/page/journal.h"

#include <charconv>

#include "operator/page/text.h"

namespace heddle::operators::page {
namespace {

constexpr std::size_t kMaxGone = 4096;

}  // namespace

bool Journal::Replace(Entry& entry, const std::string& json) const {
  if (entry.revision != 0 && entry.json == json) return false;
  entry = {json, revision_ + 1};
  return true;
}

bool Journal::Merge(Part& part, const std::map<std::string, std::string>& fresh) const {
  bool changed = false;
  for (auto at = part.entries.begin(); at != part.entries.end();) {
    if (fresh.contains(at->first)) {
      ++at;
      continue;
    }
    part.gone[at->first] = revision_ + 1;
    at = part.entries.erase(at);
    changed = true;
  }
  for (const auto& [key, json] : fresh) {
    if (!Replace(part.entries[key], json)) continue;
    part.gone.erase(key);
    changed = true;
  }
  return changed;
}

bool Journal::Update(const Pieces& pieces) {
  bool changed = Replace(sources_, pieces.sources);
  changed = Replace(fabrics_, pieces.fabrics) || changed;
  changed = Merge(nodes_, pieces.nodes) || changed;
  changed = Merge(gangs_, pieces.gangs) || changed;
  changed = Replace(gangs_left_out_, std::to_string(pieces.gangs_left_out)) || changed;
  if (!changed) return false;
  ++revision_;
  if (nodes_.gone.size() + gangs_.gone.size() > kMaxGone) {
    nodes_.gone.clear();
    gangs_.gone.clear();
    oldest_ = revision_;
  }
  return true;
}

std::uint64_t Journal::Known(std::string_view since) const {
  if (!since.starts_with(instance_) || since.size() < instance_.size() + 2) return 0;
  const char* end = since.data() + since.size();
  std::uint64_t known = 0;
  const auto [read, error] = std::from_chars(since.data() + instance_.size() + 1, end, known);
  const bool ours = since[instance_.size()] == '-' && read == end && error == std::errc{};
  return ours && known >= oldest_ && known <= revision_ ? known : 0;
}

std::optional<std::string> Journal::Since(std::string_view since) const {
  const std::uint64_t known = Known(since);
  if (empty() || known == revision_) return std::nullopt;
  const bool full = known == 0;
  std::string text = "{\"revision\":" + Dump(revision()) + (full ? ",\"full\":true" : ",\"full\":false");
  const auto list = [&](std::string_view name, const Part& part) {
    text.append(",\"").append(name).append("\":[");
    bool first = true;
    for (const auto& [key, entry] : part.entries) {
      if (entry.revision <= known) continue;
      if (!first) text += ',';
      text += entry.json;
      first = false;
    }
    text += ']';
  };
  const auto gone = [&](std::string_view name, const Part& part) {
    kube::Json keys = kube::Json::array();
    for (const auto& [key, revision] : part.gone) {
      if (revision > known) keys.push_back(key);
    }
    if (!keys.empty()) text.append(",\"").append(name).append("\":").append(Dump(keys));
  };
  if (sources_.revision > known) text += ",\"sources\":" + sources_.json;
  if (fabrics_.revision > known) text += ",\"fabrics\":" + fabrics_.json;
  list("nodes", nodes_);
  list("gangs", gangs_);
  if (gangs_left_out_.revision > known) text += ",\"gangsLeftOut\":" + gangs_left_out_.json;
  if (!full) {
    gone("goneNodes", nodes_);
    gone("goneGangs", gangs_);
  }
  return text + "}\n";
}

}  // namespace heddle::operators::page
