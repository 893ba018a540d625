#include "crds/cable_report.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/names.h"
#include "crds/lossless_codec.h"
#include "crds/node_topology.h"
#include "crds/port_name.h"

namespace heddle::crds {
namespace {

using lossless::LosslessVerdict;

constexpr std::array<std::string_view, 4> kCounted{"All", "PreferLossless", "NotContradicting",
                                                   "LosslessOnly"};
constexpr std::size_t kMaxMessage = 512;

}  // namespace

std::string_view CountedCablesName(CountedCables counted) {
  return kCounted[std::size_t(counted)];
}

std::optional<CountedCables> ParseCountedCables(std::string_view name) {
  return base::ValueNamed<CountedCables>(kCounted, name);
}

int CountedPercent(CountedCables counted, LosslessVerdict verdict) {
  const bool contradicts = verdict == LosslessVerdict::kContradiction;
  switch (counted) {
    case CountedCables::kAll:
      return 100;
    case CountedCables::kPreferLossless:
      return contradicts ? 50 : 100;
    case CountedCables::kNotContradicting:
      return contradicts ? 0 : 100;
    case CountedCables::kLosslessOnly:
      return verdict == LosslessVerdict::kLossless ? 100 : 0;
  }
  return 100;
}

void CableCounts::Add(LosslessVerdict verdict) {
  ++cables;
  switch (verdict) {
    case LosslessVerdict::kContradiction:
      ++contradicting;
      return;
    case LosslessVerdict::kUnproved:
      ++unproved;
      return;
    case LosslessVerdict::kLossless:
      ++lossless;
      return;
  }
}

void CountCables(NodeTopology& object) {
  std::map<std::string_view, const CableReport*> less;
  for (const CableReport& report : object.spec.cables) {
    if (report.counted_percent >= 100) continue;
    for (const std::string& port : report.ports) less.emplace(port, &report);
  }
  if (less.empty()) return;
  bool changed = false;
  for (topology::Nic& nic : object.status.node.nics) {
    for (topology::NicPort& port : nic.ports) {
      const auto found = less.find(PortName(nic, port));
      if (found == less.end()) continue;
      changed = true;
      port.usable_gbps = int(std::int64_t{port.usable_gbps} * found->second->counted_percent / 100);
      if (port.fault != topology::LinkFault::kNone) continue;
      port.fault = topology::LinkFault::kNotLossless;
      port.reason =
          found->second->message.empty() ? "its cable is not proved to be lossless" : found->second->message;
    }
  }
  if (changed) object.status.hash = topology::ContentHash(object.status.node);
}

namespace codec {

Json WriteCableReport(const CableReport& report) {
  Json json{{"ports", TextList(report.ports, 128, 72)},
            {"verdict", lossless::LosslessVerdictName(report.verdict)}};
  if (report.counted_percent < 100) json["countedPercent"] = report.counted_percent;
  PutText(json, "message", report.message, kMaxMessage);
  return json;
}

CableReport ReadCableReport(const Field& field) {
  CableReport report;
  const Field ports = field("ports");
  report.ports = ports.Required().Names(128, 72);
  if (report.ports.empty()) ports.Refuse("names no port");
  report.verdict = field("verdict").Required().Word(
      lossless::ParseLosslessVerdict, "Contradiction, Unproved, Lossless", LosslessVerdict::kUnproved);
  report.counted_percent = field("countedPercent").Int(0, 100, 100);
  report.message = field("message").Text(kMaxMessage);
  return report;
}

void PutCableCounts(Json& json, const CableCounts& counts) {
  json["cables"] = counts.cables;
  json["lossless"] = counts.lossless;
  json["contradicting"] = counts.contradicting;
  json["unproved"] = counts.unproved;
}

CableCounts ReadCableCounts(const Field& field, std::int64_t max) {
  CableCounts counts;
  counts.cables = field("cables").Int(0, max);
  counts.lossless = field("lossless").Int(0, max);
  counts.contradicting = field("contradicting").Int(0, max);
  counts.unproved = field("unproved").Int(0, max);
  return counts;
}

}  // namespace codec
}  // namespace heddle::crds
