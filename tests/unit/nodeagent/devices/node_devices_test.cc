#include "nodeagent/devices/node_devices.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "crds/device_conditions.h"
#include "devices/kubelet_double.h"
#include "recorded_machine.h"

namespace heddle::nodeagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kFabric = "heddle.dev/fabric";
constexpr const char* kResource = "heddle.dev/nic";
constexpr const char* kBootId = "proc/sys/kernel/random/boot_id";

// What the kubelet says of who holds what.
class Holders final : public GrantSource {
 public:
  GrantReadings Read(std::stop_token) override {
    const std::lock_guard lock(mutex_);
    return readings_;
  }
  void Give(const std::string& pod, const std::string& id) {
    const std::lock_guard lock(mutex_);
    readings_.containers.push_back({"train", pod, "w", {{kResource, false, {id}}}});
  }
  void BeAway() {
    const std::lock_guard lock(mutex_);
    readings_ = GrantReadings();
    readings_.state = GrantsState::kNoAnswer;
  }
  Holders() { readings_.state = GrantsState::kRead; }

 private:
  std::mutex mutex_;
  GrantReadings readings_;
};

class NodeDevicesTest : public testing::Test {
 protected:
  NodeDevicesTest() : kubelet_(plugins_.path()), seen_(test::RecordedMachine("hgx-h100").Look()) {
    kubelet_.Start();
    int number = 0;
    for (const topology::Nic& nic : seen_.node.nics) {
      files_.Write("sys/class/infiniband_verbs/uverbs" + std::to_string(number++) + "/ibdev",
                   nic.name + "\n");
      if (nic.role == topology::NicRole::kCompute) nics_.push_back(nic.name);
    }
  }
  ~NodeDevicesTest() override { Stop(); }

  NodeDevices& Start(bool plans = false) {
    NodeDevicesOptions options;
    options.plugins.folder = plugins_.path();
    options.plugins.min_back_off = std::chrono::milliseconds(5);
    options.state = state_.path();
    options.kubelet = &holders_;
    options.on_doubt = [this](const std::string& note) {
      const std::lock_guard lock(mutex_);
      doubts_.push_back(note);
    };
    if (plans)
      options.pods = [this] {
        const std::lock_guard lock(mutex_);
        return pods_;
      };
    devices_ =
        std::make_unique<NodeDevices>(files_, clock_, base::Random(3), options, [this](const auto& news) {
          const std::lock_guard lock(mutex_);
          news_ = news;
          for (const crds::DeviceReport& report : news.reports) states_.insert(report.state);
          changed_.notify_all();
        });
    thread_ = std::jthread([this](std::stop_token stop) { devices_->Run(std::move(stop)); });
    return *devices_;
  }
  void Stop() {
    thread_ = {};
    devices_.reset();
  }
  crds::DeviceWish Nics() const {
    crds::DeviceWish wish;
    wish.resource = kResource;
    wish.policies = {"all"};
    wish.generation = 4;
    wish.mode = crds::DeviceMode::kNics;
    for (const std::string& nic : nics_) wish.ports.push_back(nic + ":1");
    return wish;
  }
  bool WaitForNews(const std::function<bool(const DeviceNews&)>& as_wanted) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::minutes(1), [&] { return as_wanted(news_); });
  }
  bool WaitForReport(crds::DeviceState state, int healthy) {
    return WaitForNews([&](const DeviceNews& news) {
      return news.reports.size() == 1 && news.reports[0].state == state && news.reports[0].healthy == healthy;
    });
  }
  void AddPod(const std::string& name, const std::string& gpu, const std::string& nic,
              const std::string& created = "2026-01-31T12:00:00Z", const std::string& version = "") {
    kube::Json pod = kube::Json::parse(R"({"metadata": {"namespace": "train"}, "spec": {"containers": [
        {"name": "w", "resources": {"limits": {"heddle.dev/nic": "1"}}}]}})");
    pod["metadata"]["name"] = name;
    pod["metadata"]["creationTimestamp"] = created;
    if (!version.empty()) pod["metadata"]["resourceVersion"] = version;
    pod["metadata"]["annotations"] = {{"heddle.dev/gpus", gpu}, {"heddle.dev/nics", nic}};
    const std::lock_guard lock(mutex_);
    pods_.push_back(std::make_shared<const kube::Json>(std::move(pod)));
  }
  std::map<int, std::string> ByRail() const {
    std::map<int, std::string> names;
    for (const topology::Nic& nic : seen_.node.nics) {
      if (nic.role == topology::NicRole::kCompute) names[nic.rail.value_or(-1)] = nic.name;
    }
    return names;
  }
  std::string Conf() const {
    std::ostringstream text;
    text << std::ifstream(state_.path() + "/nccl/nccl.conf").rdbuf();
    return text.str();
  }

  base::SystemClock clock_;
  test::TemporaryFolder plugins_, state_;
  test::MemoryFileTree files_;
  test::KubeletDouble kubelet_;
  Observation seen_;
  std::vector<std::string> nics_;
  Holders holders_;
  std::mutex mutex_;
  std::condition_variable changed_;
  DeviceNews news_;
  std::set<crds::DeviceState> states_;  // of any report so far
  std::vector<kube::ObjectPtr> pods_;
  std::vector<std::string> doubts_;
  std::unique_ptr<NodeDevices> devices_;
  std::jthread thread_;
};

