#include "extender/rank_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "crds/gpu_indexes.h"
#include "crds/keys.h"
#include "crds/label_value.h"

namespace heddle::extender {
namespace {

constexpr std::size_t kMostBytes =
    1'000'000;  // an object in etcd has at most 1.5 MiB, a ConfigMap 1 MiB of data

// As other pods reach it: "w-3.train" where a headless Service names its pods, else "w-3".
std::string HostOf(const kube::Json& pod) {
  std::string host = kube::StringAt(pod, {"spec", "hostname"});
  if (host.empty()) host = kube::Name(pod);
  const std::string domain = kube::StringAt(pod, {"spec", "subdomain"});
  return domain.empty() ? host : host + "." + domain;
}

// Of a group of a LeaderWorkerSet "-<its index>"; of any other gang nothing.
std::string GroupEnding(const crds::GangSpec& spec) {
  if (spec.owner.kind != lws::kKind) return "";
  return "-" + spec.group.substr(spec.group.rfind('/') + 1);
}
std::string RanksKey(const std::string& ending) {
  return "ranks" + ending + ".tsv";
}
std::string HostsKey(const std::string& ending) {
  return "hostfile" + ending;
}

bool IsGangReference(const kube::Json& owner) {
  return kube::StringAt(owner, {"kind"}) == crds::keys::kGang.kind &&
         kube::StringAt(owner, {"apiVersion"}) == crds::keys::kApiVersion;
}

// In the order that is there, so that a file in which nothing changes is not written anew. Keys without a group are of
// a version before this one, where the last group to write had them.
void KeepOtherGroups(const kube::Json& there, const kube::Json& ours, kube::Json& file) {
  if (const kube::Json* data = kube::Find(there, {"data"}); data != nullptr && data->is_object()) {
    for (const auto& [key, text] : data->items()) {
      if (key != RanksKey("") && key != HostsKey("") && text.is_string()) file["data"].emplace(key, text);
    }
  }
  bool known = false;
  kube::Json owners = kube::Json::array();
  for (const kube::Json& owner : kube::ArrayAt(there, {"metadata", "ownerReferences"})) {
    if (!IsGangReference(owner)) continue;
    const bool is_ours = kube::StringAt(owner, {"name"}) == kube::StringAt(ours, {"name"});
    known = known || is_ours;
    owners.push_back(is_ours ? ours : owner);
  }
  if (!known) owners.push_back(ours);
  file["metadata"]["ownerReferences"] = std::move(owners);
}

// Of lower-case letters, digits and dashes between dots, as the API server takes it; the suffix makes the end of one.
bool BeginsAnObjectName(std::string_view name) {
  const auto is_letter = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z'); };
  char before = '.';
  for (const char c : name) {
    if (!is_letter(c) && c != '-' && c != '.') return false;
    if ((before == '.' && !is_letter(c)) || (before == '-' && c == '.')) return false;
    before = c;
  }
  return before != '.';
}

}  // namespace

std::string RankFileName(std::string_view owner) {
  constexpr std::size_t kLongestName = 253;
  std::string name(owner.substr(0, kLongestName - crds::keys::kRankFileSuffix.size()));
  std::replace(name.begin(), name.end(), '/', '-');
  // A gang's name is the value of a label, and may have what no object's name has.
  if (!BeginsAnObjectName(name)) name = crds::DnsName(owner);
  return name + std::string(crds::keys::kRankFileSuffix);
}

base::Result<kube::Json> RankFile(const crds::Gang& gang, const GangMembers& members,
                                  const kube::Json* there) {
  const auto rows = crds::ToRows(*gang.status.placement);
  std::string ranks = "rank\tpod\tnode\tgpus\n", hosts;
  for (std::size_t i = 0; i < rows.size() && i < members.ranks.size(); ++i) {
    const auto& member = members.ranks[i];
    if (!member || !rows[i].has_slot()) continue;  // done, or about to come
    ranks += fmt::format("{}\t{}\t{}\t{}\n", i, member->facts->key.name, rows[i].node,
                         rows[i].gpus == 0 ? "all" : crds::FormatGpuIndexes(rows[i].gpus));
    hosts += fmt::format("{} slots={}\n", HostOf(member->Pod()), gang.spec.gpus_per_pod);
  }
  const std::string ending = GroupEnding(gang.spec);
  const kube::Json ours = {{"apiVersion", crds::keys::kApiVersion},
                           {"kind", crds::keys::kGang.kind},
                           {"name", gang.name},
                           {"uid", gang.uid}};
  kube::Json file = kube::NewObject(kube::kConfigMaps, {gang.ns, members.rank_file});
  file["metadata"]["ownerReferences"] = kube::Json::array({ours});
  file["data"][RanksKey(ending)] = std::move(ranks);
  file["data"][HostsKey(ending)] = std::move(hosts);
  if (there != nullptr && !ending.empty()) KeepOtherGroups(*there, ours, file);
  std::size_t bytes = 0;
  for (const auto& [key, text] : file["data"].items()) bytes += text.get_ref<const std::string&>().size();
  if (bytes > kMostBytes) {
    const char* others = file["data"].size() > 2 ? " and of the other groups of its LeaderWorkerSet" : "";
    return base::Fail(base::Code::kTooLarge, fmt::format("the ranks of {} pods{} do not fit a ConfigMap",
                                                         members.ranks.size(), others));
  }
  return file;
}

std::vector<std::string> RankFileOwners(const kube::Json& config_map) {
  std::vector<std::string> owners;
  for (const kube::Json& owner : kube::ArrayAt(config_map, {"metadata", "ownerReferences"})) {
    if (IsGangReference(owner)) owners.push_back(kube::StringAt(owner, {"name"}));
  }
  return owners;
}

}  // namespace heddle::extender
