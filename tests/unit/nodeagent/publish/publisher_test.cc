#include "nodeagent/publish/publisher.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "nodeagent/health/conditions.h"
#include "nodeagent/publish/report.h"
#include "tests/support/builders.h"
#include "tests/support/fake_api_server.h"
#include "tests/support/fake_clock.h"

namespace heddle::nodeagent {
namespace {

using kube::Json;
using kube::ObjectKey;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Observation Seen(const topology::Node& node) {
  Observation observation;
  observation.node = node;
  return observation;
}

class PublisherTest : public testing::Test {
 protected:
  PublisherTest() { server_.Serve(NodeTopologies()); }

  void Begin(seconds jitter, std::uint64_t seed = 1) {
    PublisherOptions options;
    options.node = "node-1";
    options.jitter = jitter;
    options.log = [this](std::string_view line) {
      const std::lock_guard lock(mutex_);
      lines_.emplace_back(line);
    };
    options.on_object = [this](const auto& owner, const Json& /*object*/) {
      const std::lock_guard lock(mutex_);
      owner_ = owner;
    };
    publisher_ = std::make_unique<Publisher>(client_, clock_, base::Random(seed), std::move(options));
    watcher_ = std::jthread([this](std::stop_token stop) { publisher_->Watch(std::move(stop)); });
  }
  // With the watch open, as it is at once where nothing is spread.
  void Start() {
    Begin(seconds(0));
    EXPECT_TRUE(server_.WaitForStreams(1));
  }
  void TearDown() override {
    watcher_ = {};
    publisher_.reset();
  }

  Json MakeObject(const std::string& name = "node-1") {
    Json object = kube::NewObject(NodeTopologies(), {"", name});
    object["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", "v1"},
                                                          {"kind", "Node"},
                                                          {"name", name},
                                                          {"uid", "node-uid"},
                                                          {"controller", true}}});
    object["spec"] = Json::object();
    return server_.Put(NodeTopologies(), std::move(object));
  }
  Json Status() {
    return server_.Find(NodeTopologies(), {"", "node-1"}).value_or(Json::object()).value("status", Json());
  }
  std::string Hash() {
    return kube::StringAt(server_.Find(NodeTopologies(), {"", "node-1"}).value_or(Json()),
                          {"status", "hash"});
  }
  std::vector<std::string> Writes() {
    std::vector<std::string> writes;
    for (const test::ApiRequest& request : server_.writes()) writes.push_back(request.Line());
    return writes;
  }

  // Lets time pass, a second a round, until the condition holds.
  bool Until(const std::function<bool()>& condition, int rounds = 2000, seconds round_takes = seconds(1)) {
    for (int round = 0; round < rounds; ++round) {
      while (publisher_->RunOnce({})) {
      }
      if (server_.WaitUntil(condition, std::chrono::milliseconds(1))) return true;
      clock_.Advance(round_takes);
    }
    return false;
  }
  // Time for everything that is still under way to come to an end.
  void Settle() {
    Until([] { return false; }, 60);
  }
  bool Publish(const topology::Node& node) {
    publisher_->Offer(Seen(node));
    return Until([&] { return publisher_->published() && Hash() == topology::ContentHash(node); });
  }
  std::optional<kube::OwnerReference> Owner() {
    const std::lock_guard lock(mutex_);
    return owner_;
  }
  std::vector<std::string> Said() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

  const topology::Node node_ = test::NodeNamed("node-1").Gpus(8).Rails(8, "su0-r");
  test::FakeClock clock_;
  test::FakeApiServer server_{clock_};
  kube::Client client_{server_, clock_, {.field_manager = "heddle-nodeagent"}};
  std::mutex mutex_;
  std::vector<std::string> lines_;
  std::optional<kube::OwnerReference> owner_;
  std::unique_ptr<Publisher> publisher_;
  std::jthread watcher_;
};

