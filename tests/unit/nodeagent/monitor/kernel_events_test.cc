#include "nodeagent/monitor/kernel_events.h"

#include <gmock/gmock.h>
#include <infiniband/verbs.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include <thread>

#include "base/random.h"
#include "nodeagent/monitor/verbs_events.h"
#include "tests/support/seeds.h"

namespace heddle::nodeagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Kind = KernelEvent::Kind;

template <typename T>
std::string Bytes(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

std::string Padded(std::string bytes) {
  bytes.resize((bytes.size() + 3) / 4 * 4);
  return bytes;
}

std::string Attribute(int type, const std::string& content) {
  const rtattr header{std::uint16_t(sizeof(rtattr) + content.size()), std::uint16_t(type)};
  return Padded(Bytes(header) + content);
}

std::string Message(int type, const std::string& body) {
  nlmsghdr header{};
  header.nlmsg_len = std::uint32_t(sizeof(header) + body.size());
  header.nlmsg_type = std::uint16_t(type);
  return Padded(Bytes(header) + body);
}

// A datagram as the kernel writes it for this interface.
std::string Encode(const LinkMessage& link) {
  ifinfomsg info{};
  info.ifi_index = link.index;
  info.ifi_flags =
      (link.loopback ? IFF_LOOPBACK : 0) | (link.up ? IFF_UP : 0) | (link.carrier ? IFF_LOWER_UP : 0);
  std::string body = Bytes(info) + Attribute(IFLA_IFNAME, link.name + std::string(1, '\0')) +
                     Attribute(IFLA_MTU, Bytes(std::uint32_t(link.mtu))) +
                     Attribute(IFLA_CARRIER_CHANGES, Bytes(link.carrier_changes));
  if (link.elsewhere) body += Attribute(IFLA_LINK_NETNSID, Bytes(0));
  if (!link.kind.empty()) {
    const std::string kind = Attribute(IFLA_INFO_KIND, link.kind + std::string(1, '\0'));
    body += Attribute(IFLA_LINKINFO | NLA_F_NESTED, kind);
  }
  return Message(link.gone ? RTM_DELLINK : RTM_NEWLINK, body);
}

LinkMessage Eth1() {
  LinkMessage link;
  link.index = 3;
  link.up = link.carrier = true;
  link.mtu = 4200;
  link.carrier_changes = 2;
  link.name = "eth1";
  return link;
}

TEST(LinkMessages, AreReadAsTheKernelWritesThem) {
  LinkMessage bond = Eth1();
  bond.kind = "bond";
  bond.elsewhere = true;
  bond.gone = true;
  const LinkMessages read = ParseLinkMessages(Encode(Eth1()) + Encode(bond) + Message(NLMSG_DONE, Bytes(0)));
  EXPECT_THAT(read.links, ElementsAre(Eth1(), bond));
  EXPECT_TRUE(read.done);
  EXPECT_FALSE(read.damaged);
}

TEST(LinkMessages, GoOnAfterOneThatIsDamaged) {
  const LinkMessages read = ParseLinkMessages(Message(RTM_NEWLINK, "short") + Encode(Eth1()));
  EXPECT_THAT(read.links, ElementsAre(Eth1()));
  EXPECT_TRUE(read.damaged);
}

TEST(LinkMessages, SayWhichErrorTheKernelAnswered) {
  nlmsgerr error{};
  error.error = -EPERM;
  EXPECT_EQ(ParseLinkMessages(Message(NLMSG_ERROR, Bytes(error))).error, EPERM);
}

TEST(LinkMessages, SurviveEveryCutAndEveryChangedByte) {
  const std::string whole = Encode(Eth1()) + Encode(Eth1());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_LE(ParseLinkMessages(whole.substr(0, length)).links.size(), 1u);
  }
  for (const std::uint64_t seed : test::Seeds(200)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    for (int round = 0; round < 100; ++round) {
      std::string changed = whole;
      for (int i = 0; i < 3; ++i) changed[random.Below(changed.size())] = char(random.Below(256));
      EXPECT_LE(ParseLinkMessages(changed).links.size(), 3u);
    }
  }
}

