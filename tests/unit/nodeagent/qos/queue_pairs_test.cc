#include "nodeagent/qos/queue_pairs.h"

#include <gmock/gmock.h>
#include <rdma/rdma_netlink.h>

#include <cerrno>
#include <string>
#include <vector>

#include "netlink_builder.h"
#include "tests/support/memory_file_tree.h"

namespace heddle::nodeagent {
namespace {

using test::Attribute;
using test::BytesOf;
using testing::HasSubstr;

constexpr std::uint32_t kSequence = 3;

std::string Device(std::uint32_t index, std::string_view name) {
  return test::Message(
      RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET), kSequence,
      Attribute(RDMA_NLDEV_ATTR_DEV_INDEX, BytesOf(index)) + Attribute(RDMA_NLDEV_ATTR_DEV_NAME, name));
}

// `owner`: an attribute, or none, as of a process that another PID namespace has.
std::string QueuePair(std::string_view owner) {
  return Attribute(RDMA_NLDEV_ATTR_RES_QP_ENTRY,
                   Attribute(RDMA_NLDEV_ATTR_RES_LQPN, BytesOf(std::uint32_t(17))) + std::string(owner));
}

RdmaAnswer Taken(const std::string& datagram) {
  RdmaAnswer answer;
  const auto taken = TakeRdma(datagram, kSequence, "mlx5_1", answer);
  EXPECT_TRUE(taken) << taken.error().message;
  return answer;
}

TEST(QueuePairs, HaveTheNumbersOfTheKernel) {
  EXPECT_EQ(int(RDMA_NL_NLDEV), 5);
  EXPECT_EQ(int(RDMA_NLDEV_CMD_GET), 1);
  EXPECT_EQ(int(RDMA_NLDEV_CMD_RES_QP_GET), 10);
  EXPECT_EQ(int(RDMA_NLDEV_ATTR_DEV_INDEX), 1);
  EXPECT_EQ(int(RDMA_NLDEV_ATTR_DEV_NAME), 2);
  EXPECT_EQ(int(RDMA_NLDEV_ATTR_RES_QP), 19);
  EXPECT_EQ(int(RDMA_NLDEV_ATTR_RES_QP_ENTRY), 20);
  EXPECT_EQ(int(RDMA_NLDEV_ATTR_RES_PID), 28);
  EXPECT_EQ(int(RDMA_NLDEV_ATTR_RES_KERN_NAME), 29);
}

TEST(QueuePairs, OfADeviceAreFoundByItsName) {
  EXPECT_EQ(Taken(Device(0, {"mlx5_0\0", 7}) + Device(4, {"mlx5_1\0", 7})).device, 4u);
  EXPECT_FALSE(Taken(Device(0, {"mlx5_10\0", 8})).device);
}

TEST(QueuePairs, OfTheKernelAreNotCountedAndOfUnseenProcessesAre) {
  const std::string list = QueuePair(Attribute(RDMA_NLDEV_ATTR_RES_PID, BytesOf(std::uint32_t(400)))) +
                           QueuePair("") +
                           QueuePair(Attribute(RDMA_NLDEV_ATTR_RES_KERN_NAME, {"ib_core\0", 8}));
  const std::string message = test::Message(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_QP_GET),
                                            kSequence, Attribute(RDMA_NLDEV_ATTR_RES_QP, list));
  // A long list comes in several datagrams.
  RdmaAnswer answer = Taken(message + message + test::Message(NLMSG_DONE, kSequence, BytesOf(0)));
  EXPECT_EQ(answer.user_queue_pairs, 4);
  EXPECT_TRUE(answer.done);
  EXPECT_EQ(Taken(test::Ending(kSequence, EPERM)).error, EPERM);
}

std::string Pid(std::uint32_t pid) {
  return Attribute(RDMA_NLDEV_ATTR_RES_PID, BytesOf(pid));
}

// An answer with these protection domains, by their owners.
std::string Domains(const std::vector<std::string>& owners) {
  std::string list;
  for (const std::string& owner : owners)
    list += Attribute(RDMA_NLDEV_ATTR_RES_PD_ENTRY,
                      Attribute(RDMA_NLDEV_ATTR_RES_PDN, BytesOf(std::uint32_t(3))) + owner);
  return test::Message(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_PD_GET), kSequence,
                       Attribute(RDMA_NLDEV_ATTR_RES_PD, list)) +
         test::Message(NLMSG_DONE, kSequence, BytesOf(0));
}