TEST_F(PublisherTest, PublishesEqualContentOnce) {
  MakeObject();
  Start();
  ASSERT_TRUE(Publish(node_));
  for (int i = 0; i < 5; ++i) publisher_->Offer(Seen(node_));
  Settle();
  EXPECT_THAT(Writes(), ElementsAre("PUT nodetopologies/status node-1"));
  EXPECT_EQ(Status()["gpus"].size(), 8u);
  EXPECT_EQ(Status()["summary"]["rails"], "8/8");
  EXPECT_EQ(Owner()->uid, "node-uid");
}

TEST_F(PublisherTest, SaysWhichPassDoesNotEndBesideTheFactsOfBefore) {
  MakeObject();
  Start();
  ASSERT_TRUE(Publish(node_));
  const auto discovery = [this](const std::string& reason) {
    return [this, reason] {
      const Json status = Status();
      for (const Json& condition : kube::ArrayAt(status, {"conditions"})) {
        if (condition["type"] == std::string(kDiscoveryComplete)) return condition["reason"] == reason;
      }
      return false;
    };
  };
  ASSERT_TRUE(discovery("AllAnswered")());
  const std::vector<StuckPass> stuck{{Pass::kCounterPass, clock_.WallNow()}};
  publisher_->Stuck(stuck);
  ASSERT_TRUE(Until(discovery("Stuck")));
  EXPECT_EQ(Hash(), topology::ContentHash(node_));
  publisher_->Stuck(stuck);
  publisher_->Offer(Seen(node_));
  Settle();
  EXPECT_EQ(server_.writes().size(), 2u) << "said once";
  publisher_->Stuck({});
  ASSERT_TRUE(Until(discovery("AllAnswered")));
  // One that starts where the first look hangs has only what the one before it has published.
  TearDown();
  Begin(seconds(0));
  publisher_->Stuck(stuck);
  ASSERT_TRUE(Until(discovery("Stuck")));
  EXPECT_EQ(Hash(), topology::ContentHash(node_));
  EXPECT_EQ(Status()["gpus"].size(), 8u);
}

TEST_F(PublisherTest, SaysOfAStuckPassNothingWhereNobodyHasPublished) {
  MakeObject();
  Start();
  publisher_->Stuck({{Pass::kLook, clock_.WallNow()}});
  Settle();
  EXPECT_THAT(Writes(), IsEmpty());
}

TEST_F(PublisherTest, PublishesAgainWhenTheMachineChanges) {
  MakeObject();
  Start();
  ASSERT_TRUE(Publish(node_));
  const topology::Node changed = test::NodeNamed("node-1").Gpus(8).Rails(8, "su0-r").Down("mlx5_3");
  ASSERT_TRUE(Publish(changed));
  Settle();
  EXPECT_EQ(server_.writes().size(), 2u);
  EXPECT_EQ(Status()["summary"]["rails"], "7/8");
}

// Else a policy would wait for reports at each start of an agent.
TEST_F(PublisherTest, TheFirstWriteHasWhatTheSpecMakesOfTheDevices) {
  std::atomic<bool> early = false;
  PublisherOptions options;
  options.node = "node-1";
  options.jitter = seconds(0);
  options.on_change = [&](const Json& /*object*/) {
    if (publisher_->writes() == 0 && publisher_->RunOnce({})) early = true;
    DeviceNews news;
    news.reports = {
        {"rdma/hca", {"all", 3, {}}, crds::DeviceState::kElsewhere, "its plugin is RdmaShared", 3, 3}};
    publisher_->Offer(news);
  };
  publisher_ = std::make_unique<Publisher>(client_, clock_, base::Random(1), std::move(options));
  publisher_->Offer(Seen(node_));
  while (publisher_->RunOnce({})) {
  }
  watcher_ = std::jthread([this](std::stop_token stop) { publisher_->Watch(std::move(stop)); });
  ASSERT_TRUE(server_.WaitForStreams(1));
  MakeObject();
  ASSERT_TRUE(Until([&] { return publisher_->published() && Status().contains("devices"); }));
  EXPECT_FALSE(early) << "published before the spec was told";
  EXPECT_EQ(publisher_->writes(), 1U);
}

