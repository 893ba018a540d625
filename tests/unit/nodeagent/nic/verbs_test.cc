#include "nodeagent/nic/verbs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "nodeagent/health/conditions.h"
#include "recorded_machine.h"
#include "tests/support/seeds.h"

namespace heddle::nodeagent {
namespace {

using base::Code;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using topology::LinkState;

constexpr auto kLong = std::chrono::minutes(5);  // longer than any machine needs to answer

// A driver that may hang. The test holds it as well as the thread that asks it.
struct Driver {
  std::mutex mutex;
  std::condition_variable changed;
  bool hangs = false;
  int asked = 0;
  std::map<std::string, base::Result<VerbsPort>> answers;

  void Hang(bool now) {
    const std::lock_guard lock(mutex);
    hangs = now;
    changed.notify_all();
  }
};

class Verbs final : public VerbsSource {
 public:
  explicit Verbs(std::shared_ptr<Driver> driver) : driver_(std::move(driver)) {}
  base::Result<VerbsPort> Ask(const std::string& device, int /*port*/) override {
    std::unique_lock lock(driver_->mutex);
    ++driver_->asked;
    driver_->changed.wait(lock, [this] { return !driver_->hangs; });
    const auto answer = driver_->answers.find(device);
    if (answer == driver_->answers.end()) return base::Fail(Code::kNotFound, device + ": not listed");
    return answer->second;
  }

 private:
  const std::shared_ptr<Driver> driver_;
};

class DriverMtu : public testing::Test {
 protected:
  DriverMtu() {
    for (const char* name : {"mlx5_0", "mlx5_1"}) {
      RdmaDevice device;
      device.name = name;
      device.guid = std::string("0x") + name;
      device.netdevs = {std::string("eth-") + name};
      device.ports.emplace_back();
      device.ports[0].state = LinkState::kActive;
      device.ports[0].link_layer = "InfiniBand";
      device.ports[0].rate_gbps = 400;
      rdma.devices.push_back(device);
      net.netdevs[device.netdevs[0]].mtu = 2044;
      driver->answers.emplace(name, VerbsPort{LinkState::kActive, "InfiniBand", 4096});
    }
  }
  // A look: the ports as they are, without what the look before was told.
  std::vector<int> Look() {
    RdmaReadings now = rdma;
    mtus.Tell(now, net);
    problems = now.problems;
    std::vector<int> bytes;
    for (const RdmaDevice& device : now.devices) bytes.push_back(device.ports.at(0).active_mtu);
    return bytes;
  }

  const std::shared_ptr<Driver> driver = std::make_shared<Driver>();
  DriverMtus mtus{std::make_unique<Verbs>(driver), {}, kLong};
  RdmaReadings rdma;
  NetReadings net;
  std::vector<std::string> problems;
};

TEST_F(DriverMtu, IsAskedOnceAndAgainWhenThePortChanged) {
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Look(), ElementsAre(4096, 4096));
  EXPECT_EQ(driver->asked, 2);
  driver->answers.insert_or_assign("mlx5_1", VerbsPort{LinkState::kActive, "InfiniBand", 2048});
  EXPECT_THAT(Look(), ElementsAre(4096, 4096)) << "nothing says that it is another now";
  net.netdevs["eth-mlx5_1"].mtu = 1500;
  EXPECT_THAT(Look(), ElementsAre(4096, 2048));
  EXPECT_EQ(driver->asked, 3);
  rdma.devices[0].ports[0].rate_gbps = 200;
  rdma.devices[1].guid = "0xanother";
  EXPECT_THAT(Look(), ElementsAre(4096, 2048));
  EXPECT_EQ(driver->asked, 5);
  EXPECT_THAT(problems, IsEmpty());
}

TEST_F(DriverMtu, IsOfPortsThatAreUp) {
  rdma.devices[1].ports[0].state = LinkState::kDown;
  EXPECT_THAT(Look(), ElementsAre(4096, 0));
  EXPECT_EQ(driver->asked, 1);
  rdma.devices[1].ports[0].state = LinkState::kActive;
  EXPECT_THAT(Look(), ElementsAre(4096, 4096));
  rdma.devices[1].ports[0].state = LinkState::kDown;
  EXPECT_THAT(Look(), ElementsAre(4096, 0));
  // Its driver is ahead of sysfs: asked again once both agree.
  driver->answers.insert_or_assign("mlx5_1", VerbsPort{LinkState::kUnknown, "InfiniBand", 4096});
  rdma.devices[1].ports[0].state = LinkState::kActive;
  EXPECT_THAT(Look(), ElementsAre(4096, 0));
  driver->answers.insert_or_assign("mlx5_1", VerbsPort{LinkState::kActive, "InfiniBand", 1024});
  EXPECT_THAT(Look(), ElementsAre(4096, 1024));
}

TEST_F(DriverMtu, IsAskedAgainOnlyWhereItMayKnowLater) {
  driver->answers.insert_or_assign("mlx5_0", base::Fail(Code::kUnavailable, "Input/output error"));
  driver->answers.erase("mlx5_1");
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Look(), ElementsAre(0, 0));
  EXPECT_EQ(driver->asked, 4) << "libibverbs does not learn of a device that it has no provider for";
  EXPECT_THAT(problems, IsEmpty()) << "the MTU is derived then";
}

