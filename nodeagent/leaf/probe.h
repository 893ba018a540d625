#pragma once

#include <chrono>
#include <compare>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_tree.h"
#include "crds/place_labels.h"
#include "formats/ib_neighbours.h"
#include "nodeagent/nic/rdma_probe.h"
#include "topology/node.h"

namespace heddle::nodeagent {

using LeafFact = topology::Fact<topology::LeafPort>;

// Where cables end, as one or several sources said.
struct LeafReadings {
  std::map<std::pair<std::string, int>, LeafFact> by_port;  // RDMA device and port: InfiniBand
  std::map<std::string, LeafFact, std::less<>> by_netdev;   // interface: LLDP
  crds::PlaceLabels labels;                                 // of the Node, where a recording has them
  std::vector<std::string> problems;
  // Names that several switches have, as sentences: a leaf of such a name is ambiguous.
  std::vector<std::string> shared_names;

  // How long LLDP lets an interface's neighbours count as proof; shortest where there are several.
  std::map<std::string, std::chrono::seconds, std::less<>> proof;
  bool lldp_unanswered = false;                      // lldpd could not be asked: no neighbour is no news
  std::set<std::pair<std::string, int>> unanswered;  // ports that are up and whose other end did not answer
  std::map<std::string, std::string> files;          // what a recording keeps of this: "lldp.json", "ib.txt"

  void Merge(LeafReadings other);
};

// lldpd's json0, wherever it is from; `from` names that in problems. Text that is none: lldp_unanswered.
LeafReadings LeavesOfLldp(std::string_view json0, std::string_view from);
// Directed-route answers, wherever they are from.
LeafReadings LeavesOfIb(const formats::IbNeighbours& neighbours);

// Whoever knows which switch is at the other end.
// Thread rule: one thread.
class LeafSource {
 public:
  LeafSource() = default;
  LeafSource(const LeafSource&) = delete;
  LeafSource& operator=(const LeafSource&) = delete;
  virtual ~LeafSource() = default;
  // `rdma`: the devices of this look, without those that are left out.
  virtual LeafReadings Read(const RdmaReadings& rdma) = 0;
};

// ib.txt: directed-route answers, one port a line. Absent = nobody looked.
class IbFileLeaves final : public LeafSource {
 public:
  explicit IbFileLeaves(const base::FileTree& files) : files_(files) {}
  LeafReadings Read(const RdmaReadings& rdma) override;

 private:
  const base::FileTree& files_;
};

// In place of lldp.json: the sentence that says why lldpd could not be asked when the machine was recorded.
inline constexpr const char* kLldpUnanswered = "lldp-unanswered.txt";

// lldp.json: lldpd's json0; else kLldpUnanswered.
class LldpFileLeaves final : public LeafSource {
 public:
  explicit LldpFileLeaves(const base::FileTree& files) : files_(files) {}
  LeafReadings Read(const RdmaReadings& rdma) override;

 private:
  const base::FileTree& files_;
};

// `key=value` lines, as the cloud labels its nodes; there the network answers no other question. Lines that begin with
// # and those without a = are passed over.
LeafReadings LeavesOfLabels(std::string_view text);

// labels.txt of a recorded machine. A live agent finds them in the spec of its NodeTopology, and in a GivenLabels.
class LabelFileLeaves final : public LeafSource {
 public:
  explicit LabelFileLeaves(const base::FileTree& files) : files_(files) {}
  LeafReadings Read(const RdmaReadings& rdma) override;

 private:
  const base::FileTree& files_;
};

// The same in a file that somebody keeps on this machine, at an absolute path: that it is missing, or names no place,
// is a problem. It is read past the machine's FileTree, so that a recording has it as labels.txt only, where scrubbing
// looks for it.
class GivenLabels final : public LeafSource {
 public:
  explicit GivenLabels(std::string path) : path_(std::move(path)) {}
  LeafReadings Read(const RdmaReadings& rdma) override;

 private:
  const base::DiskFileTree root_{"/"};
  const std::string path_;
};

// The files of a recorded machine.
std::vector<std::unique_ptr<LeafSource>> RecordedLeaves(const base::FileTree& files);

}  // namespace heddle::nodeagent