TEST_F(NodeDevicesTest, OffersFabricOnceTheFilesAreThere) {
  NodeDevices& devices = Start();
  EXPECT_EQ(kubelet_.registrations(kFabric), 0);
  devices.Look(seen_);
  EXPECT_TRUE(kubelet_.WaitForCount(kFabric, 250));
  EXPECT_THAT(Conf(), HasSubstr("NCCL_IB_HCA==mlx5_"));
  EXPECT_TRUE(WaitForNews([](const DeviceNews& news) {
    return news.conditions.size() == 1 && news.conditions[0].status == crds::ConditionStatus::kTrue &&
           news.conditions[0].message == "pods with heddle.dev/fabric find them in /etc/heddle/nccl";
  }));
}

TEST_F(NodeDevicesTest, AMachineThatHidesItsPcieTreeHasItAsAFile) {
  seen_.nccl_topology = "<system version=\"1\"/>\n";
  NodeDevices& devices = Start();
  devices.Look(seen_);
  EXPECT_THAT(Conf(), HasSubstr("NCCL_TOPO_FILE=/etc/heddle/nccl/topology.xml\n"));
  EXPECT_TRUE(std::filesystem::is_regular_file(state_.path() + "/nccl/topology.xml"));
  seen_.nccl_topology.clear();
  devices.Look(seen_);
  EXPECT_THAT(Conf(), testing::Not(HasSubstr("NCCL_TOPO_FILE")));
  EXPECT_FALSE(std::filesystem::exists(state_.path() + "/nccl/topology.xml"));
}

TEST_F(NodeDevicesTest, MarksAsTheLosslessPolicySays) {
  NodeDevices& devices = Start();
  for (topology::Nic& nic : seen_.node.nics) {
    if (nic.transport == topology::Transport::kInfiniBand) nic.transport = topology::Transport::kRoce;
  }
  devices.Look(seen_);
  EXPECT_THAT(Conf(), testing::Not(HasSubstr("NCCL_IB_TC")));
  crds::LosslessWish wish;
  wish.policies = {"roce"};
  wish.mode = crds::LosslessMode::kApply;
  for (const std::string& nic : nics_) wish.ports.push_back(nic + ":1");
  wish.settings.emplace().traffic_class = 106;
  devices.Wish({}, {wish});
  EXPECT_THAT(Conf(), HasSubstr("# NCCL_IB_TC is left out: "));
  crds::LosslessReport report;
  report.ports = wish.ports;
  report.edition.policy = "roce";
  report.state = crds::LosslessState::kCompliant;
  devices.Read({report});
  EXPECT_THAT(Conf(), HasSubstr("NCCL_IB_TC=106\n"));
  // Pods that start while a new agent knows no spec and has read no port find what the one before proved.
  Stop();
  NodeDevices& next = Start();
  next.Look(seen_);
  EXPECT_THAT(Conf(), HasSubstr("NCCL_IB_TC=106\n"));
  next.Wish({}, {wish});
  EXPECT_THAT(Conf(), HasSubstr("NCCL_IB_TC=106\n"));
  report.state = crds::LosslessState::kDrifted;
  report.drift = {{{lossless::Setting::kTrust, "DSCP", "PCP"}, {}, {}}};
  next.Read({report});
  EXPECT_THAT(Conf(), testing::Not(HasSubstr("NCCL_IB_TC=")));
  EXPECT_THAT(Conf(), HasSubstr("has another trust than that"));
}