// What is offered while the object is new wakes the writer, too.
TEST_F(PublisherTest, TheFirstWriteWaitsForTheDevicesWhereAnotherLookComesBetween) {
  std::atomic<bool> early = false;
  PublisherOptions options;
  options.node = "node-1";
  options.jitter = seconds(0);
  options.on_object = [&](const auto& /*owner*/, const Json& /*object*/) {
    publisher_->Offer(Seen(node_));
    while (publisher_->RunOnce({})) {
    }
    early = publisher_->writes() > 0;
  };
  options.on_change = [&](const Json& /*object*/) {
    DeviceNews news;
    news.reports = {
        {"rdma/hca", {"all", 3, {}}, crds::DeviceState::kElsewhere, "its plugin is RdmaShared", 3, 3}};
    publisher_->Offer(news);
  };
  publisher_ = std::make_unique<Publisher>(client_, clock_, base::Random(1), std::move(options));
  watcher_ = std::jthread([this](std::stop_token stop) { publisher_->Watch(std::move(stop)); });
  ASSERT_TRUE(server_.WaitForStreams(1));
  MakeObject();
  ASSERT_TRUE(Until([&] { return publisher_->published() && Status().contains("devices"); }));
  EXPECT_FALSE(early) << "published before the spec was told";
  EXPECT_EQ(publisher_->writes(), 1U);
}

TEST_F(PublisherTest, AsksNothingUntilTheOperatorMadeTheObjectAndSaysSoOnce) {
  Start();
  publisher_->Offer(Seen(node_));
  Settle();
  EXPECT_THAT(Writes(), IsEmpty());
  EXPECT_THAT(Said(), ElementsAre(HasSubstr("Waiting for the operator")));
  MakeObject();
  EXPECT_TRUE(Until([&] { return publisher_->published(); }));
}

TEST_F(PublisherTest, WritesNothingAfterARestartOnEqualContent) {
  MakeObject();
  Start();
  ASSERT_TRUE(Publish(node_));
  TearDown();
  Start();
  publisher_->Offer(Seen(node_));
  EXPECT_TRUE(Until([&] { return publisher_->published(); }));
  Settle();
  EXPECT_EQ(server_.writes().size(), 1u);
}

TEST_F(PublisherTest, RepairsWhatSomebodyElseWrote) {
  MakeObject();
  Start();
  ASSERT_TRUE(Publish(node_));
  server_.Edit(NodeTopologies(), {"", "node-1"}, [](Json& object) {
    object["status"]["gpus"] = Json::array();
    object["status"]["hash"] = "0123456789abcdef";
  });
  EXPECT_TRUE(Until([&] { return Hash() == topology::ContentHash(node_); }));
  EXPECT_EQ(Status()["gpus"].size(), 8u);
}

TEST_F(PublisherTest, RepairsAStatusOfNonsense) {
  MakeObject();
  server_.Edit(NodeTopologies(), {"", "node-1"}, [](Json& object) {
    object["status"] = {{"gpus", "eight"}, {"nics", 7}};
  });
  Start();
  EXPECT_TRUE(Publish(node_));
}

TEST_F(PublisherTest, PublishesIntoAnObjectThatWasMadeAnew) {
  MakeObject();
  Start();
  ASSERT_TRUE(Publish(node_));
  server_.Remove(NodeTopologies(), {"", "node-1"});
  MakeObject();
  EXPECT_TRUE(Until([&] { return Hash() == topology::ContentHash(node_); }));
}

TEST_F(PublisherTest, KeepsTheTransitionTimeAndTheGrants) {
  MakeObject();
  Start();
  ASSERT_TRUE(Publish(node_));
  const Json before = *kube::Condition(*server_.Find(NodeTopologies(), {"", "node-1"}), "Ready");
  clock_.Advance(seconds(3600));
  ASSERT_TRUE(Publish(test::NodeNamed("node-1").Gpus(8).Rails(8, "su1-r")));
  const Json after = *kube::Condition(*server_.Find(NodeTopologies(), {"", "node-1"}), "Ready");
  EXPECT_EQ(before["lastTransitionTime"], after["lastTransitionTime"]);
}

