// What is kept between looks changes nothing of what they say.
#include "operator/kept_verdicts.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "switches/openconfig_ports.h"
#include "tests/support/seeds.h"
#include "tests/unit/operator/switch_bed.h"

namespace heddle::operators {
namespace {

using lossless::LosslessVerdict;
using std::chrono::seconds;

constexpr int kNodes = 6, kRails = 2, kLeaves = 3, kPorts = 6;

std::string LeafName(std::uint64_t leaf) {
  return "leaf-" + std::to_string(leaf);
}
std::string NodeName(std::uint64_t node) {
  return "gpu-" + std::to_string(node) + ".dc1.example";
}

// Nodes of two NICs on two of three leaves, which have a spine above them, all of it lossless.
class KeptVerdictsTest : public testing::Test {
 protected:
  KeptVerdictsTest() {
    for (std::uint64_t node = 0; node < kNodes; ++node)
      nodes.push_back({NodeName(node), std::make_shared<const crds::NodeTopology>(Cabled(node))});
    for (std::uint64_t leaf = 0; leaf < kLeaves; ++leaf) AddSwitch(LeafName(leaf), crds::SwitchRole::kLeaf);
    AddSwitch("spine-1", crds::SwitchRole::kSpine);
    for (std::uint64_t leaf = 0; leaf < kLeaves; ++leaf) See(LeafName(leaf), SeenBy(leaf));
    See("spine-1", SeenFromAbove());
    crds::LosslessPolicy policy;
    policy.name = "roce";
    policies.read = {policy};
  }

  static crds::NodeTopology Cabled(std::uint64_t node) {
    crds::NodeTopology object = CabledTopology(NodeName(node));
    std::vector<topology::Nic>& nics = object.status.node.nics;
    for (std::uint64_t rail = 0; rail < kRails; ++rail) {
      if (rail > 0) nics.push_back(nics[0]);
      topology::Nic& nic = nics.back();
      nic.name = "mlx5_" + std::to_string(rail);
      nic.netdev = "eth" + std::to_string(rail);
      nic.rail = int(rail);
      nic.ports[0].leaf_port = topology::LeafPort{LeafName(rail), "etp" + std::to_string(node + 1)};
    }
    object.spec.lossless[0].ports = object.status.lossless[0].ports = {"mlx5_0:1", "mlx5_1:1"};
    return object;
  }

  // With its last port up to the spine.
  static switches::Neighbours SeenBy(std::uint64_t leaf) {
    switches::Neighbours seen;
    for (std::uint64_t node = 0; leaf < kRails && node < kNodes; ++node)
      seen["Ethernet" + std::to_string(8 * node)] = {NodeName(node), "", "eth" + std::to_string(leaf), ""};
    seen["Ethernet" + std::to_string(8 * kPorts)] = {"spine-1", "", "etp" + std::to_string(leaf + 1), ""};
    return seen;
  }

  static switches::Neighbours SeenFromAbove() {
    switches::Neighbours seen;
    for (std::uint64_t leaf = 0; leaf < kLeaves; ++leaf)
      seen["Ethernet" + std::to_string(8 * leaf)] = {LeafName(leaf), "", "etp" + std::to_string(kPorts + 1),
                                                     ""};
    return seen;
  }

  void AddSwitch(const std::string& name, crds::SwitchRole role) {
    crds::FabricSwitch object;
    object.name = object.spec.name = name;
    object.spec.address = name + ":8080";
    object.spec.role = role;
    fabric_switches.push_back(object);
    answers[name] = {.read_at = now - seconds(5), .saw_at = now - seconds(5), .connecting = false};
    SetConfig(name, [](formats::SonicConfig& config) {
      for (int i = 1; i <= kPorts; ++i) {
        formats::SonicPort port = config.ports[0];
        port.name = "Ethernet" + std::to_string(8 * i);
        port.alias = "etp" + std::to_string(i + 1);
        config.ports.push_back(port);
      }
    });
  }

