#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topology/node.h"

namespace heddle::topology {

// The fabric of one transport and site, assembled from its nodes and from what people declared.
// It is not a tree of hosts: a host hangs on one leaf per (rail, plane). Leaves, spines and cores form the
// tiers.

using NodeId = std::int32_t;    // dense, by sorted node name
using LeafId = std::int32_t;    // dense, by sorted leaf name
using UnitId = std::int32_t;    // scalable unit: hosts that share one set of leaves
using DomainId = std::int32_t;  // NVLink domain
inline constexpr std::int32_t kNone = -1;

// What people know and no agent can see; from Fabric.spec.
struct SwitchDeclaration {
  std::string name;                  // a leaf, spine, or core
  std::vector<std::string> uplinks;  // names of the switches above
  int uplink_gbps = 0;               // all uplinks together; 0 = not said
  int rail = kNone;                  // the rail that ends on this leaf; kNone = not said
  friend bool operator==(const SwitchDeclaration&, const SwitchDeclaration&) = default;
};
enum class Shape : std::uint8_t { kFatTree, kRailOptimised, kRailOnly, kDragonfly, kTorus3d, kToR };
std::string_view ShapeName(
    Shape shape);  // "FatTree", "RailOptimised", "RailOnly", "Dragonfly", "Torus3D", "ToR"
std::optional<Shape> ParseShape(std::string_view name);

struct TorusPosition {
  std::string node;
  int x = 0, y = 0, z = 0;
  friend bool operator==(const TorusPosition&, const TorusPosition&) = default;
};
struct DragonflyGroup {
  std::string name;
  std::vector<std::string> leaves;
  friend bool operator==(const DragonflyGroup&, const DragonflyGroup&) = default;
};
struct Declaration {
  std::optional<Shape> shape;  // else found from the leaves
  int rails = 0;               // 0 = measured
  std::vector<SwitchDeclaration> switches;
  // Downlink : uplink bandwidth in hundredths for switches of any tier that say nothing (100 = 1:1, 200 = 2:1);
  // 0 = not said = 1:1.
  int oversubscription_percent = 0;
  std::vector<std::string> excluded_nodes;
  // Names of leaves that say which rail ends there, as patterns: "su{unit}-r{rail}" (see declared_leaves.h).
  std::vector<std::string> leaf_names;
  int first_rail = 0;  // what {rail} calls the first rail
  std::vector<DragonflyGroup> groups;
  std::vector<TorusPosition> torus;
  std::array<int, 3> torus_size{0, 0, 0};
  friend bool operator==(const Declaration&, const Declaration&) = default;
};

struct Leaf {
  std::string name;
  // Of the NICs that belong on it. kNotApplicable where every rail of its hosts ends on it (a plain ToR),
  // kAmbiguous where some do (one leaf for two rails is a design, not by itself a fault).
  Fact<int> rail;
  int plane = 0;
  UnitId unit = kNone;
  std::vector<std::int32_t> spines;  // indexes into Fabric::spines, sorted
  int down_gbps = 0;                 // of the host ports seen
  int up_gbps = 0;                   // towards the spines; 0 = no way up (rail-only)
  int group = kNone;                 // dragonfly: index into Declaration::groups
  friend bool operator==(const Leaf&, const Leaf&) = default;
};

struct Spine {
  std::string name;
  int tier = 2;                       // leaf = 1
  std::vector<std::int32_t> uplinks;  // spines of the next tier
  // Of what is below: an even share of each switch's way up. Leaves count by the host ports seen on them.
  int down_gbps = 0;
  // Towards `uplinks`, all together: as declared, else down_gbps over the declaration's percent; 0 = nothing
  // is above.
  int up_gbps = 0;
  friend bool operator==(const Spine&, const Spine&) = default;
};

struct Unit {
  std::string name;            // "su-0"; numbered by the smallest node name in it
  std::vector<LeafId> leaves;  // sorted
  std::vector<NodeId> nodes;   // sorted
  friend bool operator==(const Unit&, const Unit&) = default;
};

struct NvlinkDomain {
  std::string id;
  std::vector<NodeId> nodes;  // sorted
  int gpus = 0;
  bool spans_nodes = false;
  friend bool operator==(const NvlinkDomain&, const NvlinkDomain&) = default;
};

// A place where what was measured contradicts itself or what people declared. Both ends are named.
struct CablingFault {
  std::string node, nic;
  int port = 1;
  LeafPort seen;
  std::string expected_leaf;  // empty = no expectation
  // "gpu-017 mlx5_3 is cabled to su1-r4 port 18; its unit's rail 3 is su1-r3: swapped with gpu-017 mlx5_4 on
  // su1-r3 port 18"
  std::string sentence;
  // Something differs, and nobody can tell which of the two is wrong, or whether either is: no alarm, but a
  // question. Two hosts are no majority.
  bool ambiguous = false;
  friend bool operator==(const CablingFault&, const CablingFault&) = default;
};

// The way of one GPU into the fabric, resolved for placement. A GPU may own several NICs (4 EFA on p5) or a
// share of one; `gbps` is what it may count on over all of them, and is the only sign of a usable way: a GPU
// whose NICs are down keeps its rail with 0 Gb/s, and one whose NIC has no known rail or leaf may well have
// bandwidth.
struct GpuUplink {
  std::int16_t rail = kNone;  // of its first NIC; kNone = no NIC, or its rail is not known
  // The first usable port's leaf; kNone = nothing usable, or its leaf is not known. Of a NIC with ports on several
  // planes that of the lowest, whichever of them are up: the planes mirror each other.
  LeafId leaf = kNone;
  std::int32_t gbps = 0;  // usable bandwidth: whole NICs, or this GPU's share of a NIC that several use
  PciDistance distance = PciDistance::kSys;
  friend bool operator==(const GpuUplink&, const GpuUplink&) = default;
};

struct FabricNode {
  Node node;
  UnitId unit = kNone;
  DomainId domain = kNone;
  std::vector<GpuUplink> uplinks;                 // one per GPU of the node, by position in node.gpus
  std::array<int, 3> torus{kNone, kNone, kNone};  // x, y, z where the declaration says so
  friend bool operator==(const FabricNode&, const FabricNode&) = default;
};

// Immutable once built; share it by shared_ptr<const Fabric>.
struct Fabric {
  Transport transport = Transport::kEthernet;
  std::string site;
  Shape shape = Shape::kToR;
  int rails = 0;
  std::vector<FabricNode> nodes;  // sorted by name; NodeId indexes it
  std::vector<Leaf> leaves;
  std::vector<Spine> spines;
  std::vector<Unit> units;
  std::vector<NvlinkDomain> domains;  // sorted by id
  std::vector<CablingFault> faults;   // worst first
  // What nobody said and the fabric takes for granted, as sentences: "no switch is declared: ...".
  std::vector<std::string> assumptions;
  Declaration declaration;
  friend bool operator==(const Fabric&, const Fabric&) = default;