TEST_F(NodeDevicesTest, AnAgentThatStartsAgainOffersFabricBeforeItHasLooked) {
  Start().Look(seen_);
  ASSERT_TRUE(kubelet_.WaitForCount(kFabric, 250));
  Stop();
  ASSERT_TRUE(kubelet_.WaitForGone(kFabric));
  Start();
  EXPECT_TRUE(kubelet_.WaitForCount(kFabric, 250));
}

// Drivers are back at their defaults then: what was proved of the ports is of before.
TEST_F(NodeDevicesTest, AfterARebootTheFilesOfBeforeAreNeitherOfferedNorKept) {
  files_.Write(kBootId, "boot-1\n");
  for (topology::Nic& nic : seen_.node.nics) {
    if (nic.transport == topology::Transport::kInfiniBand) nic.transport = topology::Transport::kRoce;
  }
  crds::LosslessWish wish;
  wish.policies = {"roce"};
  for (const std::string& nic : nics_) wish.ports.push_back(nic + ":1");
  wish.settings.emplace().traffic_class = 106;
  crds::LosslessReport report;
  report.ports = wish.ports;
  report.edition.policy = "roce";
  report.state = crds::LosslessState::kCompliant;
  NodeDevices& before = Start();
  before.Wish({}, {wish});
  before.Look(seen_);
  before.Read({report});
  EXPECT_THAT(Conf(), HasSubstr("NCCL_IB_TC=106\n"));
  EXPECT_THAT(Conf(), testing::EndsWith("# Written in boot boot-1.\n"));
  ASSERT_TRUE(kubelet_.WaitForCount(kFabric, 250));
  Stop();
  ASSERT_TRUE(kubelet_.WaitForGone(kFabric));
  const int registrations = kubelet_.registrations(kFabric);
  files_.Write(kBootId, "boot-2\n");
  NodeDevices& after = Start();
  after.Wish({}, {wish});
  EXPECT_EQ(kubelet_.registrations(kFabric), registrations) << "nothing of this boot is written";
  after.Look(seen_);
  EXPECT_TRUE(kubelet_.WaitForCount(kFabric, 250));
  EXPECT_THAT(Conf(), testing::Not(HasSubstr("NCCL_IB_TC=")));
  EXPECT_THAT(Conf(), testing::EndsWith("# Written in boot boot-2.\n"));
  after.Read({report});
  EXPECT_THAT(Conf(), HasSubstr("NCCL_IB_TC=106\n"));
}

// As versions before the line wrote it: an upgrade takes no marks from pods that start meanwhile.
TEST_F(NodeDevicesTest, AFileThatTellsNoBootIsOfferedAndKeptUntilThePortsAreRead) {
  files_.Write(kBootId, "boot-1\n");
  std::filesystem::create_directories(state_.path() + "/nccl");
  std::ofstream(state_.path() + "/nccl/nccl.conf") << "NCCL_IB_TC=106\n";
  NodeDevices& upgraded = Start();
  EXPECT_TRUE(kubelet_.WaitForCount(kFabric, 250)) << "before the first look";
  upgraded.Look(seen_);
  EXPECT_EQ(Conf(), "NCCL_IB_TC=106\n");
  upgraded.Wish({}, {});
  EXPECT_THAT(Conf(), testing::EndsWith("# Written in boot boot-1.\n"));
  EXPECT_THAT(Conf(), testing::Not(HasSubstr("NCCL_IB_TC="))) << "no policy marks any more";
}

