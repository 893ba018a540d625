#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "base/random.h"
#include "placement/cluster_state.h"
#include "placement/gang.h"
#include "topology/fabric.h"

namespace heddle::peers {

// The clusters on which placements are compared, from a seed. Nodes have 8 GPUs, one NIC of 400 Gb/s a GPU,
// rail-optimised leaves.
struct ClusterShape {
  int nodes = 4000;                    // about: unequal units end where the last unit ends
  int unit = 16;                       // nodes of a full scalable unit
  int oversubscription_percent = 100;  // above the leaves
  int units_per_spine_group = 16;      // that share spines; groups meet over a core
  bool nvl72 = false;                  // nodes are trays of 4 GPUs, a unit is one rack and one NVLink domain
};
// Units are uneven: a third are full, the others lack one node up to a quarter of them, by lot.
std::shared_ptr<const topology::Fabric> MakeFabric(const ClusterShape& shape, std::uint64_t seed);

// The GPUs of one job. 1 to 1,024 in powers of two; the mean is 15.0. The marginals lie between those of Acme's
// two clusters (Seren: mean 5.7, Kalos: mean 26.8, both up to 1,024; Alibaba's 2023 pods are mostly 1 GPU):
// anchors section 6. 62 % of the jobs take less than a node; 94 % of the GPUs belong to the others.
int DrawJobSize(base::Random& random);
double MeanJobSize();

// tp within a node, pp and dp beyond: what a job of so many GPUs, a power of two, asks for. `gpus_per_pod`
// is a power of two up to 8; jobs of less are one pod. tp is 8, or the job.
placement::GangRequest RequestOf(int gpus, int gpus_per_pod = 8);

// How a scheduler that knows no topology chooses between equally full nodes.
enum class Ties : std::uint8_t { kByName, kByLot };

// A cluster that fills with jobs, which come and go, all placed by best fit. So no compared policy shaped what
// is left. kByLot, as kube-scheduler does, scatters the free nodes over all units; kByName keeps them together.
class Churn {
 public:
  Churn(const topology::Fabric& fabric, Ties ties, std::uint64_t seed);

  // Jobs arrive until `percent` of the GPUs are held; then random ones leave and others come, until as many GPUs
  // as the cluster has were given out again; then up to `percent` once more. May be called again with a
  // larger percentage, which keeps what runs.
  void RunAt(int percent);

  std::vector<placement::NodeState> nodes() const;
  int held_percent() const;

 private:
  struct Part {
    topology::NodeId node;
    std::uint32_t gpus;
  };
  bool Arrive();
  void LeaveOne();
  topology::NodeId TightestNode(int gpus);
  void Set(topology::NodeId node, std::uint32_t free);

  Ties ties_;
  base::Random random_;
  int node_gpus_ = 0;
  std::vector<std::uint32_t> free_;
  // Nodes by free GPUs, each in a drawn or the natural order: (rank, node).
  std::array<std::set<std::pair<std::uint64_t, topology::NodeId>>, 33> by_free_;
  std::vector<std::uint64_t> rank_;
  std::vector<std::vector<Part>> jobs_;
  std::int64_t held_ = 0, all_ = 0, given_ = 0;
};

// A gang that came to a cluster at one tick and left at another, whoever placed it.
struct Visit {
  int gpus = 0;
  int leaves_at = 0;  // tick; the index of a visit in the list is when it comes
};
// One job a tick, with exponential lifetimes such that `percent` of `gpus` would be held in the long run if
// none was refused. `ticks`: how many come.
std::vector<Visit> DrawVisits(int gpus, int percent, int ticks, std::uint64_t seed);

// What a node of this cluster has beside its GPUs: enough that only GPUs decide.
placement::NodeState RoomyNode(std::uint32_t free_gpus);

}  // namespace heddle::peers