GrantReadings Held(const topology::Node& node, const std::string& pod) {
  GrantReadings readings;
  readings.state = GrantsState::kRead;
  if (!pod.empty())
    readings.containers = {{"train", pod, "worker", {{"nvidia.com/gpu", false, {node.gpus[2].pci}}}}};
  return readings;
}

TEST_F(PublisherTest, PublishesGrantsAndTakesThemBack) {
  MakeObject();
  Start();
  topology::Node node = node_;
  for (topology::Gpu& gpu : node.gpus) gpu.pci = fmt::format("0000:{}0:00.0", gpu.index + 1);
  const auto pod = [this] {
    const Json status = Status();
    return status.contains("grants") ? kube::StringAt(status["grants"][0], {"pod"}) : std::string();
  };
  publisher_->Offer(Held(node, "a"));
  ASSERT_TRUE(Publish(node));
  EXPECT_EQ(pod(), "a");
  EXPECT_EQ(Status()["grants"][0]["gpus"][0]["index"], 2);
  const std::uint64_t writes = publisher_->writes();
  publisher_->Offer(Held(node, "a"));
  Settle();
  EXPECT_EQ(publisher_->writes(), writes);
  publisher_->Offer(Held(node, "b"));
  EXPECT_TRUE(Until([&] { return pod() == "b"; }));
  publisher_->Offer(Held(node, ""));
  EXPECT_TRUE(Until([&] { return pod().empty(); }));
}

TEST_F(PublisherTest, KeepsGrantsWhileTheyCannotBeReadAndDropsThemWhenNobodyAsks) {
  MakeObject();
  Start();
  publisher_->Offer(Held(node_, "a"));
  ASSERT_TRUE(Publish(node_));
  GrantReadings away;
  away.state = GrantsState::kNoSocket;
  away.problem = "no kubelet";
  publisher_->Offer(away);
  const auto reason = [this] {
    const auto object = server_.Find(NodeTopologies(), {"", "node-1"});
    const Json* condition = object ? kube::Condition(*object, std::string(kGrantsKnown)) : nullptr;
    return condition == nullptr ? std::string() : kube::StringAt(*condition, {"reason"});
  };
  EXPECT_TRUE(Until([&] { return reason() == "NoSocket"; }));
  EXPECT_TRUE(Status().contains("grants"));
  publisher_->Offer(GrantReadings());
  EXPECT_TRUE(Until([&] { return reason().empty(); }));
  EXPECT_FALSE(Status().contains("grants"));
}

TEST_F(PublisherTest, KeepsWhatWasSaidOfGrantsUntilSomebodyHasAsked) {
  MakeObject();
  Start();
  publisher_->Offer(Held(node_, "a"));
  ASSERT_TRUE(Publish(node_));
  const Json before = Status();
  // As after a restart of the agent: nothing has been offered but an observation.
  crds::NodeTopology object = *crds::NodeTopologyFromJson(*server_.Find(NodeTopologies(), {"", "node-1"}));
  const Json after = crds::ToJson(Report(object, Seen(node_), clock_.WallNow()))["status"];
  EXPECT_EQ(after["grants"], before["grants"]);
  EXPECT_EQ(after["conditions"], before["conditions"]);
}

TEST_F(PublisherTest, GoesOnPublishingUnderASpecThatItDoesNotKnow) {
  MakeObject();
  Start();
  ASSERT_TRUE(Publish(node_));
  const auto understood = [this] {
    const auto object = server_.Find(NodeTopologies(), {"", "node-1"});
    const Json* condition = object ? kube::Condition(*object, std::string(kSpecUnderstood)) : nullptr;
    return condition == nullptr ? std::string() : kube::StringAt(*condition, {"message"});
  };
  EXPECT_EQ(understood(), "");
  const auto tell = [this](Json spec) {
    Json object = *server_.Find(NodeTopologies(), {"", "node-1"});
    object["spec"] = std::move(spec);
    server_.Put(NodeTopologies(), std::move(object));
  };
  // A word that this version has not, and a key.
  tell({{"lossless", Json::array({{{"ports", {"mlx5_0:1"}}, {"policies", {"roce"}}, {"mode", "Rehearse"}}})},
        {"power", {{"cap", 400}}}});
  EXPECT_TRUE(Until([&] { return understood() != ""; }));
  EXPECT_THAT(understood(),
              HasSubstr("not known: spec.power; spec.lossless[0].mode: \"Rehearse\" is not one of"));
  topology::Node changed = node_;
  changed.gpus[3].healthy = false;
  changed.gpus[3].unhealthy_reason = "XID 79";
  EXPECT_TRUE(Publish(changed)) << "discovery goes on";
  tell(Json::object());
  EXPECT_TRUE(Until([&] { return understood() == ""; }));
}

