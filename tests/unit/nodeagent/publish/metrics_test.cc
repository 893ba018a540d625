#include "nodeagent/publish/metrics.h"

#include <gmock/gmock.h>

#include "recorded_machine.h"
#include "tests/support/builders.h"

namespace heddle::nodeagent {
namespace {

using testing::HasSubstr;
using testing::Not;
using topology::LinkState;

class MetricsTest : public testing::Test {
 protected:
  MetricsTest() {
    sight_.seen.node = test::NodeNamed("node-1").Gpus(2).Rails(2, "su0-r");
    sight_.seen.node.gpus[1].pci = "0000:02:00.0";
    for (const topology::Nic& nic : sight_.seen.node.nics) {
      PortHealth health;
      health.port.key = PortKey(nic, 1);
      health.port.nic = nic.name;
      health.port.netdev = "eth1";
      health.state = LinkState::kActive;
      sight_.ports.push_back(std::move(health));
    }
  }
  std::string Text() {
    metrics_.Saw(std::make_shared<const Sight>(sight_));
    return metrics_.Text();
  }
  topology::NicPort& Port() { return sight_.seen.node.nics[0].ports[0]; }
  std::string Labels() {
    return "{nic=\"" + sight_.seen.node.nics[0].name + "\",port=\"1\",rail=\"0\",leaf=\"su0-r0\"}";
  }

