#pragma once

#include <compare>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_tree.h"
#include "topology/node.h"

namespace heddle::nodeagent {

using LeafFact = topology::Fact<topology::LeafPort>;

// Where cables end, as one or several sources said.
struct LeafReadings {
  std::map<std::pair<std::string, int>, LeafFact> by_port;  // RDMA device and port: InfiniBand
  std::map<std::string, LeafFact, std::less<>> by_netdev;   // interface: LLDP
  LeafFact of_efa;                                          // the cloud's name for what all EFA ports hang on
  std::vector<std::string> problems;

  void Merge(LeafReadings other);
};

// Whoever knows which switch is at the other end.
// Thread rule: one thread.
class LeafSource {
 public:
  LeafSource() = default;
  LeafSource(const LeafSource&) = delete;
  LeafSource& operator=(const LeafSource&) = delete;
  virtual ~LeafSource() = default;
  virtual LeafReadings Read() = 0;
};

// ib.txt: directed-route answers, one port a line. Absent = nobody looked.
class IbFileLeaves final : public LeafSource {
 public:
  explicit IbFileLeaves(const base::FileTree& files) : files_(files) {}
  LeafReadings Read() override;

 private:
  const base::FileTree& files_;
};

// lldp.json: lldpd's json0.
class LldpFileLeaves final : public LeafSource {
 public:
  explicit LldpFileLeaves(const base::FileTree& files) : files_(files) {}
  LeafReadings Read() override;

 private:
  const base::FileTree& files_;
};

// labels.txt: `key=value` lines, as the cloud labels its nodes; there the network answers no other question.
// The layer nearest to the host names the leaf: topology.k8s.aws/network-node-layer-4, else -3.
class LabelFileLeaves final : public LeafSource {
 public:
  explicit LabelFileLeaves(const base::FileTree& files) : files_(files) {}
  LeafReadings Read() override;

 private:
  const base::FileTree& files_;
};

// The three files of a recorded machine.
std::vector<std::unique_ptr<LeafSource>> RecordedLeaves(const base::FileTree& files);

}  // namespace heddle::nodeagent
