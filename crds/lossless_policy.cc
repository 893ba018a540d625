#include "crds/lossless_policy.h"

#include "crds/codec.h"
#include "crds/lossless_codec.h"

namespace heddle::crds {
namespace {

using codec::Field;
using lossless::kPriorities;

constexpr int kDefaultWatchdogMs = 100;
constexpr std::int64_t kMaxPorts = 10'000'000;

enum class WatchdogMode : std::uint8_t { kAuto, kOff, kFixed };
std::optional<WatchdogMode> ParseWatchdog(std::string_view text) {
  if (text == "Auto") return WatchdogMode::kAuto;
  if (text == "Off") return WatchdogMode::kOff;
  if (text == "Fixed") return WatchdogMode::kFixed;
  return std::nullopt;
}

std::optional<int> ReadInt(const Field& field, std::int64_t min, std::int64_t max) {
  if (!field.present()) return std::nullopt;
  return field.Int(min, max);
}

std::string ReadProfile(const Field& field) {
  std::string name = field.Text(63);
  const std::size_t slash = name.find('/');
  const auto only = [](std::string_view text, std::string_view letters) {
    return !text.empty() && text.find_first_not_of(letters) == std::string_view::npos;
  };
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789-";
  const bool good = slash != std::string::npos && only(std::string_view(name).substr(0, slash), kLetters) &&
                    name.compare(slash + 1, 1, "v") == 0 &&
                    only(std::string_view(name).substr(slash + 2), "0123456789");
  if (field.present() && !good) field.Refuse("must be a profile with its version, as connectx-7/v1");
  return name;
}

std::optional<int> ReadWatchdog(const Field& field) {
  if (!field.present()) return std::nullopt;
  const WatchdogMode mode =
      field("mode").Required().Word(ParseWatchdog, "Auto, Off, Fixed", WatchdogMode::kAuto);
  const Field time = field("timeoutMs");
  if (mode == WatchdogMode::kFixed) time.Required();
  const int ms = time.Int(lossless::kMinWatchdogMs, lossless::kMaxWatchdogMs, kDefaultWatchdogMs);
  if (mode == WatchdogMode::kFixed) return ms;
  return mode == WatchdogMode::kOff ? lossless::kWatchdogOff : lossless::kWatchdogAuto;
}

lossless::OtherClass ReadClass(const Field& field) {
  lossless::OtherClass other;
  other.name = field("name").Name(63);
  other.use = field("use").Required().Word(lossless::ParseClassUse, "Storage, Management, Other",
                                           lossless::ClassUse::kOther);
  other.dscps = codec::ReadDscps(field("dscps").Required());
  other.priority = field("priority").Required().Int(0, kPriorities - 1);
  return other;
}

lossless::EtsShare ReadShare(const Field& field) {
  lossless::EtsShare share;
  share.priority = field("priority").Required().Int(0, kPriorities - 1);
  const auto algorithm = field("algorithm");
  share.algorithm =
      algorithm.Required().Word(lossless::ParseAlgorithm, "Strict, ETS", lossless::Algorithm::kEts);
  if (share.algorithm != lossless::Algorithm::kStrict && share.algorithm != lossless::Algorithm::kEts)
    algorithm.Refuse("must be Strict or ETS");
  share.percent = field("percent").Int(0, 100);
  return share;
}

lossless::Policy ReadPolicy(const Field& spec) {
  lossless::Policy policy;
  policy.profile = ReadProfile(spec("profile"));
  if (const Field trust = spec("trust"); trust.present())
    policy.trust = trust.Word(lossless::ParseTrust, "PCP, DSCP", lossless::Trust::kDscp);
  const Field rdma = spec("rdma"), cnp = spec("cnp");
  policy.rdma_dscp = ReadInt(rdma("dscp"), 0, lossless::kDscps - 1);
  policy.rdma_priority = ReadInt(rdma("priority"), 0, kPriorities - 1);
  policy.rdma_percent = ReadInt(rdma("percent"), 1, 100);
  policy.cnp_dscp = ReadInt(cnp("dscp"), 0, lossless::kDscps - 1);
  policy.cnp_priority = ReadInt(cnp("priority"), 0, kPriorities - 1);
  if (const Field pfc = spec("pfcPriorities"); pfc.present()) policy.pfc = codec::ReadPriorities(pfc);
  if (const Field ecn = spec("ecnPriorities"); ecn.present()) policy.ecn = codec::ReadPriorities(ecn);
  policy.classes = spec("classes").List(16, ReadClass);
  policy.ets = spec("ets").List(kPriorities, ReadShare);
  policy.cable_metres = ReadInt(spec("cableMetres"), 1, codec::kMaxCableMetres);
  if (const Field table = spec("priorityToBuffer"); table.present())
    policy.priority_to_buffer = codec::ReadTable(table);
  if (const Field sizes = spec("bufferBytes"); sizes.present())
    policy.buffer_bytes = codec::ReadNumbers(sizes, codec::kMaxBufferBytes);
  policy.mtu = ReadInt(spec("mtu"), codec::kMinMtu, codec::kMaxMtu);
  policy.watchdog_ms = ReadWatchdog(spec("watchdog"));
  if (const Field dcqcn = spec("dcqcn"); dcqcn.present()) policy.dcqcn = codec::ReadDcqcn(dcqcn);
  policy.tos = ReadInt(spec("tos"), 0, 255);
  policy.traffic_class = ReadInt(spec("ncclTrafficClass"), 0, 255);
  if (const Field marking = spec("switchMarking"); marking.present()) {
    policy.marking = lossless::EcnMarking{marking("minBytes").Required().Int(0, codec::kMaxInt),
                                          marking("maxBytes").Required().Int(0, codec::kMaxInt),
                                          marking("probabilityPercent").Required().Int(0, 100)};
  }
  policy.infiniband = codec::ReadInfiniBand(spec("infiniBand"));
  return policy;
}

LosslessCounts ReadCounts(const Field& field) {
  LosslessCounts counts;
  counts.nodes = field("nodes").Int(0, kMaxPorts);
  counts.ports = field("ports").Int(0, kMaxPorts);
  counts.compliant = field("compliant").Int(0, kMaxPorts);
  counts.drifted = field("drifted").Int(0, kMaxPorts);
  counts.not_applicable = field("notApplicable").Int(0, kMaxPorts);
  counts.conflicting = field("conflicting").Int(0, kMaxPorts);
  counts.unknown = field("unknown").Int(0, kMaxPorts);
  counts.pending = field("pending").Int(0, kMaxPorts);
  counts.failed = field("failed").Int(0, kMaxPorts);
  return counts;
}

void PutInt(Json& json, std::string_view key, const std::optional<int>& value) {
  if (value) json[std::string(key)] = *value;
}

Json WriteWatchdog(int ms) {
  if (ms == lossless::kWatchdogOff) return {{"mode", "Off"}};
  if (ms == lossless::kWatchdogAuto) return {{"mode", "Auto"}};
  return {{"mode", "Fixed"}, {"timeoutMs", ms}};
}

void PutClasses(Json& json, const lossless::Policy& policy) {
  codec::PutList(json, "classes", codec::WriteList(policy.classes, 16, [](const lossless::OtherClass& other) {
                   lossless::DscpMap map = lossless::AllDscps(lossless::kNotSaid);
                   for (const int dscp : other.dscps) map[std::size_t(dscp)] = 0;
                   return Json{{"name", codec::Clean(other.name, 63)},
                               {"use", lossless::ClassUseName(other.use)},
                               {"dscps", lossless::DscpRanges(map, 0)},
                               {"priority", other.priority}};
                 }));
  codec::PutList(
      json, "ets", codec::WriteList(policy.ets, kPriorities, [](const lossless::EtsShare& share) {
        Json item{{"priority", share.priority}, {"algorithm", lossless::AlgorithmName(share.algorithm)}};
        // A share of 0 is one: CEL has ETS say its percent.
        if (share.algorithm == lossless::Algorithm::kEts || share.percent > 0)
          item["percent"] = share.percent;
        return item;
      }));
}

void PutPolicy(Json& json, const lossless::Policy& policy) {
  codec::PutText(json, "profile", policy.profile, 63);
  if (policy.trust) json["trust"] = lossless::TrustName(*policy.trust);
  Json rdma = Json::object(), cnp = Json::object();
  PutInt(rdma, "dscp", policy.rdma_dscp);
  PutInt(rdma, "priority", policy.rdma_priority);
  PutInt(rdma, "percent", policy.rdma_percent);
  PutInt(cnp, "dscp", policy.cnp_dscp);
  PutInt(cnp, "priority", policy.cnp_priority);
  if (!rdma.empty()) json["rdma"] = std::move(rdma);
  if (!cnp.empty()) json["cnp"] = std::move(cnp);
  if (policy.pfc) json["pfcPriorities"] = codec::WritePriorities(*policy.pfc);
  if (policy.ecn) json["ecnPriorities"] = codec::WritePriorities(*policy.ecn);
  PutClasses(json, policy);
  PutInt(json, "cableMetres", policy.cable_metres);
  if (policy.priority_to_buffer) json["priorityToBuffer"] = *policy.priority_to_buffer;
  if (policy.buffer_bytes) json["bufferBytes"] = *policy.buffer_bytes;
  PutInt(json, "mtu", policy.mtu);
  if (policy.watchdog_ms) json["watchdog"] = WriteWatchdog(*policy.watchdog_ms);
  if (policy.dcqcn) json["dcqcn"] = codec::WriteDcqcn(*policy.dcqcn);
  PutInt(json, "tos", policy.tos);
  PutInt(json, "ncclTrafficClass", policy.traffic_class);
  if (policy.marking) {
    json["switchMarking"] = {{"minBytes", policy.marking->min_bytes},
                             {"maxBytes", policy.marking->max_bytes},
                             {"probabilityPercent", policy.marking->probability_percent}};
  }
  if (!policy.infiniband.empty()) json["infiniBand"] = codec::WriteInfiniBand(policy.infiniband);
}

Json WriteSpec(const LosslessPolicySpec& spec) {
  Json json{{"mode", LosslessModeName(spec.mode)}, {"onDrift", OnDriftName(spec.on_drift)}};
  for (const auto& [key, value] : spec.node_selector) json["nodeSelector"][key] = codec::Clean(value, 63);
  codec::PutList(json, "roles", codec::WriteList(spec.roles, 3, [](topology::NicRole role) {
                   return Json(topology::NicRoleName(role));
                 }));
  codec::PutList(json, "rails", Json(spec.rails));
  json["canary"] = spec.canary;
  if (spec.counted != CountedCables::kPreferLossless) json["countedCables"] = CountedCablesName(spec.counted);
  PutPolicy(json, spec.policy);
  return json;
}

Json WriteStatus(const LosslessPolicyStatus& status) {
  const LosslessCounts& counts = status.counts;
  Json json{{"counts",
             {{"nodes", counts.nodes},
              {"ports", counts.ports},
              {"compliant", counts.compliant},
              {"drifted", counts.drifted},
              {"notApplicable", counts.not_applicable},
              {"conflicting", counts.conflicting},
              {"unknown", counts.unknown},
              {"pending", counts.pending},
              {"failed", counts.failed}}}};
  codec::PutPositive(json, "observedGeneration", status.observed_generation);
  codec::PutText(json, "profile", status.profile, 63);
  const int applicable = counts.ports - counts.not_applicable;
  json["summary"] = {{"lossless", applicable <= 0
                                      ? "-"
                                      : std::to_string(counts.compliant) + "/" + std::to_string(applicable)}};
  codec::PutList(json, "findings", codec::TextList(status.findings, 64, 512));
  codec::PutList(json, "conditions", codec::WriteConditions(status.conditions));
  return json;
}

}  // namespace

base::Result<LosslessPolicy> LosslessPolicyFromJson(const Json& json) {
  codec::Problem problem;
  const Field root(json, problem);
  LosslessPolicy object;
  codec::ReadHead(root, keys::kLosslessPolicy.kind, object);
  const Field spec = root("spec");
  object.spec.node_selector = spec("nodeSelector").Texts(16, 63);
  object.spec.roles = spec("roles").List(3, [](const Field& item) {
    return item.Word(topology::ParseNicRole, "compute, storage, management", topology::NicRole::kCompute);
  });
  object.spec.rails = spec("rails").Ints<int>(topology::kMaxRail + 1, 0, topology::kMaxRail);
  object.spec.mode = codec::ReadMode(spec("mode"));
  object.spec.on_drift = codec::ReadOnDrift(spec("onDrift"));
  object.spec.canary = spec("canary").Int(0, 1000, kUsualCanaries);
  object.spec.counted = spec("countedCables")
                            .Word(ParseCountedCables, "All, PreferLossless, NotContradicting, LosslessOnly",
                                  CountedCables::kPreferLossless);
  object.spec.policy = ReadPolicy(spec);
  const Field status = root("status");
  object.status.observed_generation = status("observedGeneration").Int64(0, codec::kMaxInt64);
  object.status.profile = ReadProfile(status("profile"));
  object.status.counts = ReadCounts(status("counts"));
  object.status.findings = status("findings").Names(64, 512);
  object.status.conditions = codec::ReadConditions(status("conditions"));
  if (problem.found()) return base::Fail(problem.error().In("LosslessPolicy " + object.name));
  return object;
}

Json ToJson(const LosslessPolicy& object) {
  Json json = codec::WriteHead(keys::kLosslessPolicy.kind, object);
  json["spec"] = WriteSpec(object.spec);
  json["status"] = WriteStatus(object.status);
  return json;
}

Json StatusApplyJson(const LosslessPolicy& object) {
  Json json = codec::ApplyHead(keys::kLosslessPolicy.kind, object, false);
  json["status"] = WriteStatus(object.status);
  return json;
}

}  // namespace heddle::crds
