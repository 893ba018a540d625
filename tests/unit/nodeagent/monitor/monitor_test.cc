#include "nodeagent/monitor/monitor.h"

#include <gmock/gmock.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

#include "nodeagent/discovery/machine.h"
#include "recorded_machine.h"
#include "stubborn_files.h"
#include "tests/support/fake_clock.h"

namespace heddle::nodeagent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Contains;
using testing::HasSubstr;
using topology::LinkFault;
using topology::LinkState;

// The kernel, as far as a test lets it speak.
class FakeKernelEvents final : public KernelEvents {
 public:
  std::vector<KernelEvent> Wait(std::stop_token stop) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [this] { return !said_.empty(); });
    return std::exchange(said_, {});
  }
  std::vector<KernelSourceState> States() const override {
    const std::lock_guard lock(mutex_);
    return states_;
  }
  void Watch(const std::set<std::string>& rdma_devices) override {
    const std::lock_guard lock(mutex_);
    watched_ = rdma_devices;
  }
  void Say(KernelEvent event) {
    const std::lock_guard lock(mutex_);
    said_.push_back(std::move(event));
    changed_.notify_all();
  }
  void Close(const std::string& source, const std::string& why) {
    const std::lock_guard lock(mutex_);
    states_.push_back({source, why});
  }
  std::set<std::string> watched() const {
    const std::lock_guard lock(mutex_);
    return watched_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<KernelEvent> said_;
  std::vector<KernelSourceState> states_;
  std::set<std::string> watched_;
};

// A driver that answers until it is told to hang, and then waits to be let go.
class StubbornGpus final : public GpuSource {
 public:
  explicit StubbornGpus(const base::FileTree& files) : recorded_(files) {}
  ~StubbornGpus() override { ::close(news_); }
  GpuReadings Read() override {
    std::unique_lock lock(mutex_);
    ++asked_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !hangs_; });
    return recorded_.Read();
  }
  void Hang(bool hangs) {
    const std::lock_guard lock(mutex_);
    hangs_ = hangs;
    changed_.notify_all();
  }
  int asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  int news() const override { return news_; }
  void Speak() const {
    constexpr std::uint64_t kOne = 1;
    EXPECT_EQ(::write(news_, &kOne, sizeof kOne), ssize_t(sizeof kOne));
  }

 private:
  const int news_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  RecordedGpus recorded_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool hangs_ = false;
  int asked_ = 0;
};

// Leaves that tell what a test lets them count.
class FakeLeaves final : public LeafCountSource {
 public:
  std::vector<LeafCounts> Read(const std::vector<RdmaPortName>& ports) override {
    std::unique_lock lock(mutex_);
    ++asked_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !hangs_; });
    ports_ = ports;
    std::vector<LeafCounts> read;
    for (const auto& [device, port] : ports) {
      if (device != "mlx5_3") continue;
      LeafCounts counts{device, port, "su1-r3", "0x1", 18, 12, false, {}, ""};
      counts.counts = {{"link_downed", std::uint64_t(downs_)}};
      read.push_back(std::move(counts));
    }
    return read;
  }
  void Count(int downs) {
    const std::lock_guard lock(mutex_);
    downs_ = downs;
  }
  void Hang(bool hangs) {
    const std::lock_guard lock(mutex_);
    hangs_ = hangs;
    changed_.notify_all();
  }
  int asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  std::vector<RdmaPortName> ports() const {
    const std::lock_guard lock(mutex_);
    return ports_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<RdmaPortName> ports_;
  bool hangs_ = false;
  int downs_ = 0, asked_ = 0;
};

const KernelEvent kCarrierLost{KernelEvent::Kind::kInterface, "eth3", "carrier lost", true};
const KernelEvent kKeys{KernelEvent::Kind::kPort, "mlx5_3 port 1", "partition keys changed", false};

class MonitorTest : public testing::Test {
 protected:
  MonitorTest() {
    const std::string counters = recorded_.path() + "/sys/class/infiniband/mlx5_3/ports/1/counters";
    std::filesystem::create_directories(counters);
    Downed(0);
    State("4: ACTIVE\n");
  }
  ~MonitorTest() override {
    gpus_.Hang(false);
    leaves_.Hang(false);
    counted_.Hang(false);
    thread_ = {};
    Downed(0);
    State("4: ACTIVE\n");
    recorded_.Write("nvml.yaml", nvml_);
  }

