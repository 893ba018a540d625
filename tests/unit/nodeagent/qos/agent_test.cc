// The whole agent with its ports in memory: from spec.lossless to what the API server and Prometheus are told.
#include "nodeagent/agent.h"

#include <gmock/gmock.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "nodeagent/discovery/machine.h"
#include "nodeagent/publish/report.h"
#include "qos_bed.h"
#include "recorded_machine.h"
#include "tests/support/fake_api_server.h"

namespace heddle::nodeagent {
namespace {

using kube::Json;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr const char* kNode = "roce-dual-tor";
const std::vector<std::string> kPorts{"mlx5_bond_0:1", "mlx5_bond_0:2", "mlx5_bond_1:1", "mlx5_bond_1:2"};

class QosAgent : public testing::Test {
 protected:
  QosAgent() {
    server_.Serve(NodeTopologies());
    auto machine = OpenRecorded(files_, recorded_.path(), "");
    EXPECT_TRUE(machine);
    machine_ = *std::move(machine);
    for (const std::string& port : kPorts) io_[port].have = Fresh();
    Tell({Wish(kPorts)});
  }
  ~QosAgent() override { Stop(); }

  void Tell(std::vector<crds::LosslessWish> wishes) {
    crds::NodeTopology wanted;
    wanted.name = kNode;
    wanted.spec.lossless = std::move(wishes);
    Json object =
        server_.Find(NodeTopologies(), {"", kNode}).value_or(kube::NewObject(NodeTopologies(), {"", kNode}));
    object["spec"] = crds::SpecApplyJson(wanted)["spec"];
    server_.Put(NodeTopologies(), std::move(object));
  }
  void Start() {
    AgentOptions options;
    options.node = kNode;
    options.publish_jitter = seconds(0);
    options.lossless.io = &io_;
    options.lossless.gate = &gate_;
    options.lossless.journal = &journal_;
    options.lossless.options.may_write = true;
    MonitorOptions watching;
    watching.patience = seconds(10);
    // Time runs here while a pass is under way.
    watching.counters_at_most = watching.look_at_most = std::chrono::hours(24);
    monitor_ = std::make_unique<Monitor>(*machine_.discovery, reader_, nullptr, clock_, watching);
    agent_ = std::jthread([this, options](std::stop_token stop) {
      RunAgent(*monitor_, client_, clock_, base::Random(1), metrics_, options, std::move(stop));
    });
  }
  void Stop() {
    agent_.request_stop();
    if (agent_.joinable()) agent_.join();
  }
  bool Until(const std::function<bool()>& condition, seconds step = seconds(1)) {
    for (int round = 0; round < 2000; ++round) {
      if (server_.WaitUntil(condition, std::chrono::milliseconds(5))) return true;
      clock_.Advance(step);
    }
    return false;
  }
  crds::NodeTopologyStatus Status() {
    const auto object = server_.Find(NodeTopologies(), {"", kNode});
    const auto read = object ? crds::NodeTopologyFromJson(*object) : base::Result<crds::NodeTopology>();
    return read ? read->status : crds::NodeTopologyStatus();
  }
  std::string Reason(std::string_view condition = kLossless) {
    const crds::NodeTopologyStatus status = Status();
    const auto* found = crds::FindCondition(status.conditions, condition);
    return found == nullptr ? "" : found->reason;
  }
  std::size_t Told(const std::string& reason) {
    std::size_t told = 0;
    for (const Json& event : server_.All(kube::kEvents)) told += event["reason"] == reason ? 1 : 0;
    return told;
  }

