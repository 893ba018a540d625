#include "nodeagent/agent.h"

#include <gmock/gmock.h>

#include <thread>

#include "crds/keys.h"
#include "nodeagent/discovery/machine.h"
#include "nodeagent/health/conditions.h"
#include "recorded_machine.h"
#include "stubborn_files.h"
#include "tests/support/fake_api_server.h"
#include "tests/support/fake_clock.h"

namespace heddle::nodeagent {
namespace {

using kube::Json;
using std::chrono::seconds;

class AgentTest : public testing::Test {
 protected:
  AgentTest() {
    server_.Serve(NodeTopologies());
    auto machine = OpenRecorded(files_, recorded_.path(), "");
    EXPECT_TRUE(machine);
    machine_ = *std::move(machine);
  }
  // A pass that hangs would keep the agent from its end.
  ~AgentTest() override {
    counted_.Hang(false);
    agent_ = {};
  }

  void MakeObject() {
    Json object = kube::NewObject(NodeTopologies(), {"", "hgx-pulled"});
    object["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", "v1"},
                                                          {"kind", "Node"},
                                                          {"name", "hgx-pulled"},
                                                          {"uid", "node-uid"},
                                                          {"controller", true}}});
    server_.Put(NodeTopologies(), std::move(object));
  }
  // `counters_at_most`: time runs here while a pass is under way, so that one in order may seem to take minutes.
  void Start(bool once = false, std::chrono::nanoseconds counters_at_most = std::chrono::hours(24)) {
    AgentOptions options{"hgx-pulled", seconds(0), once, [](std::string_view) {}};
    MonitorOptions watching;
    watching.look_interval = seconds(30);
    watching.patience = seconds(10);
    watching.counters_at_most = counters_at_most;
    watching.look_at_most = std::chrono::hours(24);
    monitor_ = std::make_unique<Monitor>(*machine_.discovery, reader_, nullptr, clock_, watching);
    agent_ = std::jthread([this, options](std::stop_token stop) {
      RunAgent(*monitor_, client_, clock_, base::Random(1), metrics_, options, std::move(stop));
      ended_ = true;
    });
  }
  // `step`: how far the clock goes for each 5 ms that the agent's threads are given.
  bool Until(const std::function<bool()>& condition, seconds step = seconds(1)) {
    for (int round = 0; round < 2000; ++round) {
      if (server_.WaitUntil(condition, std::chrono::milliseconds(5))) return true;
      clock_.Advance(step);
    }
    return false;
  }
  std::string Rails() {
    return kube::StringAt(server_.Find(NodeTopologies(), {"", "hgx-pulled"}).value_or(Json()),
                          {"status", "summary", "rails"});
  }
  std::string RenewTime() {
    const kube::ObjectKey key{"heddle-system", crds::keys::NodeLease("hgx-pulled")};
    return kube::StringAt(server_.Find(kube::kLeases, key).value_or(Json()), {"spec", "renewTime"});
  }
  Json Discovery() {
    const Json object = server_.Find(NodeTopologies(), {"", "hgx-pulled"}).value_or(Json());
    for (const Json& condition : kube::ArrayAt(object, {"status", "conditions"})) {
      if (condition["type"] == std::string(kDiscoveryComplete)) return condition;
    }
    return {};
  }

  test::RecordedMachine recorded_{"hgx-pulled"};
  base::DiskFileTree files_{recorded_.path()};
  Machine machine_;
  test::FakeClock clock_;
  test::FakeApiServer server_{clock_};
  kube::Client client_{server_, clock_, {.field_manager = "heddle-nodeagent"}};
  RecordedEthtool ethtool_{files_};
  test::StubbornFileTree counted_{files_};
  CounterReader reader_{counted_, ethtool_};
  Metrics metrics_;
  std::unique_ptr<Monitor> monitor_;
  std::atomic<bool> ended_ = false;
  std::jthread agent_;
};

TEST_F(AgentTest, PublishesAMachineAndShowsThatItIsAlive) {
  MakeObject();
  Start();
  ASSERT_TRUE(Until([&] { return Rails() == "8/8"; }));
  const kube::ObjectKey key{"heddle-system", crds::keys::NodeLease("hgx-pulled")};
  ASSERT_TRUE(Until([&] { return server_.Find(kube::kLeases, key).has_value(); }));
  const Json lease = *server_.Find(kube::kLeases, key);
  EXPECT_EQ(kube::ArrayAt(lease, {"metadata", "ownerReferences"}).at(0)["uid"], "node-uid");
}

TEST_F(AgentTest, PublishesACableThatWasPulled) {
  MakeObject();
  Start();
  ASSERT_TRUE(Until([&] { return Rails() == "8/8"; }));
  recorded_.Write("sys/class/infiniband/mlx5_3/ports/1/state", "1: DOWN\n");
  EXPECT_TRUE(Until([&] { return Rails() == "7/8"; }));
  recorded_.Write("sys/class/infiniband/mlx5_3/ports/1/state", "4: ACTIVE\n");
  EXPECT_TRUE(Until([&] { return Rails() == "8/8"; }));
}