  // `leaves`: whether they are asked, which makes passes of its own accord.
  void Start(MonitorOptions options = {}, bool leaves = false) {
    monitor_ = std::make_unique<Monitor>(discovery_, reader_, &kernel_, clock_, options,
                                         leaves ? &leaves_ : nullptr);
    MonitorCallbacks callbacks;
    callbacks.on_sight = [this](const SightPtr& sight) {
      const std::lock_guard lock(mutex_);
      sights_.push_back(sight);
      changed_.notify_all();
    };
    callbacks.on_pass = [this](Pass pass, auto) {
      const std::lock_guard lock(mutex_);
      if (pass != Pass::kLeafPass) (pass == Pass::kLook ? looks_ : passes_) += 1;
      changed_.notify_all();
    };
    callbacks.on_events = [this](const std::vector<KernelEvent>& events) {
      const std::lock_guard lock(mutex_);
      heard_ += events.size();
      changed_.notify_all();
    };
    thread_ = std::jthread([this, callbacks](std::stop_token stop) { monitor_->Run(callbacks, stop); });
  }
  void State(const std::string& state) {
    recorded_.Write("sys/class/infiniband/mlx5_3/ports/1/state", state);
  }
  void Downed(int times) {
    recorded_.Write("sys/class/infiniband/mlx5_3/ports/1/counters/link_downed", std::to_string(times) + "\n");
  }
  // Waits without letting time pass; so long only where it fails.
  bool Comes(const std::function<bool()>& condition, milliseconds limit = seconds(60)) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, condition);
  }
  // Lets time pass in small steps until the condition holds, and for so long at most.
  bool Within(seconds limit, const std::function<bool()>& condition) {
    constexpr milliseconds kStep{50};
    for (std::chrono::nanoseconds passed{0}; passed <= limit; passed += kStep) {
      if (Comes(condition, milliseconds(2))) return true;
      clock_.Advance(kStep);
    }
    return Comes(condition, seconds(5));
  }
  int Looks() {
    const std::lock_guard lock(mutex_);
    return looks_;
  }
  int Passes() {
    const std::lock_guard lock(mutex_);
    return passes_;
  }
  SightPtr First() {
    const std::lock_guard lock(mutex_);
    return sights_.empty() ? nullptr : sights_.front();
  }
  SightPtr Last() {
    const std::lock_guard lock(mutex_);
    return sights_.empty() ? nullptr : sights_.back();
  }
  const topology::NicPort* Port(const Sight& sight) const {
    const topology::Nic* nic = sight.seen.node.FindNic("mlx5_3");
    return nic == nullptr ? nullptr : &nic->ports.front();
  }

  test::RecordedMachine recorded_{"hgx-watched"};
  base::DiskFileTree files_{recorded_.path()};
  const std::string nvml_ = files_.Read("nvml.yaml").value();
  StubbornGpus gpus_{files_};
  Discovery discovery_{files_, gpus_, RecordedLeaves(files_), Identity{"hgx-watched", {}, {}}, Locality()};
  RecordedEthtool ethtool_{files_};
  test::StubbornFileTree counted_{files_};
  CounterReader reader_{counted_, ethtool_};
  FakeKernelEvents kernel_;
  FakeLeaves leaves_;
  test::FakeClock clock_;
  std::unique_ptr<Monitor> monitor_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<SightPtr> sights_;
  int looks_ = 0, passes_ = 0;
  std::size_t heard_ = 0;
  std::jthread thread_;
};

TEST_F(MonitorTest, SaysWhatALookAndTheCountersFound) {
  Start();
  ASSERT_TRUE(Comes([&] { return !sights_.empty(); }));
  const SightPtr first = First();
  const Sight& sight = *first;
  EXPECT_EQ(sight.seen.node.gpus.size(), 8u);
  EXPECT_EQ(sight.gpus.size(), 8u);
  EXPECT_GE(sight.ports.size(), 8u);
  EXPECT_EQ(Port(sight)->state, LinkState::kActive);
  EXPECT_TRUE(kernel_.watched().contains("mlx5_3"));
}

TEST_F(MonitorTest, DoesNotWaitForADriverThatHangs) {
  Start();
  ASSERT_TRUE(Comes([&] { return !sights_.empty(); }));
  gpus_.Hang(true);
  ASSERT_TRUE(Within(seconds(70), [&] { return gpus_.asked() >= 2; }));
  const int looks = Looks();
  State("1: DOWN\n");
  EXPECT_TRUE(Within(seconds(6), [&] { return Port(*sights_.back())->state == LinkState::kDown; }));
  EXPECT_EQ(Looks(), looks);
}

