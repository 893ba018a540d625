#include "operator/switch_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/counted.h"
#include "formats/sonic_steps.h"
#include "lossless/policy.h"
#include "operator/cut_text.h"
#include "switches/render.h"

namespace heddle::operators {
namespace {

constexpr const char* kNothing = "NOT-RENDERED.txt";  // no policy has such a name
constexpr std::string_view kExplained = ".txt", kLoad = ".load.json", kPatch = ".patch.json";
constexpr std::size_t kMaxKey = 253;                // of a ConfigMap
constexpr std::size_t kMaxConditionMessage = 1024;  // the schema's

// A policy's name may be as long as a whole key.
std::string KeyOf(const std::string& policy, std::string_view what) {
  return ShortName(policy, kMaxKey - kPatch.size()) + std::string(what);
}

// Why there is nothing to render, and what to do.
std::string WhyNothing(const HostCables& cables) {
  if (cables.cables > 0) {
    return fmt::format(
        "cables of hosts end here, {} in all, and no LosslessPolicy that can be read is the only one that "
        "selects the host's end of any: see spec.lossless of the NodeTopologies, and let one policy select "
        "it",
        cables.cables);
  }
  constexpr std::string_view kByHand =
      "a port is rendered by `kubectl heddle switch render policy.yaml --config config_db.json --fabric-port "
      "PORT` all the same";
  if (const auto& left_out = cables.fabric.left_out; !left_out.empty()) {
    return fmt::format(
        "no host says by LLDP that a cable of its ends here, and of {} to other switches none is "
        "rendered: {}: {}; {}",
        base::Counted(left_out.size(), "port"), left_out.begin()->first, left_out.begin()->second, kByHand);
  }
  return fmt::format(
      "no host says by LLDP that a cable of its ends here, nor does any switch that is asked; {}", kByHand);
}

// Of what goes to the switch, as far as there is any.
bool IsPatch(const std::pair<const std::string, std::string>& text) {
  return text.first.ends_with(kPatch) && text.second != "[]\n";
}

std::string WhyLeftOut(const std::map<std::string, std::string>& doubted) {
  return fmt::format("{} left out, of which LLDP says what cannot be: {}{}; follow {}",
                     base::Counted(doubted.size(), "port"), doubted.begin()->second,
                     doubted.size() > 1 ? fmt::format(" and {} more", doubted.size() - 1) : "",
                     doubted.size() > 1 ? "these cables" : "this cable");
}

// In the place of what may stand in the ConfigMap.
SwitchMap Nothing(std::string reason, std::string message) {
  SwitchMap map{.reason = std::move(reason), .message = std::move(message)};
  map.data[kNothing] = "Not rendered: " + map.message + "\n";
  return map;
}

std::string NotesOf(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += "Note: " + note + "\n";
  return text;
}

// The first fault counts: what is not good stays so.
void Complain(SwitchMap& map, std::string reason, std::string message) {
  if (!map.good) return;
  map.good = false;
  map.reason = std::move(reason);
  map.message = std::move(message);
}

std::string LinesOf(const std::vector<formats::SonicFault>& faults) {
  std::string text;
  for (const formats::SonicFault& fault : faults)
    text += fmt::format("Fault: {}: {} ({})\n", fault.where, fault.what, fault.model);
  return text;
}
std::string FirstOf(const std::vector<formats::SonicFault>& faults) {
  return fmt::format("{}: {} ({}){}", faults.front().where, faults.front().what, faults.front().model,
                     faults.size() > 1 ? fmt::format(" and {} more", faults.size() - 1) : "");
}

void PutFailure(const std::string& policy, const std::string& why, SwitchMap& map) {
  map.data[KeyOf(policy, kExplained)] = "Not rendered: " + why + "\n";
  Complain(map, "NotRendered", fmt::format("LosslessPolicy {}: {}", policy, why));
}

std::string HowTo(const std::vector<std::string>& commands) {
  if (commands.empty()) return "";
  std::string text =
      "Heddle sends nothing to a switch. On it, in this order, with the keys of this ConfigMap as files:\n";
  for (const std::string& command : commands) text += "  " + command + "\n";
  return text;
}

struct Ports {
  std::set<std::string> host, fabric;
};

std::string PortsText(const Ports& ports) {
  const std::string all = base::Counted(ports.host.size() + ports.fabric.size(), "port");
  return ports.fabric.empty() ? all : fmt::format("{} ({} to other switches)", all, ports.fabric.size());
}

// What one policy wants of the switch, and what SONiC's models have against it.
void Put(const crds::LosslessPolicy& policy, const Ports& ports, const switches::SonicAnswer& answer,
         SwitchMap& map) {
  auto resolved = lossless::Resolve(policy.spec.policy);
  if (!resolved) return PutFailure(policy.name, resolved.error().message, map);
  const auto patch =
      switches::RenderPorts(answer, {policy.name, *std::move(resolved), ports.host, ports.fabric});
  if (!patch) return PutFailure(policy.name, patch.error().message, map);
  const auto faults = switches::FaultsOf(answer.text, *patch);
  if (!faults) return PutFailure(policy.name, faults.error().message, map);
  if (!faults->made.empty()) {
    PutFailure(policy.name,
               fmt::format("what was made for it breaks SONiC's own models, which is a fault of Heddle's, to "
                           "be reported: {}",
                           FirstOf(faults->made)),
               map);
    map.data[KeyOf(policy.name, kExplained)] += LinesOf(faults->made);
    return;
  }
  if (!faults->before.empty()) {
    Complain(map, "Faulty",
             fmt::format("its configuration breaks SONiC's own models, by which `config apply-patch` refuses "
                         "any patch: correct {} on the switch",
                         FirstOf(faults->before)));
  }
  const lossless::SwitchProfile& profile = switches::ProfileOf(answer);
  const std::string load = KeyOf(policy.name, kLoad), rest = KeyOf(policy.name, kPatch);
  const formats::SonicSteps steps = formats::StepsOf(*patch);
  if (!steps.load.empty()) map.data[load] = steps.load;
  map.data[rest] = steps.patch;
  map.data[KeyOf(policy.name, kExplained)] =
      fmt::format("{}: {} for LosslessPolicy {} on {}, profile {}\n{}\n", answer.config.hostname,
                  base::Counted(patch->lines.size(), "change"), policy.name, PortsText(ports), profile.name,
                  HowTo(formats::CommandsOf(steps, load, rest))) +
      switches::Explain(*patch, [](const std::string& line) { return line; }) +
      (profile.note.empty() ? "" : fmt::format("Note: {}: {}\n", profile.name, profile.note)) +
      NotesOf(patch->notes) + LinesOf(faults->before);
}

}  // namespace

std::string ShortName(const std::string& name, std::size_t max) {
  if (name.size() <= max) return name;
  // FNV-1a: of two long names that begin alike.
  std::uint64_t hash = 14695981039346656037ull;
  for (const char letter : name) hash = (hash ^ std::uint8_t(letter)) * 1099511628211ull;
  return fmt::format("{}-{:016x}", name.substr(0, max - 17), hash);
}

SwitchMap MapOf(const HostCables& cables, const switches::SonicAnswer& answer,
                const Policies<crds::LosslessPolicy>& policies) {
  SwitchMap map{.any = true,
                .good = true,
                .reason = "Written",
                .message = "what it should have is in the ConfigMap that renderConfigMap names"};
  std::map<std::string, Ports> by_policy;
  for (const auto& [name, ports] : cables.ports) by_policy[name].host = ports;
  for (const auto& [name, ports] : cables.fabric.ports) by_policy[name].fabric = ports;
  for (const auto& [name, ports] : by_policy) {
    const auto policy = std::find_if(policies.read.begin(), policies.read.end(),
                                     [&, n = name](const auto& one) { return one.name == n; });
    if (policy != policies.read.end()) Put(*policy, ports, answer, map);
  }
  std::string notes;
  // Each is made against the settings as they are, and two that make the same table leave what the later one has.
  if (std::count_if(map.data.begin(), map.data.end(), IsPatch) > 1)
    notes +=
        "Note: several LosslessPolicies have ports here: apply one, and the next once it was rendered anew\n";
  for (const auto& [port, why] : cables.doubted) notes += fmt::format("Left out: {}: {}\n", port, why);
  for (const auto& [port, why] : cables.fabric.left_out)
    notes += fmt::format("Left out: {}: {}\n", port, why);
  const bool doubted = !cables.doubted.empty();
  if (map.data.empty() && doubted) return Nothing("CablesInDoubt", WhyLeftOut(cables.doubted));
  if (map.data.empty()) return Nothing("NothingToRender", WhyNothing(cables));
  for (auto& [key, text] : map.data) {
    if (key.ends_with(kExplained)) text += notes;
  }
  if (doubted) Complain(map, "CablesInDoubt", WhyLeftOut(cables.doubted));
  return map;
}

SwitchMap MapInDoubt(const SwitchTrouble& why) {
  return Nothing(
      why.reason,
      fmt::format("{}; until then no patch of it is offered{}", why.message,
                  why.reason == "Stale" ? ": see Reachable for what keeps it from answering" : ""));
}

SwitchMap MapOfObserved() {
  return Nothing("Observed", "the FabricSwitch is in mode Observe; in mode Render it is rendered again");
}

void SetRendered(const crds::FabricSwitch& object, const SwitchMap& map, const base::Result<Outcome>& written,
                 base::WallTime now, crds::FabricSwitchStatus& status) {
  crds::Condition condition{.type = std::string(kRendered)};
  condition.status = written && map.good ? crds::ConditionStatus::kTrue : crds::ConditionStatus::kFalse;
  condition.reason = written ? map.reason : std::string(base::CodeName(written.error().code));
  condition.message = written ? map.message : written.error().message;
  if (!written && written.error().code == base::Code::kForbidden)
    condition.message =
        "the operator may not write ConfigMaps: set operator.switches.render in the chart's values";
  condition.message = CutText(condition.message, kMaxConditionMessage);
  condition.observed_generation = object.generation;
  condition.last_transition = std::chrono::floor<std::chrono::seconds>(now);
  crds::SetCondition(status.conditions, std::move(condition));
}

}  // namespace heddle::operators
