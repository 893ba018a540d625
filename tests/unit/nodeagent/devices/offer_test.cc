#include "nodeagent/devices/offer.h"

#include <gmock/gmock.h>

#include "recorded_machine.h"

namespace heddle::nodeagent {
namespace {

using crds::DeviceMode;
using crds::DeviceState;
using crds::DeviceWish;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;
using testing::SizeIs;

const topology::Node& Machine() {
  static const topology::Node node = test::RecordedMachine("hgx-h100").Look().node;
  return node;
}

std::vector<std::string> ComputePorts(const topology::Node& node) {
  std::vector<std::string> ports;
  for (const topology::Nic& nic : node.nics) {
    if (nic.role == topology::NicRole::kCompute) ports.push_back(nic.name + ":1");
  }
  return ports;
}

DeviceFacts Facts(const topology::Node& node) {
  DeviceFacts facts;
  for (const topology::Nic& nic : node.nics)
    facts.verbs[nic.name] = "uverbs" + nic.name.substr(nic.name.size() - 1);
  facts.rdma_cm = true;
  facts.nccl.folder = "/var/lib/heddle/nccl";
  return facts;
}

DeviceWish Wish(DeviceMode mode) {
  DeviceWish wish;
  wish.resource = "heddle.dev/gpu";
  wish.policies = {"all"};
  wish.mode = mode;
  wish.ports = ComputePorts(Machine());
  return wish;
}

Offer OfferOf(const DeviceWish& wish, const DeviceFacts& facts, const topology::Node& node = Machine()) {
  return OffersOf({wish}, node, facts).at(1);
}

TEST(Offers, FabricIsThereForEveryPodAndHasTheFolder) {
  const auto offers = OffersOf({}, Machine(), Facts(Machine()));
  ASSERT_THAT(offers, SizeIs(1));
  EXPECT_EQ(offers[0].resource, "heddle.dev/fabric");
  ASSERT_THAT(offers[0].devices, SizeIs(1));
  const auto ids = IdsOf(offers[0], offers[0].devices[0]);
  ASSERT_THAT(ids, SizeIs(250));
  const auto gift = Allocate(offers[0], {ids[17]});
  ASSERT_TRUE(gift);
  EXPECT_EQ(gift->folders.at("/etc/heddle/nccl"), "/var/lib/heddle/nccl");
  EXPECT_EQ(gift->variables.at("NCCL_CONF_FILE"), "/etc/heddle/nccl/nccl.conf");
  EXPECT_FALSE(gift->variables.contains("FI_PROVIDER"));
  EXPECT_THAT(gift->devices, IsEmpty());
}

TEST(Offers, FabricWaitsForItsFilesAndMayGoOverEtc) {
  DeviceFacts facts = Facts(Machine());
  facts.nccl.folder.clear();
  EXPECT_FALSE(OffersOf({}, Machine(), facts)[0].offered());
  facts.nccl = {"/var/lib/heddle/nccl", true, true};
  const auto gift = Allocate(OffersOf({}, Machine(), facts)[0], {"fabric::0"});
  ASSERT_TRUE(gift);
  EXPECT_EQ(gift->folders.at("/etc/nccl.conf"), "/var/lib/heddle/nccl/nccl.conf");
  EXPECT_THAT(gift->variables, ElementsAre(std::pair<const std::string, std::string>("FI_PROVIDER", "efa")));
}

TEST(Offers, AWholeNodeIsAllNicsWithoutUmad) {
  const Offer offer = OfferOf(Wish(DeviceMode::kWholeNode), Facts(Machine()));
  ASSERT_THAT(offer.devices, SizeIs(1));
  EXPECT_EQ(offer.devices[0].trouble, "");
  EXPECT_EQ(offer.devices[0].nics.size(), ComputePorts(Machine()).size());
  const auto gift = Allocate(offer, {"node"});
  ASSERT_TRUE(gift);
  EXPECT_THAT(gift->devices, testing::Contains(Key("/dev/infiniband/rdma_cm")));
  EXPECT_EQ(gift->devices.size(), ComputePorts(Machine()).size() + 1);
  for (const auto& [inside, outside] : gift->devices) EXPECT_THAT(inside, testing::Not(HasSubstr("umad")));
}

TEST(Offers, AWholeNodeIsKeptBackWhileOneRailIs) {
  DeviceFacts facts = Facts(Machine());
  const std::string port = ComputePorts(Machine())[2];
  facts.withdrawn[port] = "its QoS is being set";
  EXPECT_EQ(OfferOf(Wish(DeviceMode::kWholeNode), facts).devices[0].trouble, "its QoS is being set");
}

TEST(Offers, PairsAreAGpuWithTheNicOfItsSwitchAndRail) {
  const Offer offer = OfferOf(Wish(DeviceMode::kPairs), Facts(Machine()));
  ASSERT_THAT(offer.devices, SizeIs(8));
  for (int index = 0; index < 8; ++index) {
    const OfferedDevice& pair = offer.devices[std::size_t(index)];
    EXPECT_EQ(pair.trouble, "");
    EXPECT_EQ(pair.id, Machine().gpus[std::size_t(index)].uuid);
    ASSERT_THAT(pair.nics, SizeIs(1));
    EXPECT_EQ(Machine().FindNic(pair.nics[0])->rail.value_or(-1), index);
    EXPECT_EQ(pair.numa, Machine().gpus[std::size_t(index)].numa.value_or(-1));
  }
  const auto gift = Allocate(offer, {offer.devices[0].id, offer.devices[1].id});
  ASSERT_TRUE(gift);
  EXPECT_THAT(gift->cdi, SizeIs(2));
  EXPECT_EQ(gift->cdi[0].find("nvidia.com/gpu=GPU-"), 0U);
  EXPECT_THAT(gift->devices, SizeIs(3));  // two NICs and rdma_cm
}

TEST(Offers, PairsAreRefusedBesideTheVendorsPlugin) {
  DeviceFacts facts = Facts(Machine());
  facts.allocatable = {{"nvidia.com/gpu", false, {Machine().gpus[3].uuid}}};
  const Offer offer = OfferOf(Wish(DeviceMode::kPairs), facts);
  EXPECT_EQ(offer.state, DeviceState::kRefused);
  EXPECT_EQ(offer.reason,
            "nvidia.com/gpu offers GPU 3 on this node as well, and a GPU must not be given out twice: switch "
            "its device "
            "plugin off here");
  facts.allocatable = {{"heddle.dev/old", false, {Machine().gpus[3].uuid}}};
  EXPECT_FALSE(OfferOf(Wish(DeviceMode::kPairs), facts).offered());
  facts.ours = {"heddle.dev/old"};
  EXPECT_TRUE(OfferOf(Wish(DeviceMode::kPairs), facts).offered());
  facts.allocatable = {{"heddle.dev/gpu", false, {Machine().gpus[3].uuid}}};
  EXPECT_TRUE(OfferOf(Wish(DeviceMode::kPairs), facts).offered());
}

TEST(Offers, PairsAreRefusedUntilTwoAnswersOfTheKubeletLackTheVendorsPlugin) {
  DeviceFacts facts = Facts(Machine());
  facts.allocatable_before = {{"nvidia.com/gpu", false, {Machine().gpus[3].uuid}}};
  facts.allocatable.emplace();
  EXPECT_THAT(OfferOf(Wish(DeviceMode::kPairs), facts).reason, HasSubstr("nvidia.com/gpu offers GPU 3"));
  facts.allocatable_before.emplace();
  EXPECT_TRUE(OfferOf(Wish(DeviceMode::kPairs), facts).offered());
}

TEST(Offers, PairsAreRefusedBesideAPluginThatNamesGpusByTheirDeviceFiles) {
  DeviceFacts facts = Facts(Machine());
  facts.allocatable = {{"nvidia.com/gpu", false, {"nvidia5"}}};
  EXPECT_TRUE(OfferOf(Wish(DeviceMode::kPairs), facts).offered()) << "it may be no GPU of this node";
  facts.functions[{"nvidia.com/gpu", "nvidia5"}] = Machine().gpus[3].pci;
  EXPECT_THAT(OfferOf(Wish(DeviceMode::kPairs), facts).reason, HasSubstr("nvidia.com/gpu offers GPU 3"));
  facts.allocatable = {{"nvidia.com/gpu", false, {"nvidia5/gi1"}}};
  facts.functions[{"nvidia.com/gpu", "nvidia5/gi1"}] = Machine().gpus[3].pci;
  topology::Node node = Machine();
  node.gpus[3].mig = true;
  EXPECT_TRUE(OfferOf(Wish(DeviceMode::kPairs), facts, node).offered()) << "none of ours is of that GPU";
}

TEST(Offers, PairsNeedGpusThatCdiHasNamesFor) {
  topology::Node node = Machine();
  node.gpus[2].uuid = "";
  EXPECT_THAT(OfferOf(Wish(DeviceMode::kPairs), Facts(node), node).reason, HasSubstr("GPU 2 has no UUID"));
  node.gpus.clear();
  EXPECT_THAT(OfferOf(Wish(DeviceMode::kPairs), Facts(node), node).reason, HasSubstr("no GPU"));
  node = Machine();
  node.gpus[1].healthy = false;
  node.gpus[1].unhealthy_reason = "XID 79";
  node.gpus[4].mig = true;
  const Offer offer = OfferOf(Wish(DeviceMode::kPairs), Facts(node), node);
  EXPECT_EQ(offer.devices[1].trouble, "GPU 1: XID 79");
  EXPECT_EQ(offer.devices[4].trouble, "GPU 4 is cut into MIG instances");
}

TEST(Offers, APairSaysThatItsNicIsBorrowed) {
  topology::Node node = Machine();
  node.gpus[3].nic_gone = topology::LostNic{3, ""};
  const DeviceWish wish = Wish(DeviceMode::kPairs);
  EXPECT_EQ(OfferOf(wish, Facts(node), node).note, "") << "another one of its rail is left";
  std::erase_if(node.nics, [](const topology::Nic& nic) {
    return nic.role == topology::NicRole::kCompute && nic.rail.value_or(-1) == 3;
  });
  const Offer offer = OfferOf(wish, Facts(node), node);
  ASSERT_THAT(offer.devices, SizeIs(8));
  const crds::DeviceReport report = ReportOf(offer, DeviceState::kOffered, "");
  EXPECT_EQ(report.healthy, 8);
  EXPECT_THAT(report.reason, HasSubstr("GPU 3 lost its NIC on rail 3, and is offered with mlx5_"));
}

TEST(Offers, ANicIsUnhealthyWhileItIsDownGoneOrWithdrawn) {
  DeviceFacts facts = Facts(Machine());
  topology::Node node = Machine();
  const auto ports = ComputePorts(node);
  const auto nic_of = [](const std::string& port) { return port.substr(0, port.find(':')); };
  for (topology::Nic& nic : node.nics) {
    if (nic.name == nic_of(ports[0])) nic.ports[0].state = topology::LinkState::kDown;
    if (nic.name == nic_of(ports[3])) nic.ports[0].state = topology::LinkState::kUnknown;
  }
  std::erase_if(node.nics, [&](const topology::Nic& nic) { return nic.name == nic_of(ports[1]); });
  facts.withdrawn[ports[2]] = "its QoS is being set";
  facts.verbs.erase(nic_of(ports[4]));
  const Offer offer = OfferOf(Wish(DeviceMode::kNics), facts, node);
  std::map<std::string, std::string> trouble;
  for (const OfferedDevice& device : offer.devices) trouble[device.id] = device.trouble;
  EXPECT_EQ(trouble.at(nic_of(ports[0])), nic_of(ports[0]) + " port 1 is down");
  EXPECT_EQ(trouble.at(nic_of(ports[1])), nic_of(ports[1]) + " is gone");
  EXPECT_EQ(trouble.at(nic_of(ports[2])), "its QoS is being set");
  EXPECT_EQ(trouble.at(nic_of(ports[3])), "") << "not known is no evidence";
  EXPECT_THAT(trouble.at(nic_of(ports[4])), HasSubstr("ib_uverbs"));
  const crds::DeviceReport report = ReportOf(offer, DeviceState::kOffered, "");
  EXPECT_EQ(report.total - report.healthy, 4);
  EXPECT_NE(report.reason, "");
}

TEST(Offers, ADeviceThatIsSharedHasAnIdForEachShare) {
  DeviceWish wish = Wish(DeviceMode::kNics);
  wish.slots = 4;
  const Offer offer = OfferOf(wish, Facts(Machine()));
  const std::string first = offer.devices[0].id;
  EXPECT_THAT(IdsOf(offer, offer.devices[0]),
              ElementsAre(first + "::0", first + "::1", first + "::2", first + "::3"));
  EXPECT_EQ(FindDevice(offer, first + "::3"), &offer.devices[0]);
  for (const std::string& id :
       {first, first + "::4", first + "::-1", first + "::x", std::string("::1"), first + "::"})
    EXPECT_EQ(FindDevice(offer, id), nullptr) << id;
}

TEST(Offers, OfAConflictNothingIsOffered) {
  DeviceWish conflict = Wish(DeviceMode::kNics), twice = Wish(DeviceMode::kNics), own = twice, told = twice,
             foreign = twice, other = twice;
  conflict.resource = "heddle.dev/a";
  conflict.policies = {"one", "two"};
  own.resource = "heddle.dev/fabric";
  told.resource = "heddle.dev/b";
  told.reason = "no NIC is selected";
  foreign.resource = "rdma/hca";
  foreign.plugin = crds::DevicePlugin::kRdmaShared;
  other.resource = "heddle.dev/c";
  const auto offers =
      OffersOf({conflict, twice, twice, own, told, foreign, other}, Machine(), Facts(Machine()));
  EXPECT_EQ(offers[1].reason, "one and two want it differently, so none of them applies");
  EXPECT_TRUE(offers[2].offered());
  EXPECT_EQ(offers[3].reason, "another entry of the spec has the same resource");
  EXPECT_THAT(offers[4].reason, HasSubstr("Heddle's own"));
  EXPECT_EQ(offers[5].reason, "no NIC is selected");
  EXPECT_EQ(offers[6].state, DeviceState::kElsewhere);
  EXPECT_THAT(offers[7].reason, HasSubstr("is a device of heddle.dev/gpu already"));
}

TEST(Offers, ANicIsNoDeviceOfTwoResourcesUnlessBothShareIt) {
  DeviceWish exclusive = Wish(DeviceMode::kNics), shared = exclusive, other = exclusive;
  exclusive.resource = "heddle.dev/whole";
  shared.resource = "heddle.dev/shared";
  other.resource = "heddle.dev/other";
  shared.slots = other.slots = 4;
  const auto first = OffersOf({exclusive, shared}, Machine(), Facts(Machine()));
  EXPECT_TRUE(first[1].offered());
  EXPECT_THAT(first[2].reason, HasSubstr("is a device of heddle.dev/whole already, and only one of them"));
  const auto last = OffersOf({shared, other, exclusive}, Machine(), Facts(Machine()));
  EXPECT_TRUE(last[1].offered());
  EXPECT_TRUE(last[2].offered()) << "both share it";
  EXPECT_THAT(last[3].reason, HasSubstr("is a device of heddle.dev/shared already, and only one of them"));
}

TEST(Offers, AnotherPluginsResourceIsPendingUntilTheKubeletListsIt) {
  DeviceWish wish = Wish(DeviceMode::kNics);
  wish.resource = "rdma/hca";
  wish.plugin = crds::DevicePlugin::kRdmaShared;
  wish.generation = 3;
  wish.policy_uid = "5a7d2f0a";
  const Offer offer = OfferOf(wish, Facts(Machine()));
  ASSERT_EQ(offer.state, DeviceState::kElsewhere);
  const crds::PolicyEdition edition{"all", 3, "5a7d2f0a"};
  const crds::DeviceReport unknown = ReportOfOther(offer, std::nullopt);
  EXPECT_EQ(unknown,
            (crds::DeviceReport{"rdma/hca", edition, DeviceState::kPending,
                                "its plugin is RdmaShared, and the kubelet does not say what it can give "
                                "(GetAllocatableResources)",
                                0, 0}));
  using Sets = std::vector<DeviceSet>;
  const crds::DeviceReport none = ReportOfOther(
      offer, Sets{{"rdma/other", false, {"0"}}, {"rdma/hca", true, {"a claim's"}}, {"rdma/hca", false, {}}});
  EXPECT_EQ(none.state, DeviceState::kPending);
  EXPECT_EQ(none.reason, "its plugin is RdmaShared, and the kubelet lists no device of it");
  EXPECT_EQ(none.total, 0);
  const crds::DeviceReport there = ReportOfOther(offer, Sets{{"rdma/hca", false, {"0", "1", "2"}}});
  EXPECT_EQ(there, (crds::DeviceReport{"rdma/hca", edition, DeviceState::kElsewhere,
                                       "its plugin is RdmaShared", 3, 3}));
  std::vector<std::string> many;
  for (int i = 0; i < 2000; ++i) many.push_back(std::to_string(i));
  EXPECT_EQ(ReportOfOther(offer, Sets{{"rdma/hca", false, many}}).healthy, 1024) << "as the schema bounds it";
}

TEST(Offers, NoIdIsLongerThanTheKubeletTakes) {
  DeviceWish wish = Wish(DeviceMode::kNics);
  wish.ports = {std::string(62, 'm') + ":1"};
  EXPECT_TRUE(OfferOf(wish, Facts(Machine())).offered());
  wish.slots = 2;
  EXPECT_THAT(OfferOf(wish, Facts(Machine())).reason, HasSubstr("63 bytes"));
}

TEST(Offers, NonsensePortsAreDevicesThatAreGone) {
  DeviceWish wish = Wish(DeviceMode::kNics);
  for (const char* port : {"", ":", "mlx5_0", "mlx5_0:", "mlx5_0:99999999999", ":1"}) {
    wish.ports = {port};
    const Offer offer = OfferOf(wish, Facts(Machine()));
    ASSERT_THAT(offer.devices, SizeIs(1)) << port;
    EXPECT_NE(offer.devices[0].trouble, "") << port;
  }
}

TEST(Offers, NameWhatOurIdsStandFor) {
  const auto offers = OffersOf({Wish(DeviceMode::kPairs)}, Machine(), Facts(Machine()));
  GrantReadings readings;
  readings.state = GrantsState::kRead;
  readings.containers = {{"train", "a", "worker", {{"heddle.dev/gpu", false, {offers[1].devices[2].id}}}}};
  NameOwn(offers, readings);
  const JoinedGrants joined = JoinGrants(readings, Machine());
  ASSERT_THAT(joined.grants, SizeIs(1));
  EXPECT_EQ(joined.grants[0].gpus[0].index, 2);
  EXPECT_EQ(joined.grants[0].nics, offers[1].devices[2].nics);
  EXPECT_THAT(joined.grants[0].unmatched, IsEmpty());
}

}  // namespace
}  // namespace heddle::nodeagent
