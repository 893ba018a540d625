#include "tests/sim/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/check.h"
#include "crds/fabric_assembly.h"
#include "crds/keys.h"
#include "extender/compute_domain.h"
#include "extender/owner_kinds.h"
#include "extender/resources.h"
#include "topology/synthetic.h"

namespace heddle::sim {
namespace {

using kube::Json;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::vector<Machine> MakeMachines(const Setting& setting) {
  std::vector<Machine> machines;
  for (int i = 0; i < setting.extenders; ++i) {
    machines.push_back(
        {.host = std::string("host-") + char('a' + i), .skew = i == 1 ? setting.skew : milliseconds(0)});
  }
  return machines;
}

std::vector<std::string> HostsOf(const std::vector<Machine>& machines) {
  std::vector<std::string> hosts;
  for (const Machine& machine : machines) hosts.push_back(machine.host);
  return hosts;
}

// A verb as kube-scheduler calls it, without a connection in between.
std::optional<Json> AskVerb(std::vector<Machine>& machines, const std::string& host, const std::string& path,
                            const Json& body) {
  for (Machine& machine : machines) {
    if (machine.host != host) continue;
    if (machine.daemon == nullptr || machine.process->dead()) return std::nullopt;
    const kube::ServedAnswer answer = machine.daemon->Answer({"POST", path, body.dump(), false});
    if (answer.status != 200) return std::nullopt;
    return Json::parse(answer.body, nullptr, false);
  }
  return std::nullopt;
}

}  // namespace

World::World(Simulation& simulation, const Setting& setting, const Weather& weather)
    : simulation_(simulation),
      setting_(setting),
      random_(simulation.Fork()),
      network_(simulation, server_, weather),
      checks_(simulation),
      queue_rule_(simulation, server_, checks_,
                  [this](const Process& process) { return KeptNodes(process); }),
      jobs_(simulation, server_, scheduler_name()),
      job_sets_(simulation, server_),
      kubelets_(simulation, server_),
      scheduler_(
          simulation, server_, HostsOf(MakeMachines(setting)),
          setting.own_lease ? PodScheduler::Verb{}
                            : [this](const std::string& host, const std::string& path,
                                     const Json& body) { return AskAsScheduler(host, path, body); },
          [this](const std::string& sentence) { checks_.Violate("VerbsAnswer", sentence); }),
      collector_(simulation, server_, jobs_),
      machines_(MakeMachines(setting)) {
  for (const auto& resource : {extender::kNodeTopologies, extender::kFabrics, extender::kGangs})
    server_.Serve(resource);
  for (const extender::OwnerKind& kind : extender::OwnerKinds()) {
    if (kind.everywhere) server_.Serve(kind.resource);
  }
  server_.Serve(JobSetKind());
  if (setting.compute_domains) {
    server_.Serve(extender::kComputeDomains);
    server_.Serve(extender::kResourceClaims);
    domain_driver_ = std::make_unique<DomainDriver>(simulation, server_);
  }
  if (setting.leader_sets) {
    server_.Serve(LeaderSetKind());
    leader_sets_ = std::make_unique<LeaderSets>(simulation, server_, jobs_, scheduler_name());
  }
  server_.set_track_owners(false);
  server_.set_watch_list(setting.watch_list);
  Listen();
  AddNodes(setting);
  simulation_.OnSpin([this](const Process& process) {
    checks_.Violate("NoHotLoop", process.name() + " works on and on without waiting for anything");
  });
  KeepExtenders();
  CountRequests();
  if (setting.drift.count() != 0) Drift();
}

World::~World() {
  simulation_.End();
}

void World::Listen() {
  server_.OnChange([this](const kube::Resource& resource, const Json& before, const Json& after) {
    network_.Changed(resource);
    checks_.Changed(resource, before, after);
    if (resource == kube::kJobs || resource == JobSetKind()) job_sets_.Kick();
    const bool of_leader_sets = leader_sets_ && (resource == kube::kPods || resource == LeaderSetKind());
    if (of_leader_sets) leader_sets_->Kick();
    if (resource == kube::kPods || resource == kube::kJobs || resource == JobSetKind() || of_leader_sets) {
      jobs_.Kick();
      kubelets_.Kick();
      scheduler_.Kick();
      collector_.Kick();
    } else if (resource == kube::kNodes) {
      scheduler_.Kick();
    } else if (resource == extender::kGangs) {
      collector_.Kick();
    } else if (domain_driver_ && resource == extender::kComputeDomains) {
      collector_.Kick();
      domain_driver_->Kick();
    }
  });
  network_.Observe(
      [this](const Process& process, const test::ApiRequest& request, const kube::HttpResponse& response) {
        checks_.Requested(process, request, response);
        if (Network::WasHeld(request)) return queue_rule_.Excuse(request, response);
        queue_rule_.Requested(process, request, response);
      });
}

std::optional<Json> World::AskAsScheduler(const std::string& host, const std::string& path,
                                          const Json& body) {
  auto told = AskVerb(machines_, host, path, body);
  if (!told || path != "/preempt") return told;
  for (const Machine& machine : machines_) {
    if (machine.host == host) checks_.Preempted(*machine.process, *told);
  }
  return told;
}

// By what filter tells a pod that is worth less than any other.
QueueRule::Kept World::KeptNodes(const Process& process) {
  const Json probe{
      {"metadata", {{"name", "probe"}, {"namespace", kTeam}, {"uid", "probe"}}},
      {"spec",
       {{"priority", std::numeric_limits<std::int32_t>::min()},
        {"containers",
         Json::array({{{"name", "main"}, {"resources", {{"limits", {{"nvidia.com/gpu", "1"}}}}}}})}}}};
  const bool ours = std::any_of(machines_.begin(), machines_.end(),
                                [&process](const Machine& one) { return one.process == &process; });
  QueueRule::Kept kept;
  for (const Machine& machine : machines_) {
    if (ours && machine.process != &process) continue;
    const auto told = AskVerb(machines_, machine.host, "/filter",
                              {{"Pod", probe}, {"Nodes", nullptr}, {"NodeNames", nodes_}});
    const Json* refused = told ? kube::Find(*told, {"FailedAndUnresolvableNodes"}) : nullptr;
    if (refused == nullptr || !refused->is_object()) continue;
    for (const auto& [node, why] : refused->items()) {
      // "others left it for a gang of priority 100"; what is reserved is kept from all
      const std::string sentence = why.is_string() ? why.get<std::string>() : "";
      if (!sentence.starts_with("others left it")) continue;
      kept[node] = std::atoi(sentence.substr(sentence.rfind(' ') + 1).c_str());
    }
  }
  return kept;
}

void World::AddNodes(const Setting& setting) {
  const auto parsed = topology::ParseSynthetic(setting.cluster);
  CHECK(parsed.has_value());
  std::map<std::string, std::string> racks;
  std::set<std::string> domains;
  for (const topology::Node& node : parsed->nodes) {
    if (node.nvlink_domain && node.nvlink_domain->spans_nodes) {
      racks[node.name] = node.nvlink_domain->id;
      domains.insert(node.nvlink_domain->id);
    }
    nodes_.push_back(node.name);
    gpus_per_node_ = int(node.gpus.size());
    kubelets_.Add(node);
  }
  spare_nodes_ = setting.spares * int(domains.size());
  checks_.KeepSpares(std::move(racks), setting.spares);
  for (const auto& [name, fabric] : crds::AssembleFabrics(parsed->nodes, {})) fabrics_.push_back(name);
  MakeFabrics();
}

void World::MakeFabrics() {
  for (const std::string& name : fabrics_) {
    if (server_.Find(extender::kFabrics, {"", name})) continue;
    Json object = kube::NewObject(extender::kFabrics, {"", name});
    object["spec"] = Json::object();
    server_.Put(extender::kFabrics, object);
  }
}

void World::StartExtender(Machine& machine) {
  const std::uint64_t seed = random_.Next();
  const int start = machine.starts++;
  const auto name = fmt::format("{}.{}", machine.host, start);
  machine.process = &simulation_.Start(name, machine.skew, [this, &machine, seed](Process& process) {
    Link link(network_, process);
    extender::DaemonOptions options;
    options.identity = process.name();
    options.spares = setting_.spares;
    options.leadership.identity = "heddle-extender_" + process.name();
    options.leadership.scheduler_identity = machine.host;
    options.leadership.own_lease = setting_.own_lease;
    options.leadership.ns = std::string(crds::keys::kNamespace);
    options.log = options.leadership.log = [this, &process](std::string_view line) {
      simulation_.Say(process.name() + ": " + std::string(line));
    };
    extender::Daemon daemon(link, process, base::Random(seed), options);
    machine.daemon = &daemon;
    daemon.Run(process.stop());
    if (machine.daemon == &daemon) machine.daemon = nullptr;
  });
}

// The kubelet of an extender's host.
void World::KeepExtenders() {
  for (Machine& machine : machines_) {
    if (!machine.wanted) continue;
    if (machine.process == nullptr || (machine.process->dead() && random_.Below(4) == 0))
      StartExtender(machine);
  }
  simulation_.After(seconds(1), [this] { KeepExtenders(); });
}

// The clock of the second machine goes wrong bit by bit, until somebody sets it.
void World::Drift() {
  constexpr seconds kMost{20};
  if (machines_.size() > 1) {
    Machine& machine = machines_[1];
    machine.skew += setting_.drift;
    if (machine.skew > kMost || machine.skew < -kMost) machine.skew = {};
    if (machine.process != nullptr) machine.process->SetSkew(machine.skew);
  }
  simulation_.After(seconds(1), [this] { Drift(); });
}

// Two looks at a Lease in four seconds, a watch or two for each kind, and a handful for each pod that moves.
void World::CountRequests() {
  constexpr std::uint64_t kMostInAMinute = 1000;
  for (const auto& [process, count] : network_.requests()) {
    std::uint64_t& before = requests_before_[process];
    if (count - before > kMostInAMinute) {
      checks_.Violate("NoHotLoop", fmt::format("{} has sent {} requests within a minute", process->name(),
                                               count - before));
    }
    before = count;
  }
  simulation_.After(seconds(60), [this] { CountRequests(); });
}

void World::RunUntil(base::MonotonicTime time) {
  constexpr std::uint64_t kMostSteps = 200'000;  // at one moment
  bool reached = false;
  simulation_.At(time, [&reached] { reached = true; });
  base::MonotonicTime moment = simulation_.now();
  std::uint64_t since = simulation_.steps();
  while (!reached && simulation_.Step()) {
    if (simulation_.now() != moment) {
      moment = simulation_.now();
      since = simulation_.steps();
    } else if (simulation_.steps() - since > kMostSteps) {
      return checks_.Violate("NoHotLoop", "something goes on and on, and no time passes");
    }
  }
}

bool World::Until(const std::function<bool()>& condition, std::chrono::nanoseconds limit) {
  const base::MonotonicTime end = simulation_.now() + limit;
  while (!condition()) {
    if (simulation_.now() >= end) return false;
    Pass(seconds(2));
  }
  return true;
}

}  // namespace heddle::sim