TEST_F(MonitorTest, SaysThatALookDoesNotEnd) {
  // Where the clock goes far at once, a pass over the counters under way seems to take as long.
  MonitorOptions options;
  options.counters_at_most = std::chrono::hours(24);
  Start(options);
  ASSERT_TRUE(Comes([&] { return !sights_.empty(); }));
  gpus_.Hang(true);
  ASSERT_TRUE(Within(seconds(70), [&] { return gpus_.asked() >= 2; }));
  const base::WallTime asked = clock_.WallNow();
  clock_.Advance(seconds(120));
  EXPECT_THAT(monitor_->Stuck(), testing::IsEmpty()) << "a driver may take a minute to start";
  clock_.Advance(seconds(70));
  const std::vector<StuckPass> stuck = monitor_->Stuck();
  ASSERT_EQ(stuck.size(), 1u);
  EXPECT_EQ(stuck[0].pass, Pass::kLook);
  EXPECT_LE(stuck[0].since, asked);
  EXPECT_GT(stuck[0].since, asked - seconds(60));
  const int looks = Looks();
  gpus_.Hang(false);
  ASSERT_TRUE(Comes([&] { return looks_ > looks; }));
  EXPECT_THAT(monitor_->Stuck(), testing::IsEmpty());
}

TEST_F(MonitorTest, SaysThatAPassOverTheCountersDoesNotEnd) {
  MonitorOptions options;
  options.look_at_most = std::chrono::hours(24);
  Start(options);
  ASSERT_TRUE(Comes([&] { return looks_ == 1 && !sights_.empty(); }));
  counted_.Hang(true);
  ASSERT_TRUE(Within(seconds(12), [&] { return counted_.hanging(); }));
  clock_.Advance(seconds(30));
  EXPECT_THAT(monitor_->Stuck(), testing::IsEmpty());
  clock_.Advance(seconds(40));
  const std::vector<StuckPass> stuck = monitor_->Stuck();
  ASSERT_EQ(stuck.size(), 1u);
  EXPECT_EQ(stuck[0].pass, Pass::kCounterPass);
  const int passes = Passes();
  counted_.Hang(false);
  // The end of the first is told before its sight is, so that of the second says that the first is over.
  ASSERT_TRUE(Within(seconds(12), [&] { return passes_ >= passes + 2; }));
  EXPECT_THAT(monitor_->Stuck(), testing::IsEmpty());
}

TEST_F(MonitorTest, PassesOverTheCountersAsSoonAsTheKernelSpeaks) {
  Start();
  ASSERT_TRUE(Comes([&] { return !sights_.empty(); }));
  State("1: DOWN\n");
  kernel_.Say(kKeys);
  ASSERT_TRUE(Comes([&] { return heard_ == 1; }));
  // The next pass by the clock is seconds away, and the clock stands still.
  clock_.Advance(milliseconds(100));
  EXPECT_TRUE(Comes([&] { return Port(*sights_.back())->state == LinkState::kDown; }));
}

TEST_F(MonitorTest, LooksAtEverythingWhenTheKernelSpeaksOfTopology) {
  Start();
  ASSERT_TRUE(Comes([&] { return looks_ == 1 && !sights_.empty(); }));
  kernel_.Say(kCarrierLost);
  ASSERT_TRUE(Comes([&] { return heard_ == 1; }));
  EXPECT_TRUE(Within(seconds(6), [&] { return looks_ == 2; }));
}

TEST_F(MonitorTest, LooksAtEverythingWhenADriverSpeaks) {
  Start();
  ASSERT_TRUE(Comes([&] { return looks_ == 1 && !sights_.empty(); }));
  gpus_.Speak();
  EXPECT_TRUE(Within(seconds(6), [&] { return looks_ == 2; }));
}

