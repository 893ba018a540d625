#include "cli/status.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/counted.h"
#include "cli/gpu_use.h"
#include "cli/status_parts.h"
#include "kube/object.h"

namespace heddle::cli {
namespace {

using crds::Json;

// What was read, or nothing and a note.
const Objects& Read(const base::Result<Objects>& objects, std::string_view what, StatusReport& report) {
  static const Objects kNothing;
  if (objects) return *objects;
  report.notes.push_back(fmt::format("{} left out: {}", what, objects.error().message));
  return kNothing;
}

std::vector<crds::Gang> GangsOf(const Objects& objects, StatusReport& report) {
  std::vector<crds::Gang> gangs;
  for (const Json& object : objects) {
    if (auto gang = crds::GangFromJson(object)) {
      gangs.push_back(*std::move(gang));
    } else {
      report.notes.push_back("A Gang could not be read and is left out: " + gang.error().message);
    }
  }
  return gangs;
}

// A gang that stands still for a lost node does so since that went: its own conditions are those of one that runs.
void DateLostNodes(const Objects& nodes, std::vector<Trouble>& troubles) {
  for (Trouble& trouble : troubles) {
    if (trouble.reason != "NodeLost") continue;
    const std::string lost =
        trouble.message.substr(0, trouble.message.find(' '));  // "node-05 is NotReady, and …"
    for (const Json& node : nodes) {
      const Json* ready = kube::Name(node) == lost ? kube::Condition(node, "Ready") : nullptr;
      if (ready != nullptr) trouble.since = ConditionSince(*ready);
    }
  }
}

void CountGangs(const std::vector<crds::Gang>& gangs, StatusTotals& totals) {
  for (const crds::Gang& gang : gangs) {
    const auto is = [&gang](std::string_view type) { return crds::IsTrue(gang.status.conditions, type); };
    if (is(crds::kEnded) || gang.status.observed) continue;
    if (is(crds::kDegraded) || gang.status.reason == "NodeLost") {
      ++totals.stopped;
    } else {
      ++(is(crds::kRunning) ? totals.running : totals.waiting);
    }
  }
}

void CountGpus(const Objects& topologies, const Objects& pods,
               const std::map<std::string, Unusable>& unusable, StatusTotals& totals) {
  std::map<std::string, int> wanted;  // by node
  for (const Json& pod : pods) {
    const std::string node = kube::StringAt(pod, {"spec", "nodeName"});
    if (!node.empty() && IsLive(pod)) wanted[node] += GpusWanted(pod);
  }
  for (const Json& object : topologies) {
    const std::string name = kube::Name(object);
    const Json& gpus = kube::ArrayAt(object, {"status", "gpus"});
    const int all = int(gpus.size());
    const int healthy = int(std::count_if(gpus.begin(), gpus.end(), [](const Json& gpu) {
      return kube::StringAt(gpu, {"health"}) == "Healthy";
    }));
    ++totals.nodes;
    totals.gpus += all;
    const int held = std::min(all, wanted[name]);
    totals.bound += held;
    const int usable = unusable.contains(name) ? 0 : healthy;
    totals.free += std::max(0, usable - held);
    totals.out_of_use += all - std::max(usable, std::min(all, held));
    if (unusable.contains(name)) ++totals.unusable_nodes;
  }
}

std::string TotalsText(const StatusTotals& totals) {
  std::string text = base::Counted(totals.nodes, "node");
  if (totals.unusable_nodes > 0) text += fmt::format(" ({} out of use)", totals.unusable_nodes);
  text += ", " + base::Counted(totals.gpus, "GPU");
  if (totals.bound_known) text += fmt::format(": {} bound, {} free", totals.bound, totals.free);
  if (totals.out_of_use > 0)
    text += fmt::format("{} {} out of use", totals.bound_known ? "," : ":", totals.out_of_use);
  text += fmt::format("; {} running, {} waiting", base::Counted(totals.running, "gang"), totals.waiting);
  if (totals.stopped > 0) text += fmt::format(", {} standing still", totals.stopped);
  return text;
}

}  // namespace

bool StatusReport::wrong() const {
  return std::any_of(troubles.begin(), troubles.end(),
                     [](const Trouble& one) { return one.gravity != Gravity::kNote; });
}

StatusReport ReportStatus(const StatusReading& reading) {
  StatusReport report;
  const Objects& topologies = Read(reading.topologies, "What agents see of their nodes is", report);
  const Objects& nodes = Read(reading.nodes, "Which nodes are ready is", report);
  const Objects& fabrics = Read(reading.fabrics, "Fabrics and their cables are", report);
  const std::vector<crds::Gang> gangs = GangsOf(Read(reading.gangs, "Gangs are", report), report);
  const Objects& pods = Read(reading.pods, "Who holds how many GPUs is", report);
  const std::map<std::string, Unusable> unusable = FindUnusable(reading);
  const auto add = [&report](std::vector<Trouble> troubles) {
    report.troubles.insert(report.troubles.end(), std::make_move_iterator(troubles.begin()),
                           std::make_move_iterator(troubles.end()));
  };
  std::vector<Trouble> of_gangs = GangTroubles(gangs, reading.now);
  DateLostNodes(nodes, of_gangs);
  add(std::move(of_gangs));
  add(NodeTroubles(nodes, unusable));
  add(TopologyTroubles(topologies));
  add(FabricTroubles(fabrics, !reading.leases));
  add(PolicyTroubles(Read(reading.lossless, "LosslessPolicies are", report), "LosslessPolicy", reading.now));
  add(PolicyTroubles(Read(reading.devices, "RdmaDevicePolicies are", report), "RdmaDevicePolicy",
                     reading.now));
  add(SuspectTroubles(fabrics));
  add(SwitchTroubles(Read(reading.switches, "FabricSwitches are", report)));
  if (reading.leases) {
    add(SilentAgents(topologies, *reading.leases, reading.now));
  } else {
    report.notes.push_back("Which agents fell silent is known from the Fabrics only: " +
                           reading.leases.error().message);
  }
  CountGangs(gangs, report.totals);
  CountGpus(topologies, pods, unusable, report.totals);
  report.totals.bound_known = reading.pods.has_value();
  return report;
}

crds::Json StatusJson(const StatusReport& report, const StatusOptions& options) {
  Json items = Json::array();
  for (const Trouble& one : options.all ? Sorted(report.troubles) : Folded(report.troubles))
    items.push_back(ToJson(one));
  const StatusTotals& totals = report.totals;
  const Json bound = totals.bound_known ? Json(totals.bound) : Json();
  const Json free = totals.bound_known ? Json(totals.free) : Json();
  return {{"wrong", report.wrong()},
          {"items", std::move(items)},
          {"totals",
           {{"nodes", totals.nodes},
            {"nodesOutOfUse", totals.unusable_nodes},
            {"gpus", totals.gpus},
            {"gpusBound", bound},
            {"gpusFree", free},
            {"gpusOutOfUse", totals.out_of_use},
            {"gangsRunning", totals.running},
            {"gangsWaiting", totals.waiting},
            {"gangsStandingStill", totals.stopped}}},
          {"notRead", report.notes}};
}

std::string StatusText(const StatusReport& report, const StatusOptions& options, base::WallTime now,
                       const Style& style) {
  const std::string totals = TotalsText(report.totals);
  std::string text;
  if (!report.troubles.empty()) {
    text = TroublesText(options.all ? Sorted(report.troubles) : Folded(report.troubles), now, style) + "\n";
  }
  if (report.wrong()) return text + SentenceText(totals + ".", style);
  const std::string well =
      report.notes.empty() ? "Nothing is wrong:" : "Nothing is wrong, as far as can be seen:";
  return text + ProseText(style.Paint(well, Colour::kGood) + " " + totals + ".\n", style);
}

}  // namespace heddle::cli