TEST_F(NodeDevicesTest, VirtualFunctionsOfANicAreInTheFileOnceTheyAreThere) {
  const auto compute = std::find_if(seen_.node.nics.begin(), seen_.node.nics.end(),
                                    [this](const auto& nic) { return nic.name == nics_[0]; });
  const std::string pci = "sys/bus/pci/devices/";
  files_.Link(pci + compute->pci + "/virtfn0", "../0000:f0:00.2");
  files_.MakeFolder(pci + "0000:f0:00.2/infiniband/mlx5_90");
  NodeDevices& devices = Start();
  devices.Look(seen_);
  EXPECT_THAT(Conf(), HasSubstr(fmt::format(",mlx5_90:1:{}", compute->rail.value_or(-1))));
}

TEST_F(NodeDevicesTest, OffersWhatTheSpecWantsAndReportsIt) {
  NodeDevices& devices = Start();
  devices.Wish({Nics()}, {});
  devices.Look(seen_);
  ASSERT_TRUE(kubelet_.WaitForCount(kResource, 8));
  ASSERT_TRUE(WaitForReport(crds::DeviceState::kOffered, 8));
  {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(news_.reports[0].edition.policy, "all");
    EXPECT_EQ(news_.reports[0].edition.generation, 4);
    EXPECT_EQ(news_.reports[0].reason, "");
  }
  devices.Wish({}, {});
  EXPECT_TRUE(kubelet_.WaitForGone(kResource));
  EXPECT_TRUE(WaitForNews([](const DeviceNews& news) { return news.reports.empty(); }));
}

TEST_F(NodeDevicesTest, WithdrawsAPortAndRestoresIt) {
  NodeDevices& devices = Start();
  devices.Wish({Nics()}, {});
  devices.Look(seen_);
  ASSERT_TRUE(WaitForReport(crds::DeviceState::kOffered, 8));
  devices.Withdraw(nics_[3] + ":1", "its QoS is being set");
  EXPECT_TRUE(WaitForReport(crds::DeviceState::kOffered, 7));
  EXPECT_TRUE(
      WaitForNews([](const DeviceNews& news) { return news.reports[0].reason == "its QoS is being set"; }));
  EXPECT_TRUE(devices.Withdrawn(nics_[3] + ":1"));
  devices.Restore(nics_[3] + ":1");
  EXPECT_FALSE(devices.Withdrawn(nics_[3] + ":1"));
  EXPECT_TRUE(WaitForReport(crds::DeviceState::kOffered, 8));
}

TEST_F(NodeDevicesTest, IsPendingWhileTheKubeletIsAway) {
  NodeDevices& devices = Start();
  devices.Wish({Nics()}, {});
  devices.Look(seen_);
  ASSERT_TRUE(WaitForReport(crds::DeviceState::kOffered, 8));
  kubelet_.Stop();
  EXPECT_TRUE(WaitForReport(crds::DeviceState::kPending, 8));
  EXPECT_TRUE(WaitForNews([](const DeviceNews& news) { return !news.reports[0].reason.empty(); }));
}

TEST_F(NodeDevicesTest, FollowsThePlanOfThePodThatTheKubeletHasNotServedYet) {
  NodeDevices& devices = Start(true);
  devices.Wish({Nics()}, {});
  devices.Look(seen_);
  ASSERT_TRUE(kubelet_.WaitForCount(kResource, 8));
  AddPod("a", "5", nics_[5]);
  EXPECT_THAT(kubelet_.Prefer(kResource, nics_, {}, 1), ElementsAre(nics_[5]));
  holders_.Give("a", nics_[5]);
  AddPod("b", "2", nics_[2]);
  EXPECT_THAT(kubelet_.Prefer(kResource, {nics_[0], nics_[2]}, {}, 1), ElementsAre(nics_[2]));
  // Who holds what is not known: then nobody is meant.
  holders_.BeAway();
  EXPECT_THAT(kubelet_.Prefer(kResource, {nics_[0], nics_[2]}, {}, 1), ElementsAre(nics_[0]));
}