  void SetConfig(const std::string& name, const std::function<void(formats::SonicConfig&)>& change) {
    SwitchAnswer& answer = answers[name];
    switches::SonicAnswer said = answer.config == nullptr ? *SonicAnswerOf(name, true) : *answer.config;
    change(said.config);
    answer.config = std::make_shared<const switches::SonicAnswer>(std::move(said));
  }

  void See(const std::string& name, switches::Neighbours seen) {
    answers[name].neighbours = std::make_shared<const switches::Neighbours>(std::move(seen));
  }

  void SetNode(CabledNode& node, const std::function<void(crds::NodeTopology&)>& change) {
    auto topology = std::make_shared<crds::NodeTopology>(*node.topology);
    change(*topology);
    node.topology = std::move(topology);
  }

  SwitchVerdicts Kept() { return kept.Look(fabric_switches, answers, nodes, policies, silent, now); }
  SwitchVerdicts Whole() const {
    return DecideVerdicts(fabric_switches, answers, nodes, policies, silent, now);
  }

  // What the operator writes, and reads again with the next look.
  void WriteDown(const SwitchVerdicts& verdicts) {
    for (crds::FabricSwitch& object : fabric_switches) object.status = verdicts.statuses.at(object.name);
    for (CabledNode& node : nodes) {
      const std::vector<crds::CableReport>& wanted = verdicts.nodes.at(node.name)->reports;
      if (wanted == node.topology->spec.cables) continue;
      SetNode(node, [&wanted](crds::NodeTopology& object) { object.spec.cables = wanted; });
    }
  }

  void ChangeNode(base::Random& random);
  void ChangeNodes(base::Random& random);
  void ChangeSwitch(base::Random& random);
  void ChangeAnswer(base::Random& random);
  void ChangeRest(base::Random& random);