  Sight sight_;
  Metrics metrics_;
};

TEST_F(MetricsTest, ShowsALinkByItsRailAndLeaf) {
  Port().rate_gbps = 400;
  Port().usable_gbps = 200;
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("heddle_link_up" + Labels() + " 1\n"));
  EXPECT_THAT(text, HasSubstr("heddle_link_readable" + Labels() + " 1\n"));
  EXPECT_THAT(text, HasSubstr("heddle_link_rate_bits_per_second" + Labels() + " 400000000000\n"));
  EXPECT_THAT(text, HasSubstr("heddle_link_usable_bits_per_second" + Labels() + " 200000000000\n"));
  EXPECT_THAT(text, HasSubstr("netdev=\"eth1\",role=\"compute\""));
}

TEST_F(MetricsTest, ShowsWhatTheKubeletCanGive) {
  EXPECT_THAT(Text(), Not(HasSubstr("heddle_devices")));
  metrics_.Offered(
      {{"heddle.dev/rail0", {"all", 1, {}}, crds::DeviceState::kOffered, "", 7, 8},
       {"heddle.dev/gpu", {"all", 1, {}}, crds::DeviceState::kPending, "the kubelet is away", 8, 8},
       {"rdma/hca", {"all", 1, {}}, crds::DeviceState::kElsewhere, "its plugin is RdmaShared", 63, 63}});
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("heddle_devices{resource=\"heddle.dev/rail0\",health=\"healthy\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("heddle_devices{resource=\"heddle.dev/rail0\",health=\"unhealthy\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("heddle_devices{resource=\"heddle.dev/gpu\",health=\"healthy\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("heddle_devices{resource=\"rdma/hca\",health=\"healthy\"} 63\n"));
}

TEST_F(MetricsTest, ShowsTheVerdictInForceAndTheOthersAsZero) {
  sight_.ports[0].verdict = Verdict::kFlapping;
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("leaf=\"su0-r0\",verdict=\"Flapping\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("leaf=\"su0-r0\",verdict=\"Healthy\"} 0\n"));
}

TEST_F(MetricsTest, CountsByWhatACounterMeansAndByPriority) {
  sight_.ports[0].totals = {{{Counter::kSymbolErrors, -1}, 41}, {{Counter::kPauseReceived, 3}, 7}};
  const std::string text = Text();
  const std::string nic = sight_.seen.node.nics[0].name;
  EXPECT_THAT(text, HasSubstr("# TYPE heddle_link_counter_total counter\n"));
  EXPECT_THAT(text, HasSubstr("heddle_link_counter_total{nic=\"" + nic +
                              "\",port=\"1\",counter=\"symbol_errors\",priority=\"\",end=\"host\"} 41\n"));
  EXPECT_THAT(text, HasSubstr("counter=\"" + std::string(CounterName(Counter::kPauseReceived)) +
                              "\",priority=\"3\",end=\"host\"} 7\n"));
  EXPECT_THAT(text, Not(HasSubstr("heddle_link_leaf_readable")));
}

TEST_F(MetricsTest, CountsTheLeafsEndOfACableBesideTheHosts) {
  sight_.ports[0].totals = {{{Counter::kLinkDowned, -1}, 2}};
  sight_.ports[0].leaf_totals = {{{Counter::kLinkDowned, -1}, 41}};
  sight_.ports[0].leaf_unread = "";
  std::string text = Text();
  EXPECT_THAT(text, HasSubstr("counter=\"link_downed\",priority=\"\",end=\"host\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("counter=\"link_downed\",priority=\"\",end=\"leaf\"} 41\n"));
  EXPECT_THAT(text, HasSubstr("heddle_link_leaf_readable" + Labels() + " 1\n"));
  sight_.ports[0].leaf_unread = "su0-r0 port 18 does not tell what it has counted";
  EXPECT_THAT(Text(), HasSubstr("heddle_link_leaf_readable" + Labels() + " 0\n"));
}

TEST_F(MetricsTest, KeepsWhatWasKnownOfALinkThatCannotBeRead) {
  Port().rate_gbps = 400;
  (void)Text();
  Port().rate_gbps = 0;
  Port().state = LinkState::kUnknown;
  sight_.ports[0].state = LinkState::kUnknown;
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("heddle_link_up" + Labels() + " 1\n"));
  EXPECT_THAT(text, HasSubstr("heddle_link_rate_bits_per_second" + Labels() + " 400000000000\n"));
  EXPECT_THAT(text, HasSubstr("heddle_link_readable" + Labels() + " 0\n"));
}

TEST_F(MetricsTest, SaysNothingOfALinkThatWasNeverRead) {
  Port().state = LinkState::kUnknown;
  EXPECT_THAT(Text(), Not(HasSubstr("heddle_link_up" + Labels())));
}

TEST_F(MetricsTest, SaysNoRateThatNobodyCouldRead) {
  Port().rate_gbps = 0;
  Port().usable_gbps = 400;
  std::string text = Text();
  EXPECT_THAT(text, HasSubstr("heddle_link_up" + Labels() + " 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("heddle_link_rate_bits_per_second" + Labels())));
  EXPECT_THAT(text, Not(HasSubstr("heddle_link_usable_bits_per_second" + Labels())));
  Port().state = LinkState::kDown;
  Port().usable_gbps = 0;
  sight_.ports[0].state = LinkState::kDown;
  text = Text();
  EXPECT_THAT(text, HasSubstr("heddle_link_rate_bits_per_second" + Labels() + " 0\n"));
}

TEST_F(MetricsTest, ForgetsALinkThatIsGone) {
  const std::string labels = Labels();
  ASSERT_THAT(Text(), HasSubstr("heddle_link_up" + labels));
  sight_.seen.node.nics.erase(sight_.seen.node.nics.begin());
  EXPECT_THAT(Text(), Not(HasSubstr("heddle_link_up" + labels)));
}

TEST_F(MetricsTest, ShowsGpusAndTheirNvlinks) {
  topology::Node& node = sight_.seen.node;
  node.nvlink = {4, 18, 3600, {{1, 17, 3300}}};
  node.gpus[1].healthy = false;
  GpuReading gpu;
  gpu.index = 1;
  gpu.pci = "0000:02:00.0";
  gpu.uncorrected_ecc = 3;
  gpu.last_xid = 63;
  sight_.gpus = {gpu};
  const std::string text = Text();
  const std::string labels = "{gpu=\"1\",pci=\"0000:02:00.0\"}";
  EXPECT_THAT(text, HasSubstr("heddle_gpu_healthy" + labels + " 0\n"));
  EXPECT_THAT(text, HasSubstr("heddle_gpu_nvlinks_up" + labels + " 17\n"));
  EXPECT_THAT(text, HasSubstr("heddle_gpu_nvlink_usable_bits_per_second" + labels + " 3300000000000\n"));
  EXPECT_THAT(text, HasSubstr("heddle_gpu_ecc_uncorrected_total" + labels + " 3\n"));
  EXPECT_THAT(text, HasSubstr("heddle_gpu_last_xid" + labels + " 63\n"));
  EXPECT_THAT(text, HasSubstr("heddle_node_nvlinks_per_gpu 18\n"));
}

TEST_F(MetricsTest, CountsTheAgentsOwnDoings) {
  metrics_.Passed(Pass::kCounterPass, std::chrono::milliseconds(1));
  metrics_.Wrote(true);
  metrics_.Wrote(false);
  metrics_.Told("LinkFlapping");
  metrics_.Dropped(2);
  metrics_.Heard({{KernelEvent::Kind::kPort, "mlx5_0 port 1", "port went down", true}});
  metrics_.Sources({{"rtnetlink", ""}, {"verbs", "no permission"}});
  const std::string text = metrics_.Text();
  EXPECT_THAT(text, HasSubstr("heddle_nodeagent_pass_duration_seconds_count{pass=\"counters\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("heddle_nodeagent_publications_total{result=\"written\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("heddle_nodeagent_publications_total{result=\"failed\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("heddle_nodeagent_events_total{reason=\"LinkFlapping\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("heddle_nodeagent_events_dropped_total 2\n"));
  EXPECT_THAT(text, HasSubstr("heddle_nodeagent_kernel_events_total{kind=\"port\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("heddle_nodeagent_kernel_source_open{source=\"rtnetlink\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("heddle_nodeagent_kernel_source_open{source=\"verbs\"} 0\n"));
}

TEST_F(MetricsTest, AreServedBesideHealthAndReadiness) {
  const auto server = Serve(metrics_, "127.0.0.1:0");
  ASSERT_TRUE(server);
  const std::string url = "http://" + (*server)->address();
  const auto get = [&url](const std::string& path) {
    return test::Output("/usr/bin/curl -s -w '%{http_code}' " + url + path);
  };
  EXPECT_EQ(get("/healthz"), "ok\n200");
  EXPECT_EQ(get("/readyz"), "not ready: the machine has not been looked at yet\n503");
  (void)Text();
  EXPECT_EQ(get("/readyz"), "ok\n200");
  metrics_.Stuck({{Pass::kCounterPass, base::WallTime(std::chrono::seconds(1'800'000'000))}});
  EXPECT_THAT(get("/readyz"), testing::StartsWith("not ready: the pass over the counters has not ended since "
                                                  "2027-01-15T08:00:00Z: "));
  EXPECT_EQ(get("/healthz"), "ok\n200") << "a restart would hang with it";
  EXPECT_THAT(metrics_.Text(), HasSubstr("heddle_nodeagent_pass_stuck{pass=\"counters\"} 1\n"));
  EXPECT_THAT(metrics_.Text(), HasSubstr("heddle_nodeagent_pass_stuck{pass=\"look\"} 0\n"));
  metrics_.Stuck({});
  EXPECT_EQ(get("/readyz"), "ok\n200");
  EXPECT_THAT(get("/metrics"), HasSubstr("heddle_link_info"));
  EXPECT_THAT(get("/else"), HasSubstr("404"));
}

TEST_F(MetricsTest, AreServedNowhereWhereNobodyWantsThem) {
  const auto server = Serve(metrics_, "");
  ASSERT_TRUE(server);
  EXPECT_EQ(*server, nullptr);
  const auto wrong = Serve(metrics_, "no such address");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("--listen"));
}

}  // namespace
}  // namespace heddle::nodeagent