// Pods with GPUs of the vendor's plugin and a NIC of ours, which come at once: the kubelet names neither.
TEST_F(NodeDevicesTest, OfTwoPodsAtOnceTheOneThatWasBoundFirstIsMeantAndEachHasTheNicOfItsGpu) {
  NodeDevices& devices = Start(true);
  devices.Wish({Nics()}, {});
  devices.Look(seen_);
  ASSERT_TRUE(kubelet_.WaitForCount(kResource, 8));
  const std::map<int, std::string> by_rail = ByRail();
  AddPod("second", "2", by_rail.at(2), "2026-01-31T12:00:00Z", "12");
  AddPod("first", "5", by_rail.at(5), "2026-01-31T12:00:00Z", "11");
  EXPECT_THAT(kubelet_.Prefer(kResource, nics_, {}, 1), ElementsAre(by_rail.at(5)));
  holders_.Give("first", by_rail.at(5));
  std::vector<std::string> left = nics_;
  std::erase(left, by_rail.at(5));
  EXPECT_THAT(kubelet_.Prefer(kResource, left, {}, 1), ElementsAre(by_rail.at(2)));
  const std::lock_guard lock(mutex_);
  EXPECT_THAT(doubts_, IsEmpty()) << "the order in which they were bound is known";
}

TEST_F(NodeDevicesTest, OfTwoPodsWhoseOrderIsInDoubtNoPlanIsFollowedAndBothAreNamed) {
  NodeDevices& devices = Start(true);
  devices.Wish({Nics()}, {});
  devices.Look(seen_);
  ASSERT_TRUE(kubelet_.WaitForCount(kResource, 8));
  const std::map<int, std::string> by_rail = ByRail();
  AddPod("older", "2", by_rail.at(2), "2026-01-31T12:00:00Z", "12");
  AddPod("younger", "5", by_rail.at(5), "2026-01-31T12:00:01Z", "11");
  const std::vector<std::string> given = kubelet_.Prefer(kResource, nics_, {}, 1);
  ASSERT_EQ(given.size(), 1U);
  EXPECT_NE(given[0], by_rail.at(2));
  EXPECT_NE(given[0], by_rail.at(5));
  {
    const std::lock_guard lock(mutex_);
    EXPECT_THAT(
        doubts_,
        ElementsAre("heddle.dev/nic " + given[0] +
                    ": no plan is followed, because train/younger was bound before train/older and made "
                    "after it. What each got is compared (DevicesAsPlanned); delete a pod that "
                    "differs to have it placed anew. They may be for train/younger, "
                    "train/older"));
    doubts_.clear();
  }
  holders_.Give("younger", given[0]);
  std::vector<std::string> left = nics_;
  std::erase(left, given[0]);
  EXPECT_THAT(kubelet_.Prefer(kResource, left, {}, 1), ElementsAre(by_rail.at(2)));
  const std::lock_guard lock(mutex_);
  EXPECT_THAT(doubts_, IsEmpty()) << "only one can be meant by now";
}

TEST_F(NodeDevicesTest, SaysWhatDiffersFromThePlanAndWhatAPodLacks) {
  NodeDevices& devices = Start(true);
  devices.Wish({Nics()}, {});
  devices.Look(seen_);
  AddPod("a", "5", nics_[5]);
  GrantReadings readings;
  readings.state = GrantsState::kRead;
  readings.containers = {{"train", "a", "w", {{kResource, false, {nics_[4]}}}}};
  devices.Hear(readings);
  devices.PodsChanged();
  EXPECT_TRUE(WaitForNews([&](const DeviceNews& news) {
    const auto* planned = crds::FindCondition(news.conditions, crds::kDevicesAsPlanned);
    const auto* complete = crds::FindCondition(news.conditions, kRdmaPodsComplete);
    return planned != nullptr && planned->status == crds::ConditionStatus::kFalse &&
           planned->message.find("train/a holds " + nics_[4] + " where its plan says " + nics_[5]) == 0 &&
           complete != nullptr && complete->message.find("train/a: container w may not pin memory") == 0;
  }));
}