  NodeId FindNode(std::string_view name) const;  // kNone if absent
  LeafId FindLeaf(std::string_view name) const;
  int gpu_count() const;
  // Switch hops between two leaves: 0 = the same leaf, 2 = over one spine, 4 = over a core, kNone = no way.
  // In a dragonfly 2 = the same group and 4 = another group, so that the numbers compare. Where no switch
  // above a leaf is known and the fabric is not rail-only, the answer is an assumption, and `assumptions`
  // says so.
  int Hops(LeafId a, LeafId b) const;
  // Links between two nodes of a 3D torus, around the ends where that is shorter; kNone where a position is
  // missing.
  int TorusHops(NodeId a, NodeId b) const;
};

// Pure and total: whatever the nodes say, there is a fabric, and what does not fit is a fault in it.
// `nodes` may come in any order; the result depends only on their contents. Excluded nodes are not in it.
Fabric BuildFabric(std::vector<Node> nodes, const Declaration& declaration);

// One fabric per site and transport, sorted by site, then transport. A node belongs to the transport of most
// of its compute NICs; one without any joins its site's largest fabric, and where it has GPUs and the site
// several fabrics, `assumptions` says so. A site that nobody declared has no declaration.
std::vector<Fabric> BuildFabrics(std::vector<Node> nodes, const std::map<std::string, Declaration>& by_site);
// The same where each fabric has its own; null = nobody declared that one.
using DeclarationOf = std::function<const Declaration*(Transport transport, const std::string& site)>;
std::vector<Fabric> BuildDeclaredFabrics(std::vector<Node> nodes, const DeclarationOf& declaration_of);

// Broken invariants of a built fabric (for tests and debug builds); empty = sound.
std::vector<std::string> Check(const Fabric& fabric);

// What changed, as sentences.
std::vector<std::string> Diff(const Fabric& before, const Fabric& after);

}  // namespace heddle::topology
