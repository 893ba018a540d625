#include "nodeagent/devices/plugins.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "devices/kubelet_double.h"
#include "recorded_machine.h"

namespace heddle::nodeagent {
namespace {

using std::chrono::milliseconds;
using test::KubeletDouble;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kResource = "heddle.dev/rail0";

Offer Nics(const std::vector<std::string>& names, const std::set<std::string>& broken = {}) {
  Offer offer;
  offer.resource = kResource;
  for (const std::string& name : names) {
    OfferedDevice device;
    device.id = name;
    device.nics = {name};
    device.gift.devices["/dev/infiniband/" + name] = "/host/" + name;
    if (broken.contains(name)) device.trouble = name + " port 1 is down";
    offer.devices.push_back(device);
  }
  return offer;
}

// An agent's device plugin on a folder, until it goes out of scope.
class Agent {
 public:
  Agent(const std::string& folder, std::vector<Offer> offers, Prefer prefer = {}) {
    PluginsOptions options;
    options.folder = folder;
    options.min_back_off = milliseconds(5);
    options.max_back_off = milliseconds(50);
    options.prefer = std::move(prefer);
    plugins_ = std::make_unique<Plugins>(clock_, base::Random(7), options, [this](const auto& standings) {
      const std::lock_guard lock(mutex_);
      standings_ = standings;
      changed_.notify_all();
    });
    plugins_->Set(std::move(offers));
    thread_ = std::jthread([this](std::stop_token stop) { plugins_->Run(std::move(stop)); });
  }
  Plugins& plugins() { return *plugins_; }
  bool WaitFor(const std::function<bool(const Standing&)>& as_wanted) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::minutes(1), [&] {
      return standings_.contains(kResource) && as_wanted(standings_.at(kResource));
    });
  }
  bool WaitForReason(const std::string& part) {
    return WaitFor([&](const Standing& standing) { return standing.reason.find(part) != std::string::npos; });
  }
  bool WaitTaken() {
    return WaitFor([](const Standing& standing) { return standing.taken && standing.reason.empty(); });
  }

 private:
  base::SystemClock clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Standing> standings_;
  std::unique_ptr<Plugins> plugins_;
  std::jthread thread_;
};

TEST(Plugins, OfferDevicesToTheKubeletAndTellItWhatChanges) {
  const test::TemporaryFolder folder;
  KubeletDouble kubelet(folder.path());
  kubelet.Start();
  Offer offer = Nics({"mlx5_0", "mlx5_1"});
  offer.devices[1].numa = 1;
  Agent agent(folder.path(), {offer});
  EXPECT_TRUE(kubelet.WaitFor(kResource, {"mlx5_0", "mlx5_1@1"}));
  EXPECT_TRUE(agent.WaitTaken());
  agent.plugins().Set({Nics({"mlx5_0", "mlx5_1"}, {"mlx5_0"})});
  EXPECT_TRUE(kubelet.WaitFor(kResource, {"mlx5_0!", "mlx5_1"}));
  agent.plugins().Set({Nics({"mlx5_0", "mlx5_1"})});
  EXPECT_TRUE(kubelet.WaitFor(kResource, {"mlx5_0", "mlx5_1"}));
  EXPECT_EQ(kubelet.registrations(kResource), 1);
}

TEST(Plugins, AllocateGivesDeviceNodesAndRefusesWhatIsNotThere) {
  const test::TemporaryFolder folder;
  KubeletDouble kubelet(folder.path());
  kubelet.Start();
  Offer offer = Nics({"mlx5_0", "mlx5_1"});
  offer.devices[0].gift.variables["A"] = "b";
  offer.devices[0].gift.folders["/etc/x"] = "/var/x";
  offer.devices[0].gift.cdi = {"nvidia.com/gpu=GPU-0"};
  Agent agent(folder.path(), {offer});
  ASSERT_TRUE(kubelet.WaitForCount(kResource, 2));
  v1beta1::ContainerAllocateResponse answer;
  ASSERT_TRUE(kubelet.Allocate(kResource, {"mlx5_1", "mlx5_0"}, answer).ok());
  ASSERT_EQ(answer.devices_size(), 2);
  EXPECT_EQ(answer.devices(0).container_path(), "/dev/infiniband/mlx5_0");
  EXPECT_EQ(answer.devices(0).host_path(), "/host/mlx5_0");
  EXPECT_EQ(answer.devices(0).permissions(), "rw");
  ASSERT_EQ(answer.mounts_size(), 1);
  EXPECT_TRUE(answer.mounts(0).read_only());
  EXPECT_EQ(answer.envs().at("A"), "b");
  EXPECT_EQ(answer.cdi_devices(0).name(), "nvidia.com/gpu=GPU-0");
  const grpc::Status refused = kubelet.Allocate(kResource, {"mlx5_7"}, answer);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(refused.error_message(), HasSubstr("heddle.dev/rail0 has no device \"mlx5_7\""));
}