TEST_F(PublisherTest, SurvivesEveryAnswerOfABadServer) {
  MakeObject();
  Start();
  for (const int status : {404, 409, 403, 422, 429, 500, 503}) server_.FailNext({"PUT", "", status});
  server_.FailNext({"PUT", ""});  // a cut connection
  ASSERT_TRUE(Publish(node_));
  Settle();
  EXPECT_EQ(publisher_->writes(), 1u);
  EXPECT_THAT(Said(), testing::Contains(HasSubstr("nodetopologies/status")));  // the advice for 403
}

TEST_F(PublisherTest, DoesNotWriteTwiceWhenOnlyTheAnswerWasLost) {
  MakeObject();
  Start();
  server_.FailNext({.method = "PUT", .after_the_fact = true});
  ASSERT_TRUE(Publish(node_));
  Settle();
  EXPECT_EQ(publisher_->writes(), 0u);  // it saw its own write come back by the watch
}

TEST_F(PublisherTest, DoesNotWriteForEverWhenTheServerDropsAField) {
  MakeObject();
  server_.Intercept([this](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
    if (request.method != "PUT") return std::nullopt;
    Json object = request.json();
    object["status"].erase("agentVersion");
    return kube::HttpResponse{
        200, {{"Content-Type", "application/json"}}, server_.Put(NodeTopologies(), object).dump()};
  });
  Start();
  publisher_->Offer(Seen(node_));
  EXPECT_TRUE(Until([&] { return publisher_->published(); }));
  Settle();
  EXPECT_EQ(server_.writes().size(), 1u);
}

TEST_F(PublisherTest, TouchesNobodyElsesObject) {
  MakeObject();
  const Json other = MakeObject("node-2");
  Start();
  ASSERT_TRUE(Publish(node_));
  Settle();
  EXPECT_EQ(*server_.Find(NodeTopologies(), {"", "node-2"}), other);
  for (const test::ApiRequest& request : server_.requests()) {
    if (request.method == "GET") {
      EXPECT_EQ(request.query.at("fieldSelector"), "metadata.name=node-1") << request.Line();
    } else {
      EXPECT_EQ(request.Line(), "PUT nodetopologies/status node-1");
    }
  }
}

TEST_F(PublisherTest, WritesAChangeOfHealthSoonAndBeyondItsBudgetLikeAnyOther) {
  MakeObject();
  Begin(seconds(100));
  ASSERT_TRUE(Publish(node_));
  topology::Node node = node_;
  std::vector<std::int64_t> delays;
  for (int i = 0; i < 8; ++i) {
    topology::NicPort& port = node.nics[0].ports[0];
    port.state =
        port.state == topology::LinkState::kDown ? topology::LinkState::kActive : topology::LinkState::kDown;
    port.usable_gbps = port.state == topology::LinkState::kDown ? 0 : 400;
    const auto begin = clock_.Now();
    ASSERT_TRUE(Publish(node));
    delays.push_back(std::chrono::duration_cast<seconds>(clock_.Now() - begin).count());
  }
  // The budget is four; what takes longer than those lets it grow again by one a minute.
  for (int i = 0; i < 4; ++i) EXPECT_LE(delays[std::size_t(i)], 5) << i;
  EXPECT_GT(*std::max_element(delays.begin(), delays.end()), 5);
}