  base::WallTime now = *base::ParseTime("2026-11-24T02:00:00Z");
  std::vector<crds::FabricSwitch> fabric_switches;
  SwitchAnswers answers;
  std::vector<CabledNode> nodes;
  Policies<crds::LosslessPolicy> policies;
  Silent silent;
  KeptVerdicts kept;
};

void ExpectSame(const SwitchVerdicts& kept, const SwitchVerdicts& whole) {
  ASSERT_EQ(kept.nodes.size(), whole.nodes.size());
  for (const auto& [name, verdict] : whole.nodes) {
    ASSERT_TRUE(kept.nodes.contains(name)) << name;
    const NodeVerdict& one = *kept.nodes.at(name);
    EXPECT_EQ(one.reports, verdict->reports) << name;
    EXPECT_EQ(one.counts, verdict->counts) << name;
    EXPECT_EQ(one.worst, verdict->worst) << name;
    EXPECT_EQ(one.rails, verdict->rails) << name;
  }
  EXPECT_EQ(kept.statuses, whole.statuses);
  EXPECT_EQ(kept.doubts, whole.doubts);
  EXPECT_EQ(kept.host_cables, whole.host_cables);
  EXPECT_EQ(kept.between, whole.between);
  EXPECT_EQ(kept.turns, whole.turns);
}

// One of three, in either notation, or none.
std::string ChassisOf(base::Random& random) {
  const std::string last = std::to_string(random.Below(3));
  if (random.Below(2) == 0) return "";
  return random.Below(4) == 0 ? "5254.0000.000" + last : "52:54:00:00:00:0" + last;
}

// What its agent says.
void KeptVerdictsTest::ChangeNode(base::Random& random) {
  if (nodes.empty()) return;
  CabledNode& node = nodes[random.Below(nodes.size())];
  const std::uint64_t kind = random.Below(9), leaf = random.Below(kLeaves + 1);
  const int number = int(random.Below(3000));
  const std::string port = "etp" + std::to_string(random.Below(kPorts + 3));
  const std::uint64_t which = random.Below(kRails);
  SetNode(node, [&](crds::NodeTopology& object) {
    if (object.status.node.nics.empty()) return;
    topology::Nic& nic = object.status.node.nics[which % object.status.node.nics.size()];
    topology::NicPort& end = nic.ports[0];
    if (kind == 0) object.status.lossless[0].have->mtu = 7000 + number;
    if (kind == 1) end.leaf_port = topology::LeafPort{leaf == kLeaves ? "leaf-none" : LeafName(leaf), port};
    if (kind == 2) end.leaf_port = topology::Missing::kUnknown;
    if (kind == 3)
      end.state = end.state == topology::LinkState::kActive ? topology::LinkState::kDown
                                                            : topology::LinkState::kActive;
    if (kind == 4) nic.netdev = number % 2 == 0 ? "eth0" : "eth1";
    if (kind == 5) nic.ports[0].rate_gbps = number % 2 == 0 ? 100 : 200;
    if (kind == 6) object.spec.lossless[0].policies = {number % 2 == 0 ? "roce" : "other"};
    if (kind == 7) nic.rail = number % 3;
    if (kind == 8 && end.leaf_port)
      end.leaf_port = topology::LeafPort{end.leaf_port->leaf, end.leaf_port->port, ChassisOf(random)};
  });
}

// Which there are, and what each is made of.
void KeptVerdictsTest::ChangeNodes(base::Random& random) {
  const std::uint64_t node = random.Below(kNodes);
  const auto found = std::find_if(nodes.begin(), nodes.end(),
                                  [node](const CabledNode& one) { return one.name == NodeName(node); });
  const std::uint64_t kind = random.Below(3);
  if (found == nodes.end()) {
    nodes.push_back({NodeName(node), std::make_shared<const crds::NodeTopology>(Cabled(node))});
    std::sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  } else if (kind == 0) {
    nodes.erase(found);
  } else if (kind == 1) {
    SetNode(*found, [](crds::NodeTopology& object) { object.status.node.nics.resize(1); });
  } else {
    // Its cables are again as they were in the beginning.
    found->topology = std::make_shared<const crds::NodeTopology>(Cabled(node));
  }
}

// What a person says of it.
void KeptVerdictsTest::ChangeSwitch(base::Random& random) {
  crds::FabricSwitch& object = fabric_switches[random.Below(fabric_switches.size())];
  switch (random.Below(6)) {
    case 0:
      object.spec.mode = object.spec.mode == crds::SwitchMode::kRender ? crds::SwitchMode::kObserve
                                                                       : crds::SwitchMode::kRender;
      break;
    case 1:
      object.spec.name = random.Below(2) == 0 ? object.name : LeafName(0);
      break;
    case 2:
      object.spec.chassis_id = ChassisOf(random);
      break;
    case 3:
      object.spec.poll_seconds = 20 + int(random.Below(60));
      break;
    case 4:
      ++object.generation;
      break;
    default:
      object.spec.dialect = object.spec.dialect == crds::SwitchDialect::kSonic
                                ? crds::SwitchDialect::kOpenConfig
                                : crds::SwitchDialect::kSonic;
  }
}

// What it says itself.
void KeptVerdictsTest::ChangeAnswer(base::Random& random) {
  const std::uint64_t leaf = random.Below(kLeaves + 1);
  const std::string name = leaf == kLeaves ? "spine-1" : LeafName(leaf);
  SwitchAnswer& answer = answers[name];
  const std::uint64_t port = random.Below(kPorts + 1), other = random.Below(kNodes);
  switch (random.Below(12)) {
    case 10:
      answer.chassis_id = ChassisOf(random);
      break;
    case 0:
      answer.config = nullptr;
      break;
    case 1:
      SetConfig(name, [&](formats::SonicConfig& config) {
        config.hostname = random.Below(3) == 0 ? LeafName(0) : name;
      });
      break;
    case 2:
      SetConfig(name, [&](formats::SonicConfig& config) {
        for (formats::SonicPort& one : config.ports)
          (*one.settings.dscp_to_priority)[26] = std::int8_t(port < 3 ? 0 : 3);
      });
      break;
    case 3:
      SetConfig(name, [&](formats::SonicConfig& config) {
        if (port < config.ports.size()) config.ports[port].settings.mtu = 7000 + int(random.Below(3000));
      });
      break;
    case 4:
      SetConfig(name, [&](formats::SonicConfig& config) {
        if (port < config.ports.size()) config.ports[port].alias = "etp" + std::to_string(other);
      });
      break;
    case 5:
      SetConfig(name, [&](formats::SonicConfig& config) {
        if (port >= config.ports.size()) return;
        config.bare.push_back(config.ports[port]);
        config.ports.erase(config.ports.begin() + std::ptrdiff_t(port));
        config.bare.back().bare = random.Below(2) == 0 ? std::string(switches::kNoPfcPath) : "is shut down";
      });
      break;
    case 6: {
      switches::Neighbours seen = answer.neighbours == nullptr ? switches::Neighbours{} : *answer.neighbours;
      switches::Neighbour& one = seen["Ethernet" + std::to_string(8 * port)];
      one.system = random.Below(3) == 0 ? LeafName(random.Below(kLeaves)) : NodeName(other);
      if (random.Below(3) == 0) one.system = "gpu-" + std::to_string(other);
      if (random.Below(4) == 0) one.chassis_id = ChassisOf(random);
      one.port_id = random.Below(2) == 0 ? "eth0" : "etp" + std::to_string(random.Below(kPorts));
      See(name, std::move(seen));
      break;
    }
    case 7:
      answer.neighbours = nullptr;
      break;
    case 8:
      // Another object that says the same, or what was true in the beginning.
      if (answer.neighbours != nullptr && random.Below(2) == 0) {
        See(name, *answer.neighbours);
      } else {
        See(name, leaf < kLeaves ? SeenBy(leaf) : SeenFromAbove());
      }
      break;
    case 9:
      answer.read_at = now - seconds(random.Below(400));
      answer.saw_at = now - seconds(random.Below(400));
      break;
    default:
      answer.counting.ports = int(port);
      if (random.Below(2) == 0) {
        answer.trouble.reset();
      } else {
        answer.trouble = SwitchTrouble{"Unreachable", "nobody listens"};
      }
  }
}

void KeptVerdictsTest::ChangeRest(base::Random& random) {
  const auto toggle = [&random](std::set<std::string>& names, const std::string& name) {
    if (random.Below(2) == 0 || names.erase(name) == 0) names.insert(name);
  };
  crds::LosslessPolicySpec& spec = policies.read[0].spec;
  switch (random.Below(7)) {
    case 0:
      toggle(silent.nodes, NodeName(random.Below(kNodes)));
      break;
    case 1:
      toggle(silent.switches, LeafName(random.Below(kLeaves)));
      break;
    case 2:
      toggle(silent.unread, "leaf-none");
      break;
    case 3:
      spec.counted = spec.counted == crds::CountedCables::kLosslessOnly ? crds::CountedCables::kPreferLossless
                                                                        : crds::CountedCables::kLosslessOnly;
      break;
    case 4:
      spec.policy.marking = lossless::EcnMarking{150'000, 1'500'000, int(1 + random.Below(100))};
      break;
    case 5:
      // Some nodes come to have it.
      if (policies.unreadable.erase("other") == 0) policies.unreadable["other"];
      break;
    default:
      now += seconds(random.Below(60));
  }
}

TEST_F(KeptVerdictsTest, InTheBeginningEveryCableIsLosslessAndThoseToTheSpineAreFound) {
  const SwitchVerdicts verdicts = Kept();
  for (const auto& [name, verdict] : verdicts.nodes)
    EXPECT_EQ(verdict->counts, (crds::CableCounts{kRails, kRails, 0, 0})) << name << verdict->worst;
  EXPECT_EQ(verdicts.between.size(), std::size_t(kLeaves));
}

TEST_F(KeptVerdictsTest, WhateverChangesBetweenLooksWhatIsKeptSaysWhatAWholeLookSays) {
  const auto first_switches = fabric_switches;
  const auto first_answers = answers;
  const auto first_nodes = nodes;
  const auto first_policies = policies;
  const base::WallTime first_now = now;
  for (const std::uint64_t seed : test::Seeds(20)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    fabric_switches = first_switches;
    answers = first_answers;
    nodes = first_nodes;
    policies = first_policies;
    silent = {};
    now = first_now;
    kept = {};
    for (int look = 0; look < 120; ++look) {
      SCOPED_TRACE("look " + std::to_string(look));
      // Mostly one thing changes, and now and then nothing or much at once.
      for (std::uint64_t changes = random.Below(4); changes > 0; --changes) {
        const std::uint64_t what = random.Below(20);
        if (what < 9) {
          ChangeNode(random);
        } else if (what < 16) {
          ChangeAnswer(random);
        } else if (what == 16) {
          ChangeNodes(random);
        } else if (what == 17) {
          ChangeSwitch(random);
        } else {
          ChangeRest(random);
        }
      }
      const SwitchVerdicts whole = Whole();
      ExpectSame(Kept(), whole);
      if (HasFatalFailure() || HasNonfatalFailure()) return;
      if (random.Below(2) == 0) WriteDown(whole);
    }
  }
}

TEST_F(KeptVerdictsTest, OnlyNodesWithAChangedEndAreJudgedAgain) {
  const SwitchVerdicts before = Kept();
  SetNode(nodes[2], [](crds::NodeTopology& object) { object.status.lossless[0].have->mtu = 9216 + 1000; });
  const SwitchVerdicts one = Kept();
  for (const CabledNode& node : nodes) {
    const bool same = one.nodes.at(node.name) == before.nodes.at(node.name);
    EXPECT_EQ(same, node.name != nodes[2].name) << node.name;
  }
  EXPECT_EQ(one.nodes.at(nodes[2].name)->counts.contradicting, kRails);
  // Of a switch that changes and says of every port what it said before nobody is judged otherwise.
  SetConfig(LeafName(0), [](formats::SonicConfig&) {});
  EXPECT_EQ(Kept().nodes, one.nodes);
  SetConfig(LeafName(0), [](formats::SonicConfig& config) { config.ports[4].settings.mtu = 1500; });
  const SwitchVerdicts other = Kept();
  for (const CabledNode& node : nodes) {
    const bool same = other.nodes.at(node.name) == one.nodes.at(node.name);
    EXPECT_EQ(same, node.name != nodes[4].name) << node.name;
  }
  EXPECT_EQ(other.nodes.at(nodes[4].name)->counts.contradicting, 1);
}

TEST_F(KeptVerdictsTest, ADoubtThatAnotherNodeBringsAndTakesAwayComesAndGoes) {
  const auto verdict = [this] { return Kept().nodes.at(nodes[0].name)->rails.at(0); };
  EXPECT_EQ(verdict(), LosslessVerdict::kLossless);
  // The second says that it ends where the first does.
  SetNode(nodes[1], [](crds::NodeTopology& object) {
    object.status.node.nics[0].ports[0].leaf_port = topology::LeafPort{LeafName(0), "etp1"};
  });
  EXPECT_EQ(verdict(), LosslessVerdict::kUnproved);
  // Something else changes: the doubt stands.
  SetNode(nodes[3], [](crds::NodeTopology& object) { object.status.lossless[0].have->mtu = 1500; });
  EXPECT_EQ(verdict(), LosslessVerdict::kUnproved);
  SetNode(nodes[1], [](crds::NodeTopology& object) {
    object.status.node.nics[0].ports[0].leaf_port = topology::LeafPort{LeafName(0), "etp2"};
  });
  EXPECT_EQ(verdict(), LosslessVerdict::kLossless);
}

}  // namespace
}  // namespace heddle::operators