// As UCX on mlx5: its queue pairs are DEVX objects.
TEST(QueuePairs, OfAProgramThatMakesThemPastTheKernelAreKnownByItsProtectionDomain) {
  const RdmaAnswer pairs = Taken(test::Message(NLMSG_DONE, kSequence, BytesOf(0)));
  ASSERT_EQ(pairs.user_queue_pairs, 0);
  const std::string kernel = Attribute(RDMA_NLDEV_ATTR_RES_KERN_NAME, {"mlx5_ib\0", 8});
  const auto users = WithDomains(pairs, Taken(Domains({Pid(400), kernel, ""})), "6.1.0", "mlx5_1");
  ASSERT_TRUE(users) << users.error().message;
  EXPECT_EQ(users->user_domains, 2) << "one of them of a process that is not seen";
  EXPECT_EQ(users->user_queue_pairs, 0);
  EXPECT_THAT(users->by_pid, testing::ElementsAre(testing::Pair(400u, 1)));
}

TEST(QueuePairs, AndProtectionDomainsNameTheirProcessesTogether) {
  RdmaAnswer pairs;
  pairs.user_queue_pairs = 5;
  pairs.by_pid = {{400, 3}, {500, 2}};
  const auto users = WithDomains(pairs, Taken(Domains({Pid(400), Pid(600)})), "6.1.0", "mlx5_1");
  ASSERT_TRUE(users);
  EXPECT_EQ(users->user_queue_pairs, 5);
  EXPECT_THAT(users->by_pid,
              testing::ElementsAre(testing::Pair(400u, 4), testing::Pair(500u, 2), testing::Pair(600u, 1)));
}

TEST(QueuePairs, AreBelievedAloneWhereTheKernelListsNoProtectionDomains) {
  RdmaAnswer pairs;
  pairs.user_queue_pairs = 5;
  const RdmaAnswer refused = Taken(test::Ending(kSequence, EINVAL));
  EXPECT_EQ(WithDomains(pairs, refused, "3.10.0-1160.el7", "mlx5_1")->user_queue_pairs, 5);
  EXPECT_EQ(
      WithDomains(pairs, Taken(test::Ending(kSequence, EOPNOTSUPP)), "6.1.0", "mlx5_1")->user_queue_pairs, 5);
  // This kernel lists them, so that the device must have gone meanwhile.
  EXPECT_FALSE(WithDomains(pairs, refused, "4.17.0", "mlx5_1"));
  const auto forbidden = WithDomains(pairs, Taken(test::Ending(kSequence, EPERM)), "4.16.0", "mlx5_1");
  ASSERT_FALSE(forbidden);
  EXPECT_EQ(forbidden.error().code, base::Code::kForbidden);
}

TEST(QueuePairs, TakeAListOfProtectionDomainsThatIsCutShortWithoutACrash) {
  const std::string whole = Domains({Pid(400)});
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    RdmaAnswer answer;
    const auto taken = TakeRdma(std::string_view(whole).substr(0, cut), kSequence, "mlx5_1", answer);
    EXPECT_LE(answer.user_domains, 1);
    EXPECT_FALSE(answer.done) << taken.has_value();
  }
}

// What Linux 6.1 sent while one ibv_rc_pingpong waited; the other queue pair is ib_core's.
TEST(QueuePairs, AreCountedInWhatAKernelSent) {
  const base::DiskFileTree corpus("tests/fuzz/corpus/rdma_netlink");
  RdmaAnswer devices, pairs;
  ASSERT_TRUE(TakeRdma(corpus.Read("devices").value(), 7, "rxe0", devices));
  EXPECT_TRUE(devices.done);
  EXPECT_EQ(devices.device, 0u);
  ASSERT_TRUE(TakeRdma(corpus.Read("pairs").value(), 7, "rxe0", pairs));
  EXPECT_TRUE(pairs.done);
  EXPECT_EQ(pairs.user_queue_pairs, 1);
}

TEST(QueuePairs, CannotBeCountedFromAContainerOnAnOldKernel) {
  EXPECT_TRUE(ShowsAllQueuePairs("6.1.0-56-amd64"));
  EXPECT_TRUE(ShowsAllQueuePairs("5.5.0"));
  EXPECT_TRUE(ShowsAllQueuePairs("5.14.0-427.el9"));
  EXPECT_FALSE(ShowsAllQueuePairs("5.4.0-150-generic"));
  EXPECT_FALSE(ShowsAllQueuePairs("4.18.0"));
  EXPECT_FALSE(ShowsAllQueuePairs(""));
  test::MemoryFileTree files;
  files.Link("proc/self/ns/pid", "pid:[4026532001]");
  files.Write("proc/sys/kernel/osrelease", "5.4.0-150-generic\n");
  NetlinkQueuePairs pairs(files);
  const auto counted = pairs.CountUsers("mlx5_0");
  ASSERT_FALSE(counted);
  EXPECT_EQ(counted.error().code, base::Code::kForbidden);
  EXPECT_THAT(counted.error().message, HasSubstr("hostPID"));
}

}  // namespace
}  // namespace heddle::nodeagent
