#include "nodeagent/grants/grants.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/support/memory_file_tree.h"
#include "tests/support/seeds.h"

namespace heddle::nodeagent {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

std::string Uuid(int gpu) {
  return fmt::format("GPU-00000000-0000-4000-8000-{:012}", gpu);
}

// Four GPUs, and a NIC for each of them.
topology::Node Node() {
  topology::Node node;
  node.name = "node-1";
  for (int i = 0; i < 4; ++i) {
    topology::Gpu gpu;
    gpu.index = i;
    gpu.uuid = Uuid(i);
    gpu.pci = fmt::format("0000:{}0:00.0", i + 1);
    node.gpus.push_back(gpu);
    topology::Nic nic;
    nic.name = fmt::format("mlx5_{}", i);
    nic.netdev = fmt::format("eth{}", i);
    nic.pci = fmt::format("0000:{}1:00.0", i + 1);
    node.nics.push_back(nic);
  }
  return node;
}

ContainerDevices Container(const std::string& pod, std::vector<DeviceSet> devices) {
  return {"train", pod, "worker", std::move(devices)};
}

DeviceSet Plugin(const std::string& resource, std::vector<std::string> ids) {
  return {resource, false, std::move(ids)};
}

DeviceSet Claim(const std::string& driver, std::vector<std::string> ids) {
  return {driver, true, std::move(ids)};
}

GrantReadings Read(std::vector<ContainerDevices> containers) {
  GrantReadings readings;
  readings.state = GrantsState::kRead;
  readings.containers = std::move(containers);
  Sort(readings);
  return readings;
}

std::vector<int> Indexes(const crds::Grant& grant) {
  std::vector<int> indexes;
  for (const auto& gpu : grant.gpus) indexes.push_back(gpu.index);
  return indexes;
}

std::vector<std::string> Unmatched(const crds::Grant& grant) {
  std::vector<std::string> names;
  for (const auto& device : grant.unmatched) names.push_back(device.resource + " " + device.id);
  return names;
}

// Of one container with these devices; of files where something is there to be looked up.
crds::Grant GrantOf(std::vector<DeviceSet> devices, const test::MemoryFileTree& files = {}) {
  GrantReadings readings = Read({Container("a", std::move(devices))});
  FindFunctions(files, readings);
  const JoinedGrants joined = JoinGrants(readings, Node());
  return joined.grants.size() == 1 ? joined.grants[0] : crds::Grant();
}

crds::Condition ConditionOf(const GrantReadings& readings) {
  const topology::Node node = Node();
  return GrantsCondition(readings, JoinGrants(readings, node), node).value_or(crds::Condition());
}

TEST(Grants, JoinGpusByUuidAndNicsByName) {
  const crds::Grant grant =
      GrantOf({Plugin("nvidia.com/gpu", {Uuid(3), Uuid(1)}), Plugin("vpc.amazonaws.com/efa", {"mlx5_1"})});
  EXPECT_EQ(grant.pod_namespace, "train");
  EXPECT_EQ(grant.pod_name, "a");
  EXPECT_EQ(grant.container, "worker");
  EXPECT_EQ(grant.pod_uid, "");
  EXPECT_THAT(grant.gpus, ElementsAre(crds::Grant::GpuRef{1, Uuid(1)}, crds::Grant::GpuRef{3, Uuid(3)}));
  EXPECT_THAT(grant.nics, ElementsAre("mlx5_1"));
  EXPECT_THAT(grant.resources, ElementsAre("nvidia.com/gpu", "vpc.amazonaws.com/efa"));
  EXPECT_THAT(grant.unmatched, IsEmpty());
}

TEST(Grants, TakeAShareOfAGpuForThatGpu) {
  EXPECT_THAT(Indexes(GrantOf({Plugin("nvidia.com/gpu.shared", {Uuid(2) + "::0", Uuid(2) + "::7"})})),
              ElementsAre(2));
  EXPECT_THAT(Indexes(GrantOf({Plugin("nvidia.com/gpu", {Uuid(1) + "-3"})})), ElementsAre(1));
  EXPECT_THAT(Indexes(GrantOf({Plugin("nvidia.com/mig-1g.5gb", {"MIG-" + Uuid(0) + "/7/0"})})),
              ElementsAre(0));
}

TEST(Grants, PublishAsTheyAreWhatNothingJoins) {
  const std::string mig = "MIG-11111111-2222-3333-4444-555555555555";
  const crds::Grant grant =
      GrantOf({Plugin("nvidia.com/gpu", {Uuid(9), Uuid(1) + "x", Uuid(1) + "::", "GPU-"}),
               Plugin("nvidia.com/mig-1g.10gb", {mig}), Plugin("rdma/shared", {"17"}),
               Plugin("openshift.io/vfs", {"0000:99:02.1"})});
  EXPECT_THAT(grant.gpus, IsEmpty());
  EXPECT_THAT(grant.nics, IsEmpty());
  EXPECT_THAT(Unmatched(grant), ElementsAre("nvidia.com/gpu GPU-", "nvidia.com/gpu " + Uuid(1) + "::",
                                            "nvidia.com/gpu " + Uuid(1) + "x", "nvidia.com/gpu " + Uuid(9),
                                            "nvidia.com/mig-1g.10gb " + mig, "openshift.io/vfs 0000:99:02.1",
                                            "rdma/shared 17"));
}

TEST(Grants, JoinByPciAddressAlsoOfClaims) {
  const crds::Grant grant =
      GrantOf({Plugin("amd.com/gpu", {"0000:20:00.0"}), Plugin("intel.com/nics", {"0000:31:00.0"}),
               Claim("dra.net", {"pci-0000-41-00-0"}), Claim("sriov.net", {"0000-11-00-0"})});
  EXPECT_THAT(Indexes(grant), ElementsAre(1));
  EXPECT_THAT(grant.nics, ElementsAre("mlx5_0", "mlx5_2", "mlx5_3"));
  EXPECT_THAT(grant.resources, ElementsAre("amd.com/gpu", "dra.net", "intel.com/nics", "sriov.net"));
  EXPECT_THAT(GrantOf({Claim("dra.net", {"eth2"})}).nics, ElementsAre("mlx5_2"));
}

TEST(Grants, GiveTheParentOfAVirtualFunction) {
  test::MemoryFileTree files;
  files.Link("sys/bus/pci/devices/0000:21:02.1/physfn", "../0000:21:00.0");
  EXPECT_THAT(GrantOf({Plugin("openshift.io/vfs", {"0000:21:02.1"})}, files).nics, ElementsAre("mlx5_1"));
}

TEST(Grants, KnowTheCardsOfAmdgpu) {
  test::MemoryFileTree files;
  files.Link("sys/class/drm/card7/device", "../../../0000:30:00.0");
  EXPECT_THAT(Indexes(GrantOf({Plugin("amd.com/gpu", {"card7"})}, files)), ElementsAre(2));
}

TEST(Grants, JoinMinorNumbersByWhatTheDriverSaysAndNotByIndex) {
  test::MemoryFileTree files;
  files.Write("proc/driver/nvidia/gpus/0000:10:00.0/information", "Model: \t H100\nDevice Minor: \t 3\n");
  files.Write("proc/driver/nvidia/gpus/0000:40:00.0/information", "Model: \t H100\nDevice Minor: \t 0\n");
  files.Write("proc/driver/nvidia/gpus/0000:30:00.0/information",
              "garbage\nDevice Minor:\nDevice Minor: x\n");
  EXPECT_THAT(Indexes(GrantOf({Plugin("nvidia.com/gpu", {"nvidia3"})}, files)), ElementsAre(0));
  EXPECT_THAT(Indexes(GrantOf({Plugin("nvidia.com/gpu", {"nvidia0/vgpu1"})}, files)), ElementsAre(3));
  EXPECT_THAT(Indexes(GrantOf({Claim("gpu.nvidia.com", {"gpu-0", "gpu-3"})}, files)), ElementsAre(0, 3));
  EXPECT_THAT(Unmatched(GrantOf({Claim("gpu.nvidia.com", {"gpu-1", "gpu-0-mig-9-4-4"})}, files)),
              ElementsAre("gpu.nvidia.com gpu-0-mig-9-4-4", "gpu.nvidia.com gpu-1"));
  EXPECT_THAT(Unmatched(GrantOf({Plugin("nvidia.com/gpu", {"nvidia3"})})),
              ElementsAre("nvidia.com/gpu nvidia3"));
}

TEST(Grants, AskSysfsForNothingThatNoIdNames) {
  const test::MemoryFileTree files;
  (void)GrantOf({Plugin("nvidia.com/gpu", {Uuid(0)}), Plugin("rdma/shared", {"4"})}, files);
  EXPECT_THAT(files.reads(), IsEmpty());
}

TEST(Grants, AreOfOneContainerOnceHoweverOftenItIsListed) {
  // A resource comes once for each NUMA node, and a pod twice in a bad answer.
  const GrantReadings readings =
      Read({Container("b", {Plugin("nvidia.com/gpu", {Uuid(1)}), Plugin("nvidia.com/gpu", {Uuid(0)})}),
            Container("a", {Plugin("nvidia.com/gpu", {})}),
            Container("b", {Plugin("nvidia.com/gpu", {Uuid(1)})})});
  ASSERT_THAT(readings.containers, SizeIs(1));
  const JoinedGrants joined = JoinGrants(readings, Node());
  ASSERT_THAT(joined.grants, SizeIs(1));
  EXPECT_THAT(Indexes(joined.grants[0]), ElementsAre(0, 1));
  EXPECT_THAT(joined.notes, IsEmpty());
}

TEST(Grants, LeaveOutOurOwnResourceThatIsNoDevice) {
  EXPECT_THAT(JoinGrants(Read({Container("a", {Plugin("heddle.dev/fabric", {"slot-3"})})}), Node()).grants,
              IsEmpty());
  EXPECT_THAT(
      GrantOf({Plugin("heddle.dev/fabric", {"slot-3"}), Plugin("nvidia.com/gpu", {Uuid(0)})}).unmatched,
      IsEmpty());
}

TEST(Grants, SayThatADeviceIsListedForTwoPods) {
  const GrantReadings readings = Read({Container("a", {Plugin("nvidia.com/gpu", {Uuid(1)})}),
                                       Container("b", {Plugin("nvidia.com/gpu", {Uuid(1), Uuid(2)})})});
  EXPECT_THAT(JoinGrants(readings, Node()).grants, SizeIs(2));
  const crds::Condition condition = ConditionOf(readings);
  EXPECT_EQ(condition.status, crds::ConditionStatus::kTrue);
  EXPECT_EQ(condition.reason, "ReadWithDoubts");
  EXPECT_THAT(condition.message,
              AllOf(HasSubstr("2 containers hold 2 of 4 GPUs"),
                    HasSubstr(Uuid(1) + " is listed for train/a and train/b"), Not(HasSubstr(Uuid(2)))));
}

TEST(Grants, DoNotDoubtTheSharesOfOneGpu) {
  EXPECT_EQ(ConditionOf(Read({Container("a", {Plugin("nvidia.com/gpu", {Uuid(1) + "::0"})}),
                              Container("b", {Plugin("nvidia.com/gpu", {Uuid(1) + "::1"})}),
                              Container("c", {Claim("gpu.nvidia.com", {"gpu-1"})}),
                              Container("d", {Claim("gpu.nvidia.com", {"gpu-1"})})}))
                .reason,
            "Read");
}

TEST(Grants, NameAGpuThatTheNodeDoesNotHave) {
  const crds::Condition condition =
      ConditionOf(Read({Container("a", {Plugin("nvidia.com/gpu", {Uuid(7)})})}));
  EXPECT_EQ(condition.reason, "ReadWithDoubts");
  EXPECT_THAT(condition.message, HasSubstr("train/a holds nvidia.com/gpu " + Uuid(7) + ", which is no GPU"));
}

TEST(Grants, DoNotCallAGpuForeignWhereTheDriverNamesNone) {
  topology::Node node = Node();
  node.gpus[3].uuid.clear();
  EXPECT_THAT(JoinGrants(Read({Container("a", {Plugin("nvidia.com/gpu", {Uuid(3)})})}), node).notes,
              IsEmpty());
}

TEST(Grants, KeepTheBiggestOfMoreThanFit) {
  std::vector<ContainerDevices> containers;
  for (int i = 0; i < 200; ++i)
    containers.push_back(Container(fmt::format("p{:03}", i), {Plugin("rdma/x", {"1"})}));
  containers[150].devices = {Plugin("nvidia.com/gpu", {Uuid(0)})};
  containers[199].devices = {Plugin("nvidia.com/gpu", {Uuid(1), Uuid(2)})};
  containers[180].devices = {Plugin("intel.com/nics", {"mlx5_0"})};
  const GrantReadings readings = Read(std::move(containers));
  const JoinedGrants joined = JoinGrants(readings, Node());
  ASSERT_THAT(joined.grants, SizeIs(kMaxGrants));
  EXPECT_TRUE(std::is_sorted(joined.grants.begin(), joined.grants.end(),
                             [](const auto& a, const auto& b) { return a.pod_name < b.pod_name; }));
  const auto holds = [&](const std::string& pod) {
    return std::any_of(joined.grants.begin(), joined.grants.end(),
                       [&](const auto& g) { return g.pod_name == pod; });
  };
  EXPECT_TRUE(holds("p150") && holds("p180") && holds("p199"));
  EXPECT_THAT(
      ConditionOf(readings).message,
      HasSubstr(
          "200 containers hold devices and 128 are shown, those with most GPUs; 0 of the others hold GPUs"));
}

TEST(Grants, FitTheSchemaWhateverOneContainerHolds) {
  std::vector<DeviceSet> devices;
  for (int i = 0; i < 40; ++i) devices.push_back(Plugin(fmt::format("example.com/r{}", i), {"1", "2", "3"}));
  const crds::Grant grant = GrantOf(std::move(devices));
  EXPECT_THAT(grant.unmatched, SizeIs(32));
  EXPECT_THAT(grant.resources, SizeIs(16));
  std::vector<ContainerDevices> foreign;
  for (int i = 0; i < 100; ++i)
    foreign.push_back(Container(fmt::format("p{}", i), {Plugin("nvidia.com/gpu", {Uuid(100 + i)})}));
  const std::string message = ConditionOf(Read(std::move(foreign))).message;
  EXPECT_LE(message.size(), 1024U);
  EXPECT_THAT(message, HasSubstr(" more of that kind"));
}

TEST(Grants, DropWhatHasNoName) {
  GrantReadings readings = Read({Container("", {Plugin("nvidia.com/gpu", {Uuid(0)})})});
  EXPECT_THAT(JoinGrants(readings, Node()).grants, IsEmpty());
}

std::string AnyId(base::Random& random) {
  const std::vector<std::string> ids = {Uuid(1),
                                        Uuid(2) + "::3",
                                        Uuid(12),
                                        "MIG-" + Uuid(0) + "/1/0",
                                        "nvidia1",
                                        "card0",
                                        "0000:21:00.0",
                                        "pci-0000-10-00-0",
                                        "mlx5_3",
                                        "",
                                        std::string(400, 'x'),
                                        "42"};
  return test::Damage(ids[random.Below(ids.size())], random);
}

TEST(Grants, AreWhatTheSchemaTakesWhateverAKubeletSays) {
  for (const std::uint64_t seed : test::Seeds(200)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    GrantReadings readings;
    readings.state = GrantsState::kRead;
    for (std::uint64_t i = random.Below(300); i > 0; --i) {
      ContainerDevices container{test::Damage("train", random), test::Damage("pod", random), "c", {}};
      for (std::uint64_t j = random.Below(20); j > 0; --j)
        container.devices.push_back(
            {test::Damage("nvidia.com/gpu", random), random.Below(3) == 0, {AnyId(random)}});
      readings.containers.push_back(std::move(container));
    }
    Sort(readings);
    FindFunctions(test::MemoryFileTree(), readings);
    crds::NodeTopology object;
    object.name = "node-1";
    object.status.grants = JoinGrants(readings, Node()).grants;
    const auto read = crds::NodeTopologyFromJson(crds::ToJson(object));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->status.grants.size(), object.status.grants.size());
    const crds::Condition condition = ConditionOf(readings);
    EXPECT_LE(condition.message.size(), 1024U);
  }
}

