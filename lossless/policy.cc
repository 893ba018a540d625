#include "lossless/policy.h"

#include <algorithm>
#include <array>

#include "lossless/profiles.h"

namespace heddle::lossless {
namespace {

constexpr std::array<std::string_view, 3> kUseNames{"Storage", "Management", "Other"};
constexpr std::string_view kByPerson = "the policy";

// Fills a policy field by field, in the order of its members, and notes where each comes from.
class Resolver {
 public:
  Resolver(const Policy& declared, const Profile& profile) : declared_(declared), profile_(profile) {
    resolved_.policy = declared;
    resolved_.profile = resolved_.policy.profile = profile.name;
    resolved_.no_watchdog = profile.no_watchdog;
  }

  template <class T>
  void Take(std::string_view field, std::optional<T> Policy::*member) {
    if (declared_.*member) return Note(field, std::string(kByPerson));
    if (!(profile_.values.*member)) return;
    resolved_.policy.*member = profile_.values.*member;
    Note(field, profile_.name + ": " + SourceInProfile(field));
  }
  template <class T>
  void Derive(std::string_view field, std::optional<T> Policy::*member, T value, std::string_view from) {
    if (declared_.*member) return Note(field, std::string(kByPerson));
    resolved_.policy.*member = std::move(value);
    Note(field, "follows " + std::string(from));
  }
  void Note(std::string_view field, std::string source) {
    resolved_.provenance.push_back({std::string(field), std::move(source)});
  }
  ResolvedPolicy& resolved() { return resolved_; }

 private:
  std::string SourceInProfile(std::string_view field) const {
    const auto found = std::find_if(profile_.sources.begin(), profile_.sources.end(),
                                    [&](const ProfileValue& value) { return value.field == field; });
    return found == profile_.sources.end() ? "" : std::string(found->source);
  }

  const Policy& declared_;
  const Profile& profile_;
  ResolvedPolicy resolved_;
};

void DeriveShares(Resolver& resolver) {
  Policy& policy = resolver.resolved().policy;
  if (!policy.ets.empty()) return resolver.Note("ets", std::string(kByPerson));
  const int rdma = *policy.rdma_priority, cnp = *policy.cnp_priority, share = *policy.rdma_percent;
  // Where RDMA is declared on priority 0 it shares with nobody.
  if (rdma != 0) policy.ets.push_back({0, Algorithm::kEts, 100 - share});
  policy.ets.push_back({rdma, Algorithm::kEts, rdma == 0 ? 100 : share});
  if (cnp != rdma && cnp != 0) policy.ets.push_back({cnp, Algorithm::kStrict, 0});
  std::sort(policy.ets.begin(), policy.ets.end(),
            [](const EtsShare& a, const EtsShare& b) { return a.priority < b.priority; });
  resolver.Note("ets", "follows rdma.percent and cnp.priority");
}

}  // namespace

std::string_view ClassUseName(ClassUse use) {
  return kUseNames[std::size_t(use)];
}

std::optional<ClassUse> ParseClassUse(std::string_view name) {
  const auto found = std::find(kUseNames.begin(), kUseNames.end(), name);
  if (found == kUseNames.end()) return std::nullopt;
  return ClassUse(found - kUseNames.begin());
}

std::string Text(const InfiniBand& infiniband) {
  std::string text;
  if (infiniband.service_level) text = "service level " + std::to_string(*infiniband.service_level);
  if (infiniband.adaptive_routing) {
    text += text.empty() ? "adaptive routing " : ", adaptive routing ";
    text += *infiniband.adaptive_routing ? "on" : "off";
  }
  return text.empty() ? "nothing" : text;
}

base::Result<ResolvedPolicy> Resolve(const Policy& declared) {
  const Profile* profile = FindProfile(declared.profile.empty() ? "generic/v1" : declared.profile);
  if (profile == nullptr) {
    return base::Fail(base::Code::kNotFound,
                      "there is no profile \"" + declared.profile + "\": name one of " + ProfileNames());
  }
  Resolver resolver(declared, *profile);
  const Policy& policy = resolver.resolved().policy;
  resolver.Take("trust", &Policy::trust);
  resolver.Take("rdma.dscp", &Policy::rdma_dscp);
  resolver.Take("rdma.priority", &Policy::rdma_priority);
  resolver.Take("cnp.dscp", &Policy::cnp_dscp);
  resolver.Take("cnp.priority", &Policy::cnp_priority);
  resolver.Derive("pfcPriorities", &Policy::pfc, PrioritySet{*policy.rdma_priority}, "rdma.priority");
  if (!policy.classes.empty()) resolver.Note("classes", std::string(kByPerson));
  resolver.Take("rdma.percent", &Policy::rdma_percent);
  DeriveShares(resolver);
  resolver.Take("cableMetres", &Policy::cable_metres);
  resolver.Take("priorityToBuffer", &Policy::priority_to_buffer);
  resolver.Take("bufferBytes", &Policy::buffer_bytes);
  resolver.Take("mtu", &Policy::mtu);
  resolver.Take("watchdog", &Policy::watchdog_ms);
  resolver.Derive("ecnPriorities", &Policy::ecn, PrioritySet{*policy.rdma_priority}, "rdma.priority");
  resolver.Take("dcqcn", &Policy::dcqcn);
  resolver.Derive("tos", &Policy::tos, TosOf(*policy.rdma_dscp), "rdma.dscp, with ECT(0)");
  resolver.Derive("ncclTrafficClass", &Policy::traffic_class, *policy.tos, "tos");
  resolver.Take("switchMarking", &Policy::marking);
  // No profile has these: which levels there are is each subnet manager's own.
  if (policy.infiniband.service_level) resolver.Note("infiniBand.serviceLevel", std::string(kByPerson));
  if (policy.infiniband.adaptive_routing) resolver.Note("infiniBand.adaptiveRouting", std::string(kByPerson));
  return std::move(resolver.resolved());
}

}  // namespace heddle::lossless
