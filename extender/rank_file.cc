#include "extender/rank_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "crds/gpu_indexes.h"
#include "crds/keys.h"

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

}  // namespace

std::string RankFileName(std::string_view owner) {
  constexpr std::size_t kLongestName = 253;
  std::string name(owner.substr(0, kLongestName - crds::keys::kRankFileSuffix.size()));
  std::replace(name.begin(), name.end(), '/', '-');
  return name + std::string(crds::keys::kRankFileSuffix);
}

base::Result<kube::Json> RankFile(const crds::Gang& gang, const GangMembers& members) {
  const auto rows = crds::ToRows(*gang.status.placement);
  std::string ranks = "rank\tpod\tnode\tgpus\n", hosts;
  for (std::size_t i = 0; i < rows.size() && i < members.ranks.size(); ++i) {
    const auto& member = members.ranks[i];
    if (!member || !rows[i].has_slot()) continue;  // done, or about to come
    ranks += fmt::format("{}\t{}\t{}\t{}\n", i, member->facts.key.name, rows[i].node,
                         rows[i].gpus == 0 ? "all" : crds::FormatGpuIndexes(rows[i].gpus));
    hosts += fmt::format("{} slots={}\n", HostOf(*member->pod), gang.spec.gpus_per_pod);
  }
  if (ranks.size() + hosts.size() > kMostBytes) {
    return base::Fail(base::Code::kTooLarge,
                      fmt::format("the ranks of {} pods do not fit a ConfigMap", members.ranks.size()));
  }
  kube::Json file = kube::NewObject(kube::kConfigMaps, {gang.ns, members.rank_file});
  file["metadata"]["ownerReferences"] = kube::Json::array({{{"apiVersion", crds::keys::kApiVersion},
                                                            {"kind", crds::keys::kGang.kind},
                                                            {"name", gang.name},
                                                            {"uid", gang.uid}}});
  file["data"] = {{"ranks.tsv", std::move(ranks)}, {"hostfile", std::move(hosts)}};
  return file;
}

std::string RankFileOwner(const kube::Json& config_map) {
  for (const kube::Json& owner : kube::ArrayAt(config_map, {"metadata", "ownerReferences"})) {
    if (kube::StringAt(owner, {"kind"}) == crds::keys::kGang.kind &&
        kube::StringAt(owner, {"apiVersion"}) == crds::keys::kApiVersion)
      return kube::StringAt(owner, {"name"});
  }
  return {};
}

}  // namespace heddle::extender