// An agent that starts again hears of pods before it has looked, and a policy may go while pods hold its devices.
TEST_F(NodeDevicesTest, NamesWhatPodsHoldOnceItKnowsItsDevicesAndAlsoUnderAnotherPolicy) {
  NodeDevices& devices = Start();
  GrantReadings readings;
  readings.state = GrantsState::kRead;
  readings.containers = {{"train", "a", "w", {{kResource, false, {"node"}}}}};
  devices.Hear(readings);
  const std::pair<std::string, std::string> id(kResource, "node");
  EXPECT_FALSE(readings.own.contains(id));
  crds::DeviceWish wish = Nics();
  wish.mode = crds::DeviceMode::kWholeNode;
  devices.Wish({wish}, {});
  devices.Look(seen_);
  EXPECT_TRUE(WaitForNews([&](const DeviceNews& news) {
    const auto own = news.own.find(id);
    return own != news.own.end() && own->second.size() == nics_.size();
  }));
  const std::string first = nics_.front() + ":1", last = nics_.back() + ":1";
  EXPECT_THAT(devices.Holders(last), ElementsAre("train/a"));
  devices.Wish({}, {});
  devices.Hear(readings);
  EXPECT_TRUE(readings.own.contains(id)) << "the container has them still";
  EXPECT_THAT(devices.Holders(last), ElementsAre("train/a"));
  wish.ports.pop_back();
  devices.Wish({wish}, {});
  EXPECT_THAT(devices.Holders(last), ElementsAre("train/a")) << "it got them when they were in it";
  readings.containers[0].pod = "b";
  devices.Hear(readings);
  EXPECT_THAT(devices.Holders(last), IsEmpty());
  EXPECT_THAT(devices.Holders(first), ElementsAre("train/b"));
}

TEST_F(NodeDevicesTest, SaysWhenAnotherPluginHasTheResource) {
  NodeDevices& devices = Start();
  devices.Wish({Nics()}, {});
  devices.Look(seen_);
  ASSERT_TRUE(WaitForReport(crds::DeviceState::kOffered, 8));
  EXPECT_EQ(devices.Leak(), "");
  GrantReadings readings;
  readings.state = GrantsState::kRead;
  readings.allocatable = {{kResource, false, {"0", nics_[0]}}, {"other/thing", false, {"1"}}};
  devices.Hear(readings);
  EXPECT_EQ(devices.Leak(), "") << "once may be what was offered before";
  devices.Hear(readings);
  EXPECT_TRUE(WaitForReport(crds::DeviceState::kElsewhere, 0)) << "a pod may get what is none of ours";
  EXPECT_EQ(devices.Leak(), "heddle.dev/nic is offered by another plugin, which cannot be told");
  readings.allocatable = {{kResource, false, nics_}};
  devices.Hear(readings);
  EXPECT_TRUE(WaitForReport(crds::DeviceState::kOffered, 8));
}

TEST_F(NodeDevicesTest, SaysOfAnotherPluginsResourceWhatTheKubeletHas) {
  NodeDevices& devices = Start();
  crds::DeviceWish wish = Nics();
  wish.plugin = crds::DevicePlugin::kRdmaShared;
  devices.Wish({wish}, {});
  devices.Look(seen_);
  EXPECT_TRUE(WaitForReport(crds::DeviceState::kPending, 0)) << "the kubelet has not said anything";
  GrantReadings readings;
  readings.state = GrantsState::kRead;
  readings.allocatable = {{kResource, false, {"0", "1"}}};
  devices.Hear(readings);
  EXPECT_TRUE(WaitForReport(crds::DeviceState::kElsewhere, 2));
  readings.allocatable = std::vector<DeviceSet>();
  devices.Hear(readings);
  EXPECT_TRUE(WaitForReport(crds::DeviceState::kPending, 0)) << "its plugin went";
  EXPECT_EQ(kubelet_.registrations(kResource), 0);
}