TEST_F(DriverMtu, IsDoubtedWhereItsLinkLayerIsAnother) {
  driver->answers.insert_or_assign("mlx5_0", VerbsPort{LinkState::kActive, "Ethernet", 1024});
  EXPECT_THAT(Look(), ElementsAre(0, 4096));
  EXPECT_THAT(problems, ElementsAre("mlx5_0 port 1 is InfiniBand by sysfs and Ethernet by its driver"));
}

TEST(HangingDriver, HoldsUpOneLookForAMomentAndIsNamed) {
  const auto driver = std::make_shared<Driver>();
  driver->answers.emplace("mlx5_0", VerbsPort{LinkState::kActive, "InfiniBand", 4096});
  RdmaReadings rdma;
  RdmaDevice device;
  device.name = "mlx5_0";
  device.ports.emplace_back();
  device.ports[0].state = LinkState::kActive;
  rdma.devices = {device};
  driver->Hang(true);
  {
    DriverMtus mtus(std::make_unique<Verbs>(driver), {}, milliseconds(1));
    RdmaReadings now;
    // The first look may be over before the thread has begun to ask.
    do {
      now = rdma;
      mtus.Tell(now, {});
    } while (now.problems.empty());
    EXPECT_THAT(now.problems, ElementsAre(HasSubstr("the driver of mlx5_0 does not answer for port 1")));
    EXPECT_EQ(now.devices[0].ports[0].active_mtu, 0);
    driver->Hang(false);
    do {
      now = rdma;
      mtus.Tell(now, {});
    } while (now.devices[0].ports[0].active_mtu == 0);
    EXPECT_EQ(now.devices[0].ports[0].active_mtu, 4096);
    driver->Hang(true);
    device.guid = "0xanother";
    rdma.devices = {device};
    do {
      now = rdma;
      mtus.Tell(now, {});
    } while (now.problems.empty());
  }
  driver->Hang(false);  // whoever is left asking goes on, and ends
}

TEST(HangingDriver, IsNotWaitedForAfterAStop) {
  const auto driver = std::make_shared<Driver>();
  driver->Hang(true);
  std::stop_source stop;
  stop.request_stop();
  {
    DriverMtus mtus(std::make_unique<Verbs>(driver), stop.get_token(), milliseconds(1));
    RdmaReadings rdma;
    rdma.devices.emplace_back();
    rdma.devices[0].ports.emplace_back();
    rdma.devices[0].ports[0].state = LinkState::kActive;
    mtus.Tell(rdma, {});
    EXPECT_EQ(rdma.devices[0].ports[0].active_mtu, 0);
  }
  driver->Hang(false);
}

TEST(LiveVerbs, DoesNotKnowADeviceThatIsNotThere) {
  const auto answer = LiveVerbs().Ask("no-such-device", 1);
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("no-such-device: "));
}