TEST(Plugins, APreferenceIsPassedOnAndNeverAnError) {
  const test::TemporaryFolder folder;
  KubeletDouble kubelet(folder.path());
  kubelet.Start();
  Agent agent(folder.path(), {Nics({"mlx5_0", "mlx5_1"})},
              [](const Offer& offer, const PreferenceQuestion& question) -> std::vector<std::string> {
                if (offer.resource != kResource || question.size != 1) return {};
                return {question.available.back()};
              });
  ASSERT_TRUE(kubelet.WaitForCount(kResource, 2));
  EXPECT_THAT(kubelet.Prefer(kResource, {"mlx5_0", "mlx5_1"}, {}, 1), ElementsAre("mlx5_1"));
  EXPECT_THAT(kubelet.Prefer(kResource, {"mlx5_0", "mlx5_1"}, {}, 2), IsEmpty());
}

TEST(Plugins, RegisterAgainWithAKubeletThatStartedAnew) {
  const test::TemporaryFolder folder;
  KubeletDouble first(folder.path());
  first.Start();
  Agent agent(folder.path(), {Nics({"mlx5_0"})});
  ASSERT_TRUE(first.WaitForCount(kResource, 1));
  first.Stop();
  EXPECT_TRUE(agent.WaitForReason("kubelet"));
  KubeletDouble second(folder.path());
  second.Start();
  EXPECT_TRUE(second.WaitFor(kResource, {"mlx5_0"}));
  EXPECT_TRUE(agent.WaitTaken());
  // As after a crash: the sockets are deleted while the old one's streams are open still.
  KubeletDouble third(folder.path());
  third.Start();
  EXPECT_TRUE(third.WaitFor(kResource, {"mlx5_0"}));
}

TEST(Plugins, WaitForAKubeletThatComesLater) {
  const test::TemporaryFolder folder;
  Agent agent(folder.path(), {Nics({"mlx5_0"})});
  EXPECT_TRUE(agent.WaitForReason("no kubelet listens in"));
  KubeletDouble kubelet(folder.path());
  kubelet.Start();
  EXPECT_TRUE(kubelet.WaitFor(kResource, {"mlx5_0"}));
}

TEST(Plugins, SayWhyAKubeletRefusesAndGoOnTrying) {
  const test::TemporaryFolder folder;
  KubeletDouble old(folder.path());
  old.RefuseAll();
  old.Start();
  Agent agent(folder.path(), {Nics({"mlx5_0"})});
  EXPECT_TRUE(agent.WaitForReason("the kubelet does not take heddle.dev/rail0: requested API version"));
  old.Stop();
  KubeletDouble kubelet(folder.path());
  kubelet.Start();
  EXPECT_TRUE(kubelet.WaitFor(kResource, {"mlx5_0"}));
}

TEST(Plugins, AResourceThatIsNoLongerWantedGoesAndOneMoreComes) {
  const test::TemporaryFolder folder;
  KubeletDouble kubelet(folder.path());
  kubelet.Start();
  Agent agent(folder.path(), {Nics({"mlx5_0"})});
  ASSERT_TRUE(kubelet.WaitForCount(kResource, 1));
  Offer other = Nics({"mlx5_1"});
  other.resource = "heddle.dev/rail1";
  Offer refused = Nics({});
  refused.state = crds::DeviceState::kRefused;
  agent.plugins().Set({refused, other});
  EXPECT_TRUE(kubelet.WaitForGone(kResource));
  EXPECT_TRUE(kubelet.WaitFor("heddle.dev/rail1", {"mlx5_1"}));
}

TEST(Plugins, ResourcesThatDifferByADotOrADashDoNotTakeEachOthersSocket) {
  const test::TemporaryFolder folder;
  KubeletDouble kubelet(folder.path());
  kubelet.Start();
  std::vector<Offer> offers;
  for (const char* resource :
       {"heddle.dev/rail0", "heddle.dev/rail.0", "heddle.dev/rail-0", "heddle.dev/rail_0"}) {
    offers.push_back(Nics({"mlx5_" + std::to_string(offers.size())}));
    offers.back().resource = resource;
  }
  const Agent agent(folder.path(), offers);
  for (std::size_t i = 0; i < offers.size(); ++i)
    EXPECT_TRUE(kubelet.WaitFor(offers[i].resource, {"mlx5_" + std::to_string(i)}));
  std::size_t sockets = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    sockets += entry.path().filename().string().starts_with("heddle-") && entry.is_socket() ? 1 : 0;
  EXPECT_EQ(sockets, offers.size());
}

