#include "crds/lossless_policy_fields.h"

#include <array>
#include <set>
#include <string>
#include <string_view>

#include "crds/codec.h"
#include "crds/keys.h"
#include "crds/spec_fields.h"
#include "lossless/port_settings.h"

namespace heddle::crds {
namespace {

using codec::Field;

// Those of losslesspolicies.yaml.
constexpr std::array<std::string_view, 5> kOfObject{"apiVersion", "kind", "metadata", "spec", "status"};
constexpr std::array<std::string_view, 25> kOfSpec{"nodeSelector",
                                                   "roles",
                                                   "rails",
                                                   "mode",
                                                   "onDrift",
                                                   "canary",
                                                   "countedCables",
                                                   "profile",
                                                   "trust",
                                                   "rdma",
                                                   "cnp",
                                                   "pfcPriorities",
                                                   "ecnPriorities",
                                                   "classes",
                                                   "ets",
                                                   "cableMetres",
                                                   "mtu",
                                                   "bufferBytes",
                                                   "watchdog",
                                                   "priorityToBuffer",
                                                   "ncclTrafficClass",
                                                   "dcqcn",
                                                   "tos",
                                                   "switchMarking",
                                                   "infiniBand"};
constexpr std::array<std::string_view, 3> kOfRdma{"dscp", "priority", "percent"};
constexpr std::array<std::string_view, 2> kOfCnp{"dscp", "priority"};
constexpr std::array<std::string_view, 4> kOfClass{"name", "use", "dscps", "priority"};
constexpr std::array<std::string_view, 3> kOfShare{"priority", "algorithm", "percent"};
constexpr std::array<std::string_view, 2> kOfWatchdog{"mode", "timeoutMs"};
constexpr std::array<std::string_view, 3> kOfMarking{"minBytes", "maxBytes", "probabilityPercent"};
constexpr std::array<std::string_view, 2> kOfInfiniBand{"serviceLevel", "adaptiveRouting"};

// Of an absent field, as the schema's CEL has them.
constexpr int kUsualPriority = 3, kUsualDscp = 26, kUsualCnpDscp = 48;
constexpr int kLowestOfCnps = 6;
constexpr std::size_t kMaxClasses = 16;

int IntOr(const Field& field, int absent) {
  return field.Int(0, lossless::kDscps - 1, absent);
}

// CEL refuses these of any policy. Where there is PFC, the linter's rules say what becomes of them, and more.
void RefuseSharedWithoutPfc(const Field& spec) {
  const Field pfc = spec("pfcPriorities"), rdma = spec("rdma"), cnp = spec("cnp"), classes = spec("classes");
  if (!pfc.present() || !pfc.Ints<int>(lossless::kPriorities, 0, lossless::kPriorities - 1).empty()) return;
  const int priority = IntOr(rdma("priority"), kUsualPriority);
  const int dscp = IntOr(rdma("dscp"), kUsualDscp);
  const Field cnp_priority = cnp("priority"), cnp_dscp = cnp("dscp");
  if (cnp_priority.present() && IntOr(cnp_priority, priority) == priority)
    cnp_priority.Refuse("is RDMA's, behind which CNPs would wait: give CNPs another");
  if (IntOr(cnp_dscp, kUsualCnpDscp) == dscp)
    cnp_dscp.Refuse("is RDMA's: data and CNPs need different ones (26 and 48 where they are not set)");
  classes.Each(kMaxClasses, [&](const Field& item) {
    const Field own = item("priority");
    if (IntOr(own, priority) == priority) own.Refuse("is RDMA's: give the class another");
  });
}

// Of a queue that nobody marks the linter's rules say nothing.
void RefuseMarkingOfNoPriority(const Field& spec) {
  const Field ecn = spec("ecnPriorities"), marking = spec("switchMarking");
  if (!ecn.present() || !marking.present()) return;
  if (!ecn.Ints<int>(lossless::kPriorities, 0, lossless::kPriorities - 1).empty()) return;
  const Field from = marking("minBytes"), percent = marking("probabilityPercent");
  if (from.Int(0, codec::kMaxInt) >= marking("maxBytes").Int(0, codec::kMaxInt))
    from.Refuse("must be below maxBytes");
  if (percent.Int(0, 100) == 0) percent.Refuse("must be 1 or more: 0 marks no packet until all are");
}

// What the schema says by CEL, or by a list's keys, and no rule of the linter does.
void RefuseContradictions(const Field& spec) {
  const Field rdma = spec("rdma"), cnp = spec("cnp"), pfc = spec("pfcPriorities");
  std::set<std::int64_t> paused;
  pfc.Each(lossless::kPriorities, [&](const Field& item) {
    if (!paused.insert(item.Int64(0, lossless::kPriorities - 1)).second) item.Refuse("stands twice");
  });
  const Field cnp_priority = cnp("priority");
  if (IntOr(rdma("priority"), kUsualPriority) >= kLowestOfCnps && !cnp_priority.present())
    cnp_priority.Refuse("profiles send CNPs in 6 or 7: set it where rdma.priority is one of these");
  RefuseSharedWithoutPfc(spec);
  RefuseMarkingOfNoPriority(spec);
  std::set<std::int64_t> shared;
  const Field ets = spec("ets");
  ets.Each(lossless::kPriorities, [&shared](const Field& item) {
    const Field priority = item("priority"), percent = item("percent");
    if (!shared.insert(priority.Int64(0, lossless::kPriorities - 1)).second) priority.Refuse("stands twice");
    if ((item("algorithm").Text(64) == "ETS") != percent.present())
      percent.Refuse("belongs to algorithm ETS: set it there, and not with Strict");
  });
  const Field watchdog = spec("watchdog");
  if (const Field time = watchdog("timeoutMs"); time.present() && watchdog("mode").Text(64) != "Fixed")
    time.Refuse("belongs to mode Fixed: set both, or neither");
  const Field infiniband = spec("infiniBand");
  if (infiniband.present() && !infiniband("serviceLevel").present() &&
      !infiniband("adaptiveRouting").present())
    infiniband.Refuse("says nothing: set serviceLevel or adaptiveRouting, or leave it out");
}

}  // namespace

base::Status CheckLosslessPolicyFields(const Json& policy) {
  codec::Problem problem;
  const Field root(policy, problem);
  const Field metadata = root("metadata"), spec = root("spec");
  const std::string name = metadata("name").Text(253);
  codec::UnknownFields unknown;
  unknown.LookAt(root, kOfObject);
  unknown.LookAt(spec, kOfSpec);
  unknown.LookAt(spec("rdma"), kOfRdma);
  unknown.LookAt(spec("cnp"), kOfCnp);
  unknown.LookAtEach(spec("classes"), kOfClass);
  unknown.LookAtEach(spec("ets"), kOfShare);
  unknown.LookAt(spec("watchdog"), kOfWatchdog);
  unknown.LookAt(spec("dcqcn"), lossless::DcqcnParameterNames());
  unknown.LookAt(spec("switchMarking"), kOfMarking);
  unknown.LookAt(spec("infiniBand"), kOfInfiniBand);
  TRY(unknown.Refused(keys::kLosslessPolicy.kind, name));
  RefuseContradictions(spec);
  codec::RefuseLabelsOfNoNode(spec("nodeSelector"));
  if (problem.found()) return base::Fail(problem.error().In("LosslessPolicy " + name));
  return {};
}

}  // namespace heddle::crds