TEST_F(NodeDevicesTest, AnAgentThatStartsAgainKeepsWhatWasSaidOfAnotherPluginUntilTheKubeletAnswers) {
  seen_.boot_id = "boot-1";
  NodeDevices& devices = Start();
  crds::DeviceWish wish = Nics();
  wish.plugin = crds::DevicePlugin::kRdmaShared;
  devices.Restore(
      {{kResource, {"all", 4, {}}, crds::DeviceState::kElsewhere, "its plugin is RdmaShared", 2, 2}},
      "boot-1");
  devices.Wish({wish}, {});
  devices.Look(seen_);
  EXPECT_TRUE(WaitForReport(crds::DeviceState::kElsewhere, 2));
  GrantReadings readings;
  readings.state = GrantsState::kNoAnswer;
  devices.Hear(readings);
  {
    const std::lock_guard lock(mutex_);
    EXPECT_THAT(states_, ElementsAre(crds::DeviceState::kElsewhere)) << "the policy would go Waiting";
  }
  readings.state = GrantsState::kRead;
  readings.allocatable = std::vector<DeviceSet>();
  devices.Hear(readings);
  EXPECT_TRUE(WaitForReport(crds::DeviceState::kPending, 0)) << "the kubelet knows better";
}

TEST_F(NodeDevicesTest, WhatWasSaidBeforeARebootOrOfAnotherGenerationOfThePolicyIsNotKept) {
  seen_.boot_id = "boot-2";
  NodeDevices& devices = Start();
  crds::DeviceWish wish = Nics();
  wish.plugin = crds::DevicePlugin::kRdmaShared;
  crds::DeviceReport report{
      kResource, {"all", 4, {}}, crds::DeviceState::kElsewhere, "its plugin is RdmaShared", 2, 2};
  devices.Restore({report}, "boot-1");
  devices.Wish({wish}, {});
  devices.Look(seen_);
  EXPECT_TRUE(WaitForReport(crds::DeviceState::kPending, 0));
  {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(news_.reports[0].reason,
              "its plugin is RdmaShared, and the kubelet has not answered this agent yet; it is asked again "
              "within 30 s (condition GrantsKnown)");
  }
  report.edition.generation = 3;
  devices.Restore({report}, "boot-2");
  devices.Wish({wish}, {});
  const std::lock_guard lock(mutex_);
  EXPECT_THAT(states_, ElementsAre(crds::DeviceState::kPending));
}

TEST_F(NodeDevicesTest, AnAgentThatStartsAgainStaysOfferedWhileTheKubeletIsBeingAsked) {
  seen_.boot_id = "boot-1";
  NodeDevices& devices = Start();
  devices.Restore({{kResource, {"all", 4, {}}, crds::DeviceState::kOffered, "", 8, 8}}, "boot-1");
  devices.Wish({Nics()}, {});
  devices.Look(seen_);
  ASSERT_TRUE(kubelet_.WaitForCount(kResource, 8));
  ASSERT_TRUE(WaitForReport(crds::DeviceState::kOffered, 8));
  {
    const std::lock_guard lock(mutex_);
    EXPECT_THAT(states_, ElementsAre(crds::DeviceState::kOffered)) << "the policy would go Waiting";
  }
  kubelet_.Stop();
  EXPECT_TRUE(WaitForReport(crds::DeviceState::kPending, 8)) << "what was said before holds no longer";
}

TEST_F(NodeDevicesTest, OffersAnewWhatTheKubeletTookAndDoesNotHave) {
  NodeDevices& devices = Start();
  devices.Wish({Nics()}, {});
  devices.Look(seen_);
  ASSERT_TRUE(WaitForReport(crds::DeviceState::kOffered, 8));
  GrantReadings readings;
  readings.state = GrantsState::kRead;
  readings.allocatable = {{kFabric, false, {"fabric::0"}}};
  devices.Hear(readings);
  devices.Hear(readings);
  EXPECT_TRUE(kubelet_.WaitForRegistrations(kResource, 2));
  EXPECT_EQ(kubelet_.registrations(kFabric), 1);
}

TEST_F(NodeDevicesTest, AStateFolderThatCannotBeWrittenIsSaidAndTriedAgain) {
  std::ofstream(state_.path() + "/nccl") << "in the way";
  NodeDevices& devices = Start();
  devices.Look(seen_);
  EXPECT_TRUE(WaitForNews([](const DeviceNews& news) {
    return news.conditions.size() == 1 && news.conditions[0].status == crds::ConditionStatus::kFalse;
  }));
  std::filesystem::remove(state_.path() + "/nccl");
  devices.Look(seen_);
  EXPECT_TRUE(kubelet_.WaitForCount(kFabric, 250));
}

}  // namespace
}  // namespace heddle::nodeagent