  test::RecordedMachine recorded_{kNode};
  base::DiskFileTree files_{recorded_.path()};
  Machine machine_;
  test::FakeClock clock_;
  test::FakeApiServer server_{clock_};
  kube::Client client_{server_, clock_, {.field_manager = "heddle-nodeagent"}};
  RecordedEthtool ethtool_{files_};
  CounterReader reader_{files_, ethtool_};
  Metrics metrics_;
  test::FakePortIo io_;
  NoDeviceGate gate_;
  test::FakeJournal journal_;
  std::unique_ptr<Monitor> monitor_;
  std::jthread agent_;
};

TEST_F(QosAgent, SetsThePortsOneAfterTheOtherAndSaysSo) {
  Start();
  ASSERT_TRUE(Until([&] { return Reason("Rail0Healthy") == "BeingSet"; })) << "placement goes past it";
  ASSERT_TRUE(Until([&] { return Reason() == "Compliant"; }));
  ASSERT_TRUE(Until([&] { return Told("LosslessApplied") > 0; }));
  const crds::NodeTopologyStatus status = Status();
  ASSERT_EQ(status.lossless.size(), 1u);
  EXPECT_EQ(status.lossless[0].ports, kPorts);
  EXPECT_EQ(status.lossless[0].edition.policy, "roce");
  EXPECT_EQ(Reason("Rail0Healthy"), "Healthy");
  EXPECT_THAT(metrics_.Text(), HasSubstr("heddle_lossless_ports{state=\"Compliant\"} 4\n"));
  EXPECT_THAT(metrics_.Text(), HasSubstr("heddle_lossless_actions_total{action=\"apply\"} 4\n"));
}

TEST_F(QosAgent, WritesNothingOnceAllIsWell) {
  Start();
  ASSERT_TRUE(Until([&] { return Reason() == "Compliant"; }));
  ASSERT_TRUE(Until([&] { return Told("LosslessApplied") > 0; }));
  Stop();
  const std::size_t writes = io_.writes.size();
  server_.ClearRequests();
  // The same policy as a later generation tells it, and an agent that starts anew.
  Tell({Wish(kPorts)});
  Start();
  const auto begin = clock_.Now();
  ASSERT_TRUE(Until([&] { return clock_.Now() - begin > std::chrono::minutes(10); }, seconds(5)));
  for (const test::ApiRequest& request : server_.writes())
    EXPECT_EQ(request.plural, "leases") << request.Line();
  Stop();
  EXPECT_EQ(io_.writes.size(), writes);
}

TEST_F(QosAgent, SetsNothingOfAnEntryThatItDoesNotKnowAndTheOthersAllTheSame) {
  crds::LosslessWish first = Wish({kPorts[0]}), others = Wish({kPorts[1], kPorts[2], kPorts[3]});
  Tell({first, others});
  Json object = *server_.Find(NodeTopologies(), {"", kNode});
  object["spec"]["lossless"][0]["settings"]["pauseQuota"] = 7;
  server_.Put(NodeTopologies(), object);
  Start();
  ASSERT_TRUE(Until([&] {
    const crds::NodeTopologyStatus status = Status();
    return status.lossless.size() == 2 && status.lossless[1].state == crds::LosslessState::kCompliant;
  }));
  const crds::NodeTopologyStatus status = Status();
  EXPECT_EQ(status.lossless[0].ports, std::vector{kPorts[0]});
  EXPECT_EQ(status.lossless[0].state, crds::LosslessState::kUnknown);
  EXPECT_THAT(status.lossless[0].reason, HasSubstr("does not know spec.lossless[0].settings.pauseQuota"));
  EXPECT_EQ(Reason(kSpecUnderstood), "OlderThanSpec");
  EXPECT_EQ(io_[kPorts[0]].have, Fresh()) << "nothing was written there";
  Tell({first, others});
  EXPECT_TRUE(Until([&] { return Reason() == "Compliant" && Reason(kSpecUnderstood).empty(); }));
}

// Somebody took the right away to write what this agent says: ports are set all the same, each refusal is counted, it
// is asked again ever more rarely, and what was missed is said once it may be.
TEST_F(QosAgent, GoesOnSettingWhereItMayNotSaySoAndSaysItWhenItMay) {
  std::atomic<bool> forbidden = true;
  std::atomic<int> refused = 0;
  server_.Intercept([&](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
    if (!forbidden || request.method != "PUT" || request.plural != "nodetopologies") return std::nullopt;
    ++refused;
    return kube::HttpResponse{
        .status = 403,
        .body =
            R"({"kind":"Status","code":403,"reason":"Forbidden","message":"nodetopologies/status is forbidden"})"};
  });
  Start();
  ASSERT_TRUE(Until([&] {
    return metrics_.Text().find("heddle_lossless_ports{state=\"Compliant\"} 4\n") != std::string::npos;
  }));
  EXPECT_TRUE(Status().lossless.empty());
  EXPECT_GT(refused, 0);
  EXPECT_THAT(metrics_.Text(), HasSubstr("heddle_nodeagent_publications_total{result=\"failed\"}"));
  const auto begin = clock_.Now();
  const int before = refused;
  ASSERT_TRUE(Until([&] { return clock_.Now() - begin > std::chrono::minutes(30); }, seconds(5)));
  EXPECT_LE(refused - before, 40) << "not more often than once a minute";
  const std::size_t writes = io_.writes.size();
  forbidden = false;
  ASSERT_TRUE(Until([&] { return Reason() == "Compliant"; }));
  EXPECT_EQ(io_.writes.size(), writes) << "nothing is set twice for it";
}

TEST_F(QosAgent, SpeaksOfPortsThatPoliciesSpeakOf) {
  Tell({});
  Start();
  ASSERT_TRUE(Until([&] { return Reason("Ready") != ""; }));
  EXPECT_EQ(Reason(), "");
  Tell({Wish({kPorts[0]})});
  ASSERT_TRUE(Until([&] { return Reason() == "Compliant"; }));
  Tell({});
  EXPECT_TRUE(Until([&] { return Reason() == ""; }));
  EXPECT_TRUE(Status().lossless.empty());
}

class QosAgentOnItsOwnMachine : public QosAgent {
 protected:
  QosAgentOnItsOwnMachine() {
    test::WriteMachine(kNode, own_.path());
    auto machine = OpenRecorded(own_files_, own_.path(), kNode);
    EXPECT_TRUE(machine);
    machine_ = *std::move(machine);
  }
  ~QosAgentOnItsOwnMachine() override { Stop(); }

  test::TemporaryFolder own_;
  base::DiskFileTree own_files_{own_.path()};
};

// Nothing is counted there, so what the counters are read of stays the same.
TEST_F(QosAgentOnItsOwnMachine, FindsAManagementNicThatAppearsLater) {
  const std::string net = own_.path() + "/sys/class/net/";
  std::filesystem::rename(net + "eno1", net + "eth9");
  io_["eno1:1"].have = AsWanted();
  Tell({Wish({"eno1:1"})});
  Start();
  ASSERT_TRUE(Until([&] { return Reason() == "Unknown"; }));
  EXPECT_THAT(Status().lossless.at(0).reason, HasSubstr("is not there"));
  std::filesystem::rename(net + "eth9", net + "eno1");
  EXPECT_TRUE(Until([&] { return Reason() == "Compliant"; }));
}

}  // namespace
}  // namespace heddle::nodeagent