TEST_F(MonitorTest, MakesNoLoopOfLooksOutOfAStorm) {
  Start();
  ASSERT_TRUE(Comes([&] { return looks_ == 1 && !sights_.empty(); }));
  const auto begin = clock_.Now();
  std::size_t said = 0;
  while (clock_.Now() - begin < seconds(30)) {
    kernel_.Say(kCarrierLost);
    ++said;
    ASSERT_TRUE(Comes([&] { return heard_ == said; }));
    clock_.Advance(milliseconds(200));
    // A look takes real time, in which none of the clock's passes: it gets some to begin, and all to end.
    const int looks = Looks();
    (void)Comes([&] { return looks_ > looks; }, milliseconds(3));
    ASSERT_TRUE(Comes([&] { return gpus_.asked() == looks_; }));
  }
  // One each five seconds, and the one that was under way.
  EXPECT_LE(Looks(), 1 + 30 / 5 + 1);
  EXPECT_TRUE(Within(seconds(6), [&] { return looks_ >= 2; }));
}

TEST_F(MonitorTest, LooksAgainWhenACounterPassFindsAPortInAnotherState) {
  Start();
  ASSERT_TRUE(Comes([&] { return looks_ == 1 && !sights_.empty(); }));
  State("1: DOWN\n");
  EXPECT_TRUE(Within(seconds(12), [&] { return looks_ == 2; }));
}

TEST_F(MonitorTest, ShowsAFlapWithinTheTimeOfOnePass) {
  Start();
  ASSERT_TRUE(Comes([&] { return !sights_.empty(); }));
  Downed(5);
  EXPECT_TRUE(Within(seconds(6), [&] { return Port(*sights_.back())->fault == LinkFault::kFlapping; }));
  EXPECT_EQ(Port(*Last())->usable_gbps, 0);
}

TEST_F(MonitorTest, ShowsWhatALeafCountedAsSoonAsItWasAsked) {
  Start({}, true);
  ASSERT_TRUE(Within(seconds(12), [&] {
    const auto& ports = sights_.empty() ? std::vector<PortHealth>() : sights_.back()->ports;
    return std::any_of(ports.begin(), ports.end(),
                       [](const PortHealth& port) { return port.leaf_unread.has_value(); });
  }));
  EXPECT_EQ(leaves_.ports().size(), 8U);
  leaves_.Count(41);
  ASSERT_TRUE(Within(seconds(11), [&] { return Port(*sights_.back())->fault == LinkFault::kFlapping; }));
  EXPECT_THAT(Port(*Last())->reason, testing::StartsWith("at su1-r3 port 18: 41 link downs in 10 min"));
  EXPECT_EQ(Port(*Last())->usable_gbps, 0);
  EXPECT_EQ(Looks(), 1) << "no other state, so no look";
}

TEST_F(MonitorTest, AsksLeavesNoMoreOftenThanTheirInterval) {
  Start({}, true);
  ASSERT_TRUE(Comes([&] { return !sights_.empty(); }));
  for (int i = 0; i < 60; ++i) {
    State(i % 2 == 0 ? "1: DOWN\n" : "4: ACTIVE\n");
    kernel_.Say(kKeys);
    ASSERT_TRUE(Comes([&] { return heard_ == std::size_t(i) + 1; }));
    clock_.Advance(seconds(1));
  }
  EXPECT_LE(leaves_.asked(), 7);
  EXPECT_GE(leaves_.asked(), 4);
}

TEST_F(MonitorTest, DoesNotWaitForALeafThatHangs) {
  Start({}, true);
  ASSERT_TRUE(Comes([&] { return !sights_.empty(); }));
  ASSERT_TRUE(Within(seconds(1), [&] { return leaves_.asked() >= 1; }));
  leaves_.Hang(true);
  const int asked = leaves_.asked();
  ASSERT_TRUE(Within(seconds(15), [&] { return leaves_.asked() > asked; }));
  Downed(5);
  EXPECT_TRUE(Within(seconds(6), [&] { return Port(*sights_.back())->fault == LinkFault::kFlapping; }));
}

TEST_F(MonitorTest, TakesLinkChangesOfTheAgentItselfForNoFlap) {
  Start();
  ASSERT_TRUE(Comes([&] { return !sights_.empty(); }));
  monitor_->Expect({"mlx5_3:1", clock_.Now(), clock_.Now() + seconds(70), 8});
  Downed(4);
  EXPECT_TRUE(Within(seconds(6), [&] {
    return std::any_of(sights_.back()->ports.begin(), sights_.back()->ports.end(),
                       [](const PortHealth& port) {
                         return port.own == "4 link downs by setting its lossless settings are not counted";
                       });
  }));
  EXPECT_EQ(Port(*Last())->fault, LinkFault::kNone);
  Downed(6);
  EXPECT_TRUE(Within(seconds(6), [&] { return Port(*sights_.back())->fault == LinkFault::kFlapping; }));
}