TEST_F(AgentTest, TellsTheNodeThatALinkWentDownAndCameBack) {
  MakeObject();
  Start();
  ASSERT_TRUE(Until([&] { return Rails() == "8/8"; }));
  const auto told = [this](const std::string& reason) {
    for (const Json& event : server_.All(kube::kEvents)) {
      if (event["reason"] == reason) return event;
    }
    return Json();
  };
  // An outage does not lose it.
  server_.FailNext({.method = "POST", .path_contains = "events", .status = 503}, 10);
  recorded_.Write("sys/class/infiniband/mlx5_3/ports/1/state", "1: DOWN\n");
  ASSERT_TRUE(Until([&] { return !told("LinkDown").is_null(); }));
  const Json event = told("LinkDown");
  EXPECT_EQ(kube::Namespace(event), "default");
  EXPECT_EQ(event["involvedObject"],
            (Json{{"apiVersion", "v1"}, {"kind", "Node"}, {"name", "hgx-pulled"}, {"uid", "hgx-pulled"}}));
  EXPECT_EQ(event["type"], "Warning");
  recorded_.Write("sys/class/infiniband/mlx5_3/ports/1/state", "4: ACTIVE\n");
  EXPECT_TRUE(Until([&] { return !told("LinkHealthy").is_null(); }));
  EXPECT_THAT(metrics_.Text(), testing::HasSubstr("heddle_nodeagent_events_total{reason=\"LinkDown\"} 1\n"));
}

TEST_F(AgentTest, WritesNothingAtRestButItsLease) {
  MakeObject();
  Start();
  ASSERT_TRUE(Until([&] { return Rails() == "8/8"; }));
  ASSERT_TRUE(Until([&] { return !server_.All(kube::kLeases).empty(); }));
  server_.ClearRequests();
  const auto begin = clock_.Now();
  ASSERT_TRUE(Until([&] { return clock_.Now() - begin > std::chrono::minutes(10); }, seconds(5)));
  std::size_t renewals = 0;
  for (const test::ApiRequest& request : server_.writes()) {
    EXPECT_EQ(request.plural, "leases") << request.Line();
    ++renewals;
  }
  EXPECT_GE(renewals, 8u);
  EXPECT_LE(renewals, 11u);
}

TEST_F(AgentTest, OutlivesAnApiServerThatIsAway) {
  server_.FailNext({}, 200);
  Start();
  ASSERT_TRUE(Until([&] { return server_.requests().size() > 10; }));
  server_.ClearFaults();
  MakeObject();
  EXPECT_TRUE(Until([&] { return Rails() == "8/8"; }));
}

TEST_F(AgentTest, ShowsNoLifeWhileAPassOverTheCountersDoesNotEnd) {
  MakeObject();
  Start(false, seconds(60));
  const auto reason = [this] { return kube::StringAt(Discovery(), {"reason"}); };
  ASSERT_TRUE(Until([&] { return Rails() == "8/8" && !RenewTime().empty() && reason() != "Stuck"; }));
  counted_.Hang(true);
  ASSERT_TRUE(Until([&] { return reason() == "Stuck"; }));
  EXPECT_EQ(Discovery()["status"], "False");
  EXPECT_THAT(kube::StringAt(Discovery(), {"message"}),
              testing::StartsWith("the pass over the counters has not ended since 20"));
  EXPECT_EQ(Rails(), "8/8") << "the facts stay";
  EXPECT_THAT(metrics_.Text(), testing::HasSubstr("heddle_nodeagent_pass_stuck{pass=\"counters\"} 1\n"));
  const std::string renewed = RenewTime();
  const auto begin = clock_.Now();
  ASSERT_TRUE(Until([&] { return clock_.Now() - begin > std::chrono::minutes(5); }, seconds(5)));
  EXPECT_EQ(RenewTime(), renewed);
  counted_.Hang(false);
  EXPECT_TRUE(Until([&] { return reason() != "Stuck" && RenewTime() != renewed; }));
  EXPECT_TRUE(Until([&] {
    return metrics_.Text().find("heddle_nodeagent_pass_stuck{pass=\"counters\"} 0\n") != std::string::npos;
  }));
}

TEST_F(AgentTest, EndsAfterOnePublicationWhenAskedTo) {
  MakeObject();
  Start(true);
  ASSERT_TRUE(Until([&] { return ended_.load(); }));
  EXPECT_EQ(Rails(), "8/8");
}

TEST_F(AgentTest, EndsWhenAskedToWhileItWaits) {
  Start();
  ASSERT_TRUE(server_.WaitForStreams(1));
  agent_.request_stop();
  EXPECT_TRUE(Until([&] { return ended_.load(); }));
}

}  // namespace
}  // namespace heddle::nodeagent
