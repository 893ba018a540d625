#include "operator/switch_reconciler.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "crds/keys.h"
#include "operator/resources.h"
#include "operator/switch_status.h"

namespace heddle::operators {
namespace {

constexpr std::string_view kMapPrefix = "heddle-switch-";
constexpr std::size_t kMaxNameOfObject = 253;

kube::Json CablesOf(const std::vector<crds::CableReport>& reports) {
  crds::NodeTopology object;
  object.spec.cables = reports;
  return crds::SpecApplyJson(object).value("spec", kube::Json::object()).value("cables", kube::Json());
}

kube::Json StatusOf(const crds::FabricSwitchStatus& status) {
  crds::FabricSwitch object;
  object.status = status;
  return crds::StatusApplyJson(object).value("status", kube::Json::object());
}

constexpr std::array kTold{
    PolicyEvent{"Contradiction", "CablesContradict", kube::Severity::kWarning, crds::kCablesLossless, true},
    PolicyEvent{"Lossless", "CablesLossless", kube::Severity::kNormal, crds::kCablesLossless},
    PolicyEvent{kNotTold, "CablesNotTold", kube::Severity::kWarning, crds::kCompared},
    PolicyEvent{kNotUnderstood, "SwitchNotUnderstood", kube::Severity::kWarning, crds::kReachable}};

// Of which only that it can be read counts.
kube::Json AnySpec() {
  crds::FabricSwitch object;
  object.spec.address = "switch.example:8080";
  object.spec.name = "switch";
  return crds::ToJson(object).at("spec");
}

// What cables call the switches of these FabricSwitches, as far as that alone can be read.
std::set<std::string> NamesOf(const std::map<std::string, Unreadable>& unreadable) {
  std::set<std::string> names;
  for (const auto& [object, one] : unreadable) {
    for (const char* field : {"name", "chassisId"}) {
      if (std::string name = kube::StringAt(*one.object, {"spec", field}); !name.empty())
        names.insert(std::move(name));
    }
  }
  return names;
}

// By what cables call a switch, the nodes on it whose spec could not be written.
std::map<std::string, NotTold> NotToldOfSwitches(const std::map<std::string, base::Error>& refused,
                                                 const std::vector<CabledNode>& nodes) {
  std::map<std::string, NotTold> by_switch;
  if (refused.empty()) return by_switch;
  for (const CabledNode& node : nodes) {
    const auto error = refused.find(node.name);
    if (error == refused.end()) continue;
    for (const topology::Nic& nic : node.topology->status.node.nics) {
      for (const topology::NicPort& port : nic.ports) {
        if (port.leaf_port) by_switch[port.leaf_port->leaf].Add(node.name, error->second);
      }
    }
  }
  return by_switch;
}

// Without those of another address than the object has by now, which may be another switch's; times as the wall clock
// has them now.
SwitchAnswers AnswersOf(const std::vector<crds::FabricSwitch>& fabric_switches, SwitchAnswers answers,
                        std::chrono::nanoseconds ahead) {
  for (auto& [name, answer] : answers) {
    if (answer.read_at) answer.read_at = AsOf(*answer.read_at, answer.read_ahead, ahead);
    if (answer.saw_at) answer.saw_at = AsOf(*answer.saw_at, answer.saw_ahead, ahead);
  }
  for (const crds::FabricSwitch& object : fabric_switches) {
    const auto found = answers.find(object.name);
    if (found == answers.end() || found->second.address.empty()) continue;
    if (found->second.address != object.spec.address) answers.erase(found);
  }
  return answers;
}

}  // namespace

std::string RenderMapName(const std::string& fabric_switch) {
  return ShortName(std::string(kMapPrefix) + fabric_switch, kMaxNameOfObject);
}

std::vector<CabledNode> SwitchReconciler::ReadNodes(bool any_switch) {
  // Where nobody asks for cables, the nodes need not be held a second time: only what still stands there goes.
  if (!any_switch) nodes_ = {};
  if (!any_switch) {
    const auto objects = reads_.topologies.List();
    // What we took away no longer counts as on its way once it is seen to be gone.
    const bool any = std::any_of(objects.begin(), objects.end(), [&](const kube::ObjectPtr& object) {
      return writes_.ahead().Over(*object, clock_.Now()) ||
             !kube::ArrayAt(*object, {"spec", "cables"}).empty();
    });
    if (!any) return {};
  }
  return nodes_.Read(reads_.nodes, reads_.topologies, writes_.ahead(), clock_.Now(),
                     [](CabledNode& node, crds::NodeTopology&& topology) {
                       auto kept = std::make_shared<crds::NodeTopology>();
                       kept->name = node.name;
                       kept->spec.lossless = std::move(topology.spec.lossless);
                       kept->spec.cables = std::move(topology.spec.cables);
                       kept->status.node.nics = std::move(topology.status.node.nics);
                       kept->status.lossless = std::move(topology.status.lossless);
                       node.topology = std::move(kept);
                     });
}

std::set<std::string> SwitchReconciler::Unheard(const std::vector<crds::FabricSwitch>& fabric_switches,
                                                const SwitchAnswers& answers) {
  const base::MonotonicTime now = clock_.Now();
  std::map<std::string, base::MonotonicTime> since;
  std::map<std::string, std::string> heard_at;
  std::set<std::string> unheard;
  for (const crds::FabricSwitch& object : fabric_switches) {
    const auto answer = answers.find(object.name);
    if (answer != answers.end() && answer->second.read_at) {
      heard_at.emplace(object.uid, object.spec.address);
      continue;
    }
    if (const auto heard = heard_at_.find(object.uid); heard != heard_at_.end()) {
      heard_at.insert(*heard);
      if (heard->second != object.spec.address) continue;
    }
    const auto known = unheard_.find(object.uid);
    const base::MonotonicTime began = known == unheard_.end() ? now : known->second;
    since.emplace(object.uid, began);
    if (now - began < kPatience) unheard.insert(object.name);
  }
  unheard_ = std::move(since);
  heard_at_ = std::move(heard_at);
  return unheard;
}

std::chrono::nanoseconds SwitchReconciler::UntilNextLook(const SwitchVerdicts& verdicts) const {
  std::chrono::nanoseconds next = kLookEvery;
  const base::MonotonicTime now = clock_.Now();
  // A second later it is so, and not about to be.
  if (verdicts.turns)
    next = std::min<std::chrono::nanoseconds>(next,
                                              *verdicts.turns - clock_.WallNow() + std::chrono::seconds(1));
  for (const auto& [uid, map] : maps_) next = std::min(next, map.at + kLookEvery - now);
  for (const auto& [uid, since] : unheard_) {
    if (now - since < kPatience) next = std::min(next, since + kPatience - now);
  }
  return std::max<std::chrono::nanoseconds>(next, std::chrono::seconds(1));
}

base::Result<Outcome> SwitchReconciler::Reconcile(const std::stop_token& stop) {
  const Policies<crds::FabricSwitch>& fabric_switches =
      kept_switches_.Read(reads_.fabric_switches, "FabricSwitch", &crds::FabricSwitchFromJson);
  const auto policies = ReadPolicies(reads_.policies, "LosslessPolicy", &crds::LosslessPolicyFromJson);
  const bool only_proved = std::any_of(policies.read.begin(), policies.read.end(), [](const auto& policy) {
    return policy.spec.counted == crds::CountedCables::kLosslessOnly;
  });
  const auto nodes = ReadNodes(!fabric_switches.read.empty() || only_proved);
  const SwitchAnswers answers = AnswersOf(fabric_switches.read, reads_.answers(), WallAhead(clock_));
  const Silent silent{.nodes = reads_.late ? reads_.late() : std::set<std::string>{},
                      .switches = Unheard(fabric_switches.read, answers),
                      .unread = NamesOf(fabric_switches.unreadable)};
  auto verdicts = std::make_shared<SwitchVerdicts>(
      kept_.Look(fabric_switches.read, answers, nodes, policies, silent, clock_.WallNow()));
  PolicyPass pass(writes_, events_, kTold, stop);
  for (const CabledNode& node : nodes) {
    const auto& wanted = verdicts->nodes.at(node.name)->reports;
    if (wanted == node.topology->spec.cables) continue;
    pass.Spec(node.name, nodes_.UidOf(node.name), CablesOf(node.topology->spec.cables), CablesOf(wanted));
  }
  const auto not_told = NotToldOfSwitches(pass.Refused(), nodes);
  std::set<std::string> said;  // nodes of which a switch says that they are not told
  WriteMaps(fabric_switches.read, answers, policies, *verdicts, pass, stop);
  for (const crds::FabricSwitch& object : fabric_switches.read) {
    crds::FabricSwitch wanted;
    wanted.name = object.name;
    wanted.uid = object.uid;
    wanted.status = verdicts->statuses.at(object.name);
    // Hosts see it by its name or by its chassis.
    auto untold = not_told.find(NameOf(object));
    if (untold == not_told.end()) untold = not_told.find(object.spec.chassis_id);
    if (untold != not_told.end() && SayNotTold(untold->second, crds::kCompared, object.status.conditions,
                                               clock_.WallNow(), wanted.status.conditions))
      said.insert(untold->second.nodes.begin(), untold->second.nodes.end());
    if (wanted.status == object.status) continue;
    pass.Status(kFabricSwitches, object, StatusOf(object.status), crds::StatusApplyJson(wanted),
                {object.status.conditions, wanted.status.conditions});
  }
  for (const auto& [name, unreadable] : fabric_switches.unreadable) TellNotUnderstood(unreadable, pass, stop);
  pass.TellRefused(said);
  if (!fabric_switches.read.empty()) pass.Take(Outcome{.again = UntilNextLook(*verdicts)});
  verdicts_.Set(std::move(verdicts));
  return pass.Sum();
}

void SwitchReconciler::TellNotUnderstood(const Unreadable& unreadable, PolicyPass& pass,
                                         const std::stop_token& stop) {
  constexpr std::string_view kKept = "It is not asked, and no cable of it is compared";
  auto object = KnownOf(unreadable, &crds::FabricSwitchFromJson, AnySpec());
  if (!object) return pass.TellUnreadable(unreadable, kKept);
  crds::FabricSwitch known = *std::move(object);
  known.spec = {};
  crds::FabricSwitch wanted;
  wanted.name = known.name;
  wanted.uid = known.uid;
  wanted.status = StatusOfNotUnderstood(known, NotUnderstoodMessage(unreadable.why, kKept), clock_.WallNow());
  EndMap(known, MapInDoubt({std::string(kNotUnderstood), "its FabricSwitch cannot be read: see Reachable"}),
         wanted.status, pass, stop);
  pass.Status(kFabricSwitches, known, StatusOf(known.status), crds::StatusApplyJson(wanted),
              {known.status.conditions, wanted.status.conditions});
}

void SwitchReconciler::WriteMaps(const std::vector<crds::FabricSwitch>& fabric_switches,
                                 const SwitchAnswers& answers, const Policies<crds::LosslessPolicy>& policies,
                                 SwitchVerdicts& verdicts, PolicyPass& pass, const std::stop_token& stop) {
  std::set<std::string> there;
  for (const kube::ObjectPtr& object : reads_.fabric_switches.List()) there.insert(kube::Uid(*object));
  std::erase_if(maps_, [&](const auto& map) { return !there.contains(map.first); });
  std::erase_if(made_, [&](const auto& made) { return !there.contains(made.first); });
  for (const crds::FabricSwitch& object : fabric_switches) {
    crds::FabricSwitchStatus& status = verdicts.statuses.at(object.name);
    if (object.spec.mode != crds::SwitchMode::kRender) {
      made_.erase(object.uid);
      EndMap(object, MapOfObserved(), status, pass, stop);
      continue;
    }
    const auto doubt = verdicts.doubts.find(object.name);
    const auto answer = answers.find(object.name);
    const bool read = answer != answers.end() && answer->second.config != nullptr;
    // What was rendered stays while it is too early to know better.
    if (doubt == verdicts.doubts.end() && !read) continue;
    const SwitchMap map =
        doubt != verdicts.doubts.end()
            ? MapInDoubt(doubt->second)
            : MadeMap(object, answer->second.config, std::move(verdicts.host_cables[object.name]), policies);
    const base::Result<Outcome> written = PutMap(object, map, pass, stop);
    SetRendered(object, map, written, clock_.WallNow(), status);
    if (written) status.render_config_map = map.any ? RenderMapName(object.name) : "";
  }
}

const SwitchMap& SwitchReconciler::MadeMap(const crds::FabricSwitch& object,
                                           const std::shared_ptr<const switches::SonicAnswer>& answer,
                                           HostCables cables,
                                           const Policies<crds::LosslessPolicy>& policies) {
  std::vector<crds::LosslessPolicySpec> specs;
  std::set<std::string> names;
  for (const auto* of_policies : {&cables.ports, &cables.fabric.ports}) {
    for (const auto& [name, ports] : *of_policies) names.insert(name);
  }
  for (const std::string& name : names) {
    for (const crds::LosslessPolicy& policy : policies.read) {
      if (policy.name == name) specs.push_back(policy.spec);
    }
  }
  Made& made = made_[object.uid];
  if (made.answer == answer && made.cables == cables && made.policies == specs) return made.map;
  SwitchMap map = MapOf(cables, *answer, policies);
  made = {answer, std::move(cables), std::move(specs), std::move(map)};
  return made.map;
}

base::Result<Outcome> SwitchReconciler::PutMap(const crds::FabricSwitch& object, const SwitchMap& map,
                                               PolicyPass& pass, const std::stop_token& stop) {
  const base::MonotonicTime now = clock_.Now();
  const auto known = maps_.find(object.uid);
  // Only to take away what stands there is one written that has nothing of a policy.
  const bool stands = known != maps_.end() || !object.status.render_config_map.empty();
  if (!map.any && !stands) return Outcome{};
  if (known != maps_.end() && known->second.data == map.data && now - known->second.at < kLookEvery)
    return Outcome{};
  base::Result<Outcome> written = WriteMap(object, map.data, stop);
  pass.Take(written);
  if (written) maps_[object.uid] = {map.data, now};
  return written;
}

void SwitchReconciler::EndMap(const crds::FabricSwitch& object, const SwitchMap& map,
                              crds::FabricSwitchStatus& status, PolicyPass& pass,
                              const std::stop_token& stop) {
  const auto known = maps_.find(object.uid);
  // Its status may be behind what was written last.
  const bool gone =
      object.status.render_config_map.empty() && (known == maps_.end() || known->second.data == map.data);
  base::Result<Outcome> written = Outcome{};
  if (!gone) written = PutMap(object, map, pass, stop);
  if (gone && known != maps_.end()) maps_.erase(known);
  if (!written) return SetRendered(object, map, written, clock_.WallNow(), status);
  status.render_config_map.clear();
  std::erase_if(status.conditions, [](const auto& one) { return one.type == kRendered; });
}

base::Result<Outcome> SwitchReconciler::WriteMap(const crds::FabricSwitch& fabric_switch,
                                                 const std::map<std::string, std::string>& data,
                                                 const std::stop_token& stop) {
  const std::string name = RenderMapName(fabric_switch.name);
  kube::Json object = kube::NewObject(kube::kConfigMaps, {ns_, name});
  object["metadata"]["labels"]["app.kubernetes.io/managed-by"] = crds::keys::kOperatorManager;
  // It goes with the switch.
  object["metadata"]["ownerReferences"] = kube::Json::array(
      {{{"apiVersion", std::string(crds::keys::kGroup) + "/" + std::string(crds::keys::kVersion)},
        {"kind", crds::keys::kFabricSwitch.kind},
        {"name", fabric_switch.name},
        {"uid", fabric_switch.uid}}});
  object["data"] = data;
  const kube::ApplyOptions options{.field_manager = std::string(crds::keys::kOperatorManager), .force = true};
  const auto applied = client_.Apply(kube::kConfigMaps, object, options, stop);
  if (!applied) return base::Fail(applied.error().In("write ConfigMap " + name));
  return Outcome{.writes = 1};
}

}  // namespace heddle::operators
