#include "nodeagent/agent.h"

#include <gmock/gmock.h>

#include <thread>

#include "crds/keys.h"
#include "recorded_machine.h"
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

  void MakeObject() {
    Json object = kube::NewObject(NodeTopologies(), {"", "hgx-pulled"});
    object["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", "v1"},
                                                          {"kind", "Node"},
                                                          {"name", "hgx-pulled"},
                                                          {"uid", "node-uid"},
                                                          {"controller", true}}});
    server_.Put(NodeTopologies(), std::move(object));
  }
  void Start(bool once = false) {
    AgentOptions options{"hgx-pulled", seconds(30), seconds(0), once, [](std::string_view) {}};
    agent_ = std::jthread([this, options](std::stop_token stop) {
      RunAgent(*machine_.discovery, client_, clock_, base::Random(1), options, std::move(stop));
      ended_ = true;
    });
  }
  bool Until(const std::function<bool()>& condition) {
    for (int round = 0; round < 2000; ++round) {
      if (server_.WaitUntil(condition, std::chrono::milliseconds(5))) return true;
      clock_.Advance(seconds(1));
    }
    return false;
  }
  std::string Rails() {
    return kube::StringAt(server_.Find(NodeTopologies(), {"", "hgx-pulled"}).value_or(Json()),
                          {"status", "summary", "rails"});
  }

  test::RecordedMachine recorded_{"hgx-pulled"};
  base::DiskFileTree files_{recorded_.path()};
  Machine machine_;
  test::FakeClock clock_;
  test::FakeApiServer server_{clock_};
  kube::Client client_{server_, clock_, {.field_manager = "heddle-nodeagent"}};
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

TEST_F(AgentTest, OutlivesAnApiServerThatIsAway) {
  server_.FailNext({}, 200);
  Start();
  ASSERT_TRUE(Until([&] { return server_.requests().size() > 10; }));
  server_.ClearFaults();
  MakeObject();
  EXPECT_TRUE(Until([&] { return Rails() == "8/8"; }));
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