TEST(Plugins, TheSecondAgentOnAFolderWaitsForTheFirst) {
  const test::TemporaryFolder folder;
  KubeletDouble kubelet(folder.path());
  kubelet.Start();
  auto first = std::make_unique<Agent>(folder.path(), std::vector{Nics({"mlx5_0"})});
  ASSERT_TRUE(kubelet.WaitFor(kResource, {"mlx5_0"}));
  Agent second(folder.path(), {Nics({"mlx5_0", "mlx5_1"})});
  EXPECT_TRUE(second.WaitForReason("another heddle-nodeagent serves the device plugins in " + folder.path()));
  EXPECT_TRUE(kubelet.WaitFor(kResource, {"mlx5_0"}));
  first.reset();
  EXPECT_TRUE(kubelet.WaitFor(kResource, {"mlx5_0", "mlx5_1"}));
}

TEST(Plugins, ALockThatWasDeletedUnderAnAgentIsTakenAnewAndStillKeepsTheSecondOut) {
  const test::TemporaryFolder folder;
  KubeletDouble kubelet(folder.path());
  kubelet.Start();
  auto first = std::make_unique<Agent>(folder.path(), std::vector{Nics({"mlx5_0"})});
  ASSERT_TRUE(first->WaitTaken());
  ASSERT_TRUE(std::filesystem::remove(std::filesystem::path(folder.path()) / kLockFile));
  // Whoever offers this has looked at the lock after it was gone.
  first->plugins().Set({Nics({"mlx5_0", "mlx5_1"})});
  ASSERT_TRUE(kubelet.WaitFor(kResource, {"mlx5_0", "mlx5_1"}));
  Agent second(folder.path(), {Nics({"mlx5_2"})});
  EXPECT_TRUE(second.WaitForReason("another heddle-nodeagent serves the device plugins in " + folder.path()));
  EXPECT_TRUE(kubelet.WaitFor(kResource, {"mlx5_0", "mlx5_1"}));
  first.reset();
  EXPECT_TRUE(kubelet.WaitFor(kResource, {"mlx5_2"}));
}

TEST(Plugins, AnAgentWhoseLockAnotherTookAnewServesNoLonger) {
  const test::TemporaryFolder folder;
  KubeletDouble kubelet(folder.path());
  kubelet.Start();
  Agent agent(folder.path(), {Nics({"mlx5_0"})});
  ASSERT_TRUE(agent.WaitTaken());
  const std::filesystem::path lock = std::filesystem::path(folder.path()) / kLockFile;
  const std::string others = folder.path() + "/others.lock";
  const int held = ::open(others.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(held, 0);
  ASSERT_EQ(::flock(held, LOCK_EX | LOCK_NB), 0);
  std::filesystem::rename(others, lock);
  EXPECT_TRUE(agent.WaitForReason("another heddle-nodeagent serves the device plugins in " + folder.path()));
  ::close(held);
  EXPECT_TRUE(agent.WaitTaken());
}

TEST(Plugins, ASocketThatSomebodyDeletesIsMadeAnew) {
  const test::TemporaryFolder folder;
  KubeletDouble kubelet(folder.path());
  kubelet.Start();
  Agent agent(folder.path(), {Nics({"mlx5_0"})});
  ASSERT_TRUE(kubelet.WaitForCount(kResource, 1));
  const std::filesystem::path socket = std::filesystem::path(folder.path()) / "heddle-heddle.dev_rail0.sock";
  ASSERT_TRUE(std::filesystem::is_socket(socket));
  std::filesystem::remove(socket);
  EXPECT_TRUE(kubelet.WaitForRegistrations(kResource, 2));
  EXPECT_TRUE(kubelet.WaitFor(kResource, {"mlx5_0"}));
  EXPECT_TRUE(std::filesystem::is_socket(socket));
}

TEST(Plugins, TellTheKubeletAnewWhatItLost) {
  const test::TemporaryFolder folder;
  KubeletDouble kubelet(folder.path());
  kubelet.Start();
  Agent agent(folder.path(), {Nics({"mlx5_0"})});
  ASSERT_TRUE(kubelet.WaitForCount(kResource, 1));
  agent.plugins().Renew(kResource);
  EXPECT_TRUE(kubelet.WaitForRegistrations(kResource, 2));
  EXPECT_TRUE(kubelet.WaitFor(kResource, {"mlx5_0"}));
}

TEST(Plugins, AFolderThatIsNotThereIsAReason) {
  const test::TemporaryFolder folder;
  Agent agent(folder.path() + "/away", {Nics({"mlx5_0"})});
  EXPECT_TRUE(agent.WaitForReason("mount the kubelet's folder of device plugins"));
}

TEST(Plugins, AnAgentThatWasKilledLeavesASocketThatTheNextReplaces) {
  const test::TemporaryFolder folder;
  KubeletDouble kubelet(folder.path());
  kubelet.Start();
  std::ofstream(folder.path() + "/heddle-heddle.dev_rail0.sock") << "left";
  Agent agent(folder.path(), {Nics({"mlx5_0"})});
  EXPECT_TRUE(kubelet.WaitFor(kResource, {"mlx5_0"}));
}

}  // namespace
}  // namespace heddle::nodeagent