class LinkTableTest : public testing::Test {
 protected:
  LinkTableTest() {
    EXPECT_EQ(table_.Apply(Eth1()), std::nullopt);
    table_.EndDump();
  }
  LinkTable table_;
};

TEST_F(LinkTableTest, SaysThatACarrierIsLostAndBack) {
  LinkMessage link = Eth1();
  link.carrier = false;
  link.carrier_changes = 3;
  EXPECT_EQ(table_.Apply(link), (KernelEvent{Kind::kInterface, "eth1", "carrier lost", true}));
  EXPECT_EQ(table_.Apply(link), std::nullopt);
  link.carrier = true;
  EXPECT_EQ(table_.Apply(link)->what, "carrier back");
}

TEST_F(LinkTableTest, SaysWhatHappenedBetweenTwoMessages) {
  LinkMessage link = Eth1();
  link.carrier_changes = 6;
  EXPECT_EQ(table_.Apply(link)->what, "carrier changed 4 times");
}

TEST_F(LinkTableTest, SaysThatAnInterfaceIsRenamedSetDownOrHasAnotherMtu) {
  LinkMessage link = Eth1();
  link.name = "gpu0-rail0";
  link.mtu = 9000;
  link.up = link.carrier = false;
  EXPECT_EQ(table_.Apply(link),
            (KernelEvent{Kind::kInterface, "gpu0-rail0",
                         "renamed from eth1, set down, carrier lost, MTU 9000, was 4200", true}));
}

TEST_F(LinkTableTest, SaysThatAnInterfaceCameAndWent) {
  LinkMessage link = Eth1();
  link.index = 9;
  link.name = "eth9";
  EXPECT_EQ(table_.Apply(link)->what, "interface came, with carrier");
  link.gone = true;
  EXPECT_EQ(table_.Apply(link)->what, "interface went");
  EXPECT_EQ(table_.Apply(link), std::nullopt);
}

TEST_F(LinkTableTest, PassesOverWhatContainersComeAndGoWith) {
  LinkMessage pods = Eth1();
  pods.index = 40;
  for (const char* kind : {"veth", "bridge", "vxlan", "macvlan", "tun"}) {
    pods.kind = kind;
    pods.elsewhere = pods.kind == "veth";
    EXPECT_EQ(table_.Apply(pods), std::nullopt) << kind;
  }
  pods.kind = "veth";
  pods.elsewhere = false;  // both ends are here: somebody's own
  EXPECT_EQ(table_.Apply(pods)->topology, false);
  LinkMessage loopback = Eth1();
  loopback.index = 1;
  loopback.loopback = true;
  EXPECT_EQ(table_.Apply(loopback), std::nullopt);
}

std::string Uevent(const std::string& action, const std::string& subsystem, const std::string& path,
                   const std::string& more = "") {
  std::string text =
      action + "@" + path + "|ACTION=" + action + "|DEVPATH=" + path + "|SUBSYSTEM=" + subsystem + "|" + more;
  std::replace(text.begin(), text.end(), '|', '\0');
  return text;
}

TEST(Uevent, SaysThatADeviceCameWentOrWasRenamed) {
  const std::string path = "/devices/pci0000:16/0000:16:01.0/0000:1b:00.0";
  EXPECT_EQ(ParseUevent(Uevent("remove", "pci", path)),
            (KernelEvent{Kind::kDevice, "0000:1b:00.0", "PCI device went", true}));
  EXPECT_EQ(ParseUevent(Uevent("add", "pci", path))->what, "PCI device came");
  EXPECT_EQ(ParseUevent(Uevent("move", "infiniband", path + "/infiniband/mlx5_3")),
            (KernelEvent{Kind::kDevice, "mlx5_3", "RDMA device was renamed", true}));
}