TEST(Grants, SayWhatTheKubeletCanGive) {
  GrantReadings readings = Read({});
  EXPECT_EQ(ConditionOf(readings).message, "0 containers hold 0 of 4 GPUs");
  readings.allocatable = {Plugin("nvidia.com/gpu", {Uuid(0), Uuid(1), Uuid(2), Uuid(3)})};
  EXPECT_EQ(ConditionOf(readings).message, "0 containers hold 0 of 4 GPUs; the kubelet can give 4 GPUs");
  readings.allocatable = {Plugin("nvidia.com/gpu", {Uuid(0), Uuid(3)})};
  EXPECT_EQ(ConditionOf(readings).message,
            "0 containers hold 0 of 4 GPUs; the kubelet can give 2 of 4 GPUs, not 1, 2");
  readings.allocatable = {Plugin("rdma/x", {"1"})};
  EXPECT_THAT(ConditionOf(readings).message, HasSubstr("no device plugin offers any of them by name"));
}

TEST(Grants, AreUnknownWithTheReason) {
  GrantReadings readings;
  EXPECT_FALSE(GrantsCondition(readings, {}, Node()));
  readings.problem = "the socket is not there";
  for (const auto& [state, reason] :
       {std::pair(GrantsState::kNoSocket, "NoSocket"), std::pair(GrantsState::kForbidden, "Forbidden"),
        std::pair(GrantsState::kTooOld, "TooOld"), std::pair(GrantsState::kNoAnswer, "NoAnswer")}) {
    readings.state = state;
    const crds::Condition condition = ConditionOf(readings);
    EXPECT_EQ(condition.type, "GrantsKnown");
    EXPECT_EQ(condition.status, crds::ConditionStatus::kFalse);
    EXPECT_EQ(condition.reason, reason);
    EXPECT_THAT(condition.message, HasSubstr("the socket is not there"));
  }
}

}  // namespace
}  // namespace heddle::nodeagent