TEST_F(MonitorTest, RemembersWhatWasPublishedBefore) {
  Start();
  ASSERT_TRUE(Comes([&] { return !sights_.empty(); }));
  crds::NodeTopologyStatus published;
  published.node = First()->seen.node;
  thread_ = {};
  for (topology::Nic& nic : published.node.nics) {
    if (nic.name != "mlx5_3") continue;
    nic.ports.front().fault = LinkFault::kFlapping;
    nic.ports.front().reason = "5 link downs in 10 min, since 2027-01-15T08:00:00Z";
  }
  sights_.clear();
  MonitorOptions options;
  options.patience = seconds(10);
  Start(options);
  ASSERT_TRUE(Comes([&] { return looks_ == 2; }));
  EXPECT_EQ(First(), nullptr);
  monitor_->Restore(published);
  ASSERT_TRUE(Comes([&] { return !sights_.empty(); }));
  EXPECT_EQ(Port(*First())->fault, LinkFault::kFlapping);
}

TEST_F(MonitorTest, RemembersAnXidThatEndedTheUseOfAGpu) {
  Start();
  ASSERT_TRUE(Comes([&] { return !sights_.empty(); }));
  crds::NodeTopologyStatus published;
  published.node = First()->seen.node;
  published.node.gpus.at(5).fatal_xid = 79;
  ASSERT_TRUE(published.node.gpus.at(5).healthy);
  thread_ = {};
  sights_.clear();
  MonitorOptions options;
  options.patience = seconds(10);
  Start(options);
  monitor_->Restore(published);
  ASSERT_TRUE(Comes([&] { return !sights_.empty(); }));
  EXPECT_THAT(First()->seen.node.gpus.at(5).unhealthy_reason, HasSubstr("XID 79"));
  EXPECT_FALSE(First()->seen.node.gpus.at(5).healthy);
  EXPECT_EQ(First()->gpus.at(5).last_xid, 79);
}

TEST_F(MonitorTest, KeepsAGpuAwayThatFailedOneLookUntilSeveralWereGood) {
  GpuReadings lost = ParseNvmlYaml(nvml_);
  lost.gpus.at(5).state = GpuState::kLost;
  Start();
  ASSERT_TRUE(Comes([&] { return looks_ == 1 && !sights_.empty(); }));
  const auto healthy = [this] { return sights_.back()->seen.node.gpus.at(5).healthy; };
  ASSERT_TRUE(Comes(healthy));
  recorded_.Write("nvml.yaml", FormatNvmlYaml(lost));
  gpus_.Speak();
  EXPECT_TRUE(Within(seconds(10), [&] { return !healthy(); })) << "at once";
  recorded_.Write("nvml.yaml", nvml_);
  gpus_.Speak();
  ASSERT_TRUE(Within(seconds(10), [this] {
    return sights_.back()->seen.node.gpus.at(5).unhealthy_reason.find("no fault since") != std::string::npos;
  }));
  const auto look = [this] {
    const int looks = Looks();
    clock_.Advance(seconds(60));
    return Within(seconds(70), [this, looks] { return looks_ > looks; });
  };
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(look());
  EXPECT_FALSE(Last()->seen.node.gpus.at(5).healthy) << "not five minutes yet";
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(look());
  EXPECT_TRUE(Within(seconds(10), healthy));
}

TEST_F(MonitorTest, WaitsNoLongerForWhatWasPublishedThanItsPatience) {
  MonitorOptions options;
  options.patience = seconds(10);
  Start(options);
  ASSERT_TRUE(Comes([&] { return looks_ == 1; }));
  EXPECT_TRUE(Within(seconds(16), [&] { return !sights_.empty(); }));
}

TEST_F(MonitorTest, SaysWhichWordOfTheKernelItCannotHear) {
  kernel_.Close("verbs", "mlx5_0: /dev/infiniband/uverbs0 cannot be opened (Permission denied)");
  Start();
  ASSERT_TRUE(Comes([&] { return !sights_.empty(); }));
  EXPECT_THAT(
      First()->seen.problems,
      Contains("what the kernel says by verbs cannot be heard, and links are looked at every 5 s instead: "
               "mlx5_0: /dev/infiniband/uverbs0 cannot be opened (Permission denied)"));
}

}  // namespace
}  // namespace heddle::nodeagent
