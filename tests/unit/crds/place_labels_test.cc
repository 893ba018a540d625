#include "crds/place_labels.h"

#include <gmock/gmock.h>

#include "tests/support/builders.h"

namespace heddle::crds {
namespace {

using testing::ElementsAre;
using testing::Pair;
using topology::LeafPort;
using topology::Missing;
using topology::Node;
using topology::Transport;

constexpr const char* kAws = "topology.k8s.aws/network-node-layer-3";
constexpr const char* kOci = "oci.oraclecloud.com/rdma.local_block_id";

Node Host(Transport transport) {
  Node node = test::NodeNamed("n").Gpus(2).Rail(0, "").Rail(1, "").Storage("");
  for (topology::Nic& nic : node.nics) {
    nic.transport = transport;
    nic.ports[0].leaf_port = Missing::kUnknown;
  }
  return node;
}

const topology::Fact<LeafPort>& LeafOf(const Node& node, std::size_t nic) {
  return node.nics[nic].ports[0].leaf_port;
}

TEST(PlaceLabels, KeepOnlyThoseThatSayWhereANodeHangs) {
  EXPECT_THAT(PlaceLabelsOf({{kAws, "nn-1"},
                             {"topology.k8s.aws/network-node-layer-1", "nn-9"},
                             {"kubernetes.io/hostname", "n"},
                             {kOci, "no-imds-data"},
                             {"cloud.google.com/gce-topology-subblock", ""}}),
              ElementsAre(Pair(kAws, "nn-1")));
}

TEST(PlaceLabels, NameTheLayerNextToAnEfaHost) {
  Node node = Host(Transport::kEfa);
  FillLeaves(node, {{kAws, "nn-3"}, {"topology.k8s.aws/network-node-layer-4", "nn-4"}});
  EXPECT_EQ(LeafOf(node, 0), (LeafPort{"nn-4", ""}));
  EXPECT_EQ(LeafOf(node, 2), (LeafPort{"nn-4", ""})) << "all of EFA is one network";
  node = Host(Transport::kEfa);
  FillLeaves(node, {{kAws, "nn-3"}});
  EXPECT_EQ(LeafOf(node, 1), (LeafPort{"nn-3", ""}));
}

TEST(PlaceLabels, NameTheBlockOfARoceHostWhereNothingElseTells) {
  Node node = Host(Transport::kRoce);
  node.nics[1].ports[0].leaf_port = LeafPort{"tor-1", "swp1"};
  FillLeaves(node, {{kOci, "xvl2gga"}});
  EXPECT_EQ(LeafOf(node, 0), (LeafPort{"xvl2gga", ""}));
  EXPECT_EQ(LeafOf(node, 1), (LeafPort{"tor-1", "swp1"})) << "what was measured stays";
  EXPECT_EQ(LeafOf(node, 2).missing(), Missing::kUnknown) << "storage may hang elsewhere";
  for (const Missing missing : {Missing::kStale, Missing::kAmbiguous, Missing::kNotApplicable}) {
    node.nics[0].ports[0].leaf_port = missing;
    FillLeaves(node, {{kOci, "xvl2gga"}});
    EXPECT_EQ(LeafOf(node, 0).missing(), missing);
  }
}

TEST(PlaceLabels, SayNothingOfAnotherNetworkThanTheirOwn) {
  Node node = Host(Transport::kInfiniBand);
  const Node before = node;
  FillLeaves(node, {{kAws, "nn-3"},
                    {kOci, "xvl2gga"},
                    {"network.topology.nvidia.com/leaf", "one-of-eight"},
                    {"fabric.topograph.run/tier-0", "one-of-eight"}});
  EXPECT_EQ(node, before);
  node = Host(Transport::kEfa);
  FillLeaves(node, {{kOci, "xvl2gga"}});
  EXPECT_EQ(LeafOf(node, 0).missing(), Missing::kUnknown);
}

}  // namespace
}  // namespace heddle::crds