TEST(Uevent, SaysThatTheBusTriesToRecover) {
  const auto event =
      ParseUevent(Uevent("change", "pci", "/devices/0000:1b:00.0", "ERROR_EVENT=BEGIN_RECOVERY|"));
  ASSERT_TRUE(event);
  EXPECT_EQ(event->what, "PCI device: BEGIN_RECOVERY");
}

// A literal with the zeros in it.
template <std::size_t kSize>
std::string Bytes(const char (&text)[kSize]) {
  return {text, kSize - 1};
}

TEST(Uevent, PassesOverOtherSubsystemsAndWhatIsNoUevent) {
  EXPECT_EQ(ParseUevent(Uevent("add", "block", "/devices/vda")), std::nullopt);
  EXPECT_EQ(ParseUevent(Uevent("change", "pci", "/devices/0000:1b:00.0")), std::nullopt);
  EXPECT_EQ(ParseUevent(""), std::nullopt);
  EXPECT_EQ(ParseUevent(Bytes("libudev\0\0\0SUBSYSTEM=pci\0ACTION=add\0DEVPATH=/x\0")), std::nullopt);
  EXPECT_EQ(ParseUevent(Bytes("add@/x\0SUBSYSTEM=pci\0ACTION=add")), std::nullopt);
}

TEST(AsyncEvent, NamesTheDeviceAndThePort) {
  EXPECT_EQ(OfAsyncEvent("mlx5_0", IBV_EVENT_PORT_ERR, 1),
            (KernelEvent{Kind::kPort, "mlx5_0 port 1", "port went down", true}));
  EXPECT_EQ(OfAsyncEvent("mlx5_0", IBV_EVENT_DEVICE_FATAL, 77),
            (KernelEvent{Kind::kDevice, "mlx5_0", "device failed or went", true}));
  EXPECT_FALSE(OfAsyncEvent("mlx5_0", IBV_EVENT_SM_CHANGE, 1)->topology);
  EXPECT_EQ(OfAsyncEvent("mlx5_0", IBV_EVENT_QP_FATAL, 1), std::nullopt);
}

// A hot-unplugged soft-RoCE NIC of the lab's guests hung as long as an agent listened to it.
TEST(AsyncEvent, IsNotAskedOfDriversThatWaitForWhoeverListens) {
  for (const char* driver : {"mlx5_core", "bnxt_en", "ice", "ionic"})
    EXPECT_TRUE(LetsGoOfOpen(driver)) << driver;
  for (const char* driver : {"efa", "", "mlx5", "virtio-pci"}) EXPECT_FALSE(LetsGoOfOpen(driver)) << driver;
}

TEST(Coalesce, KeepsEachOnceInItsOrder) {
  const KernelEvent lost{Kind::kInterface, "eth1", "carrier lost", true};
  const KernelEvent back{Kind::kInterface, "eth1", "carrier back", true};
  EXPECT_THAT(Coalesce({lost, back, lost, back, lost}), ElementsAre(lost, back));
}

TEST(Coalesce, MakesOneOfAStorm) {
  std::vector<KernelEvent> storm;
  for (int i = 0; i < 1000; ++i) storm.push_back({Kind::kDevice, std::to_string(i), "PCI device came", true});
  const auto kept = Coalesce(std::move(storm));
  ASSERT_THAT(kept, SizeIs(kMaxEvents));
  EXPECT_EQ(kept.back().kind, Kind::kLost);
  EXPECT_TRUE(kept.back().topology);
}

TEST(KernelEvents, SayOfEachSourceWhetherItCanBeHeard) {
  const auto events = OpenKernelEvents();
  std::vector<std::string> sources;
  for (const KernelSourceState& state : events->States()) sources.push_back(state.source);
  EXPECT_THAT(sources, ElementsAre("rtnetlink", "uevent", "verbs"));
}

TEST(KernelEvents, EndAWaitWhenStopIsAsked) {
  const auto events = OpenKernelEvents();
  std::stop_source stop;
  std::jthread ends([&stop] { stop.request_stop(); });
  while (!stop.stop_requested()) (void)events->Wait(stop.get_token());
  SUCCEED();
}

}  // namespace
}  // namespace heddle::nodeagent