TEST(VerbsYaml, SaysWhatItWasMadeOf) {
  RdmaReadings rdma;
  RdmaDevice device;
  device.name = "mlx5_\"\\0";
  device.ports.resize(3);
  device.ports[0] = {3, LinkState::kActive, false, "Ethernet"};
  device.ports[0].active_mtu = 1024;
  device.ports[2].number = 9;
  device.ports[2].active_mtu = 4096;
  rdma.devices = {device};
  const VerbsFile file = ParseVerbsYaml(FormatVerbsYaml(rdma));
  EXPECT_THAT(file.problems, IsEmpty());
  EXPECT_EQ(file.ports.size(), 2U);
  EXPECT_EQ(file.ports.at({device.name, 3}), (VerbsPort{LinkState::kActive, "Ethernet", 1024}));
  EXPECT_EQ(file.ports.at({device.name, 9}), (VerbsPort{LinkState::kActive, "", 4096}));
  EXPECT_EQ(FormatVerbsYaml({}), "");
}

TEST(VerbsYaml, LeavesOutWhatIsNoPort) {
  const VerbsFile file = ParseVerbsYaml(
      "- {device: a, port: 1, active_mtu: 4096}\n- {device: b, port: 0, active_mtu: 4096}\n"
      "- {device: c, port: 1, active_mtu: 1500}\n- {port: 1, active_mtu: 4096}\n- 7\n- [a]\n");
  EXPECT_EQ(file.ports.size(), 1U);
  EXPECT_EQ(file.problems.size(), 5U);
  EXPECT_THAT(file.problems.at(0), HasSubstr("entry 1"));
  EXPECT_THAT(ParseVerbsYaml("device: a\n").problems, ElementsAre("verbs.yaml is no list of ports"));
  EXPECT_THAT(ParseVerbsYaml("- {device: [\n").problems, ElementsAre(HasSubstr("is not YAML")));
  EXPECT_THAT(ParseVerbsYaml(std::string(2 << 20, 'x')).problems, ElementsAre(HasSubstr("longer than")));
  EXPECT_THAT(ParseVerbsYaml(std::string(70'000, '[')).problems, ElementsAre(HasSubstr("longer than")));
}

TEST(VerbsYaml, SurvivesDamage) {
  std::string good;
  for (int i = 0; i < 8; ++i)
    good +=
        fmt::format("- {{device: \"mlx5_{}\", port: 1, link_layer: \"InfiniBand\", active_mtu: 4096}}\n", i);
  for (const std::uint64_t seed : test::Seeds(500)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    const VerbsFile file = ParseVerbsYaml(test::Damage(good, random));
    for (const auto& [port, told] : file.ports) EXPECT_GE(told.active_mtu, 256);
  }
}

// The RDMA MTU of InfiniBand is known by its driver alone.
TEST(RecordedMtus, AreThoseOfTheMachine) {
  test::MemoryFileTree files;
  test::Fill(test::ReadOf("hgx-h100"), files);
  std::string yaml;
  for (int i = 0; i < 8; ++i)
    yaml += fmt::format("- {{device: mlx5_{}, port: 1, link_layer: InfiniBand, active_mtu: {}}}\n", i,
                        i == 5 ? 2048 : 4096);
  files.Write("verbs.yaml", yaml);
  const auto look = [&files] {
    RecordedGpus gpus(files);
    Discovery discovery(files, gpus, RecordedLeaves(files), {"node-00", "", ""}, {});
    discovery.Ask(std::make_unique<RecordedMtus>(files));
    return discovery.Look();
  };
  Observation seen = look();
  EXPECT_EQ(seen.node.FindNic("mlx5_0")->ports.at(0).rdma_mtu, 4096);
  auto conditions = ConditionsOf(seen);
  const crds::Condition* equal = crds::FindCondition(conditions, kRdmaMtuEqual);
  ASSERT_NE(equal, nullptr);
  EXPECT_EQ(equal->reason, "MtuDiffers");
  EXPECT_THAT(equal->message, testing::StartsWith("mlx5_5 carries 2048 bytes"));
  files.Write("verbs.yaml", "- {device: mlx5_0, port: 1, link_layer: InfiniBand, active_mtu: 4096}\n");
  seen = look();
  EXPECT_EQ(seen.node.FindNic("mlx5_1")->ports.at(0).rdma_mtu, 0) << "nobody asked";
  files.Write("verbs.yaml", "{[");
  EXPECT_THAT(look().problems, ElementsAre(HasSubstr("verbs.yaml is not YAML")));
}

}  // namespace
}  // namespace heddle::nodeagent