TEST_F(PublisherTest, TakesNoOtherChangeForUrgent) {
  topology::Node node = node_;
  EXPECT_FALSE(HealthDiffers(node_, node));
  node.machine = "another name";
  node.nics[0].mtu = 9000;
  EXPECT_FALSE(HealthDiffers(node_, node));
  node.nics[0].ports[0].fault = topology::LinkFault::kFlapping;
  EXPECT_TRUE(HealthDiffers(node_, node));
  node = node_;
  node.gpus[3].healthy = false;
  EXPECT_TRUE(HealthDiffers(node_, node));
}

// It begins on all nodes of a job at once.
TEST_F(PublisherTest, WritesCongestionOnceAndOverALongerTimeThanOtherChanges) {
  MakeObject();
  Begin(seconds(10));
  ASSERT_TRUE(Publish(node_));
  std::set<std::int64_t> delays;
  Observation seen = Seen(node_);
  for (int change = 0; change < 8; ++change) {
    server_.ClearRequests();
    const auto begin = clock_.Now();
    seen.congestion[{node_.nics[3].name, 1}] = {base::WallTime(seconds(1'800'000'000 + change)),
                                                "70000 CNPs handled in 1 min"};
    publisher_->Offer(seen);
    ASSERT_TRUE(Until([&] { return !server_.writes().empty(); }));
    delays.insert(std::chrono::duration_cast<seconds>(clock_.Now() - begin).count());
    for (int look = 0; look < 5; ++look) publisher_->Offer(seen);
    Settle();
    EXPECT_EQ(server_.writes().size(), 1u) << "what goes on is not written again";
  }
  EXPECT_LE(*delays.rbegin(), 62);
  EXPECT_GT(*delays.rbegin(), 12);
  EXPECT_EQ(Status()["congestion"][0]["nic"], node_.nics[3].name);
  EXPECT_EQ(Hash(), topology::ContentHash(node_));
  // A change that somebody waits for takes it along.
  server_.ClearRequests();
  seen.congestion.clear();
  publisher_->Offer(seen);
  seen.node.nics[0].mtu = 9000;
  publisher_->Offer(seen);
  EXPECT_TRUE(Until([&] { return !server_.writes().empty(); }, 12));
  EXPECT_FALSE(Status().contains("congestion"));
}

TEST_F(PublisherTest, AsksNothingOfTheServerBeforeItsTurnAndThenPublishesAtOnce) {
  std::set<std::int64_t> delays;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    server_.Remove(NodeTopologies(), {"", "node-1"});
    MakeObject();
    server_.ClearRequests();
    const auto begin = clock_.Now();
    Begin(seconds(10), seed);
    publisher_->Offer(Seen(node_));
    // Only the watch sleeps, until its turn. It opens on a thread of its own, and time stands still while it does.
    ASSERT_TRUE(clock_.WaitForSleepers(1));
    EXPECT_THAT(server_.requests(), IsEmpty()) << "seed " << seed;
    ASSERT_TRUE(clock_.AdvanceToNextSleeper());
    const auto delay = std::chrono::duration_cast<seconds>(clock_.Now() - begin);
    EXPECT_LE(delay, seconds(10));
    ASSERT_TRUE(Until([&] { return !server_.writes().empty(); }, 10'000, seconds(0))) << "seed " << seed;
    delays.insert(delay.count());
    TearDown();
  }
  EXPECT_GE(delays.size(), 3u);
}

TEST_F(PublisherTest, SpreadsLaterWritesOverTheJitter) {
  MakeObject();
  Begin(seconds(10));
  publisher_->Offer(Seen(node_));
  ASSERT_TRUE(Until([&] { return !server_.writes().empty(); }));
  std::set<std::int64_t> delays;
  topology::Node node = node_;
  for (int change = 0; change < 8; ++change) {
    server_.ClearRequests();
    const auto begin = clock_.Now();
    node.machine = fmt::format("machine {}", change);
    publisher_->Offer(Seen(node));
    ASSERT_TRUE(Until([&] { return !server_.writes().empty(); }));
    const auto delay = std::chrono::duration_cast<seconds>(clock_.Now() - begin);
    EXPECT_LE(delay, seconds(12));
    delays.insert(delay.count());
  }
  EXPECT_GE(delays.size(), 3u);
}

}  // namespace
}  // namespace heddle::nodeagent
