// What a person gets of one machine. How each recorded machine looks stands in tests/golden/nodeagent/*.txt.
#include "nodeagent/ticket.h"

#include <gmock/gmock.h>

#include <sstream>

#include "nodeagent/publish/report.h"
#include "recorded_machine.h"

namespace heddle::nodeagent {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr base::WallTime kThen{std::chrono::seconds(1'800'000'000)};

std::string TicketOf(const Observation& seen) {
  crds::NodeTopology object;
  object.name = seen.node.name;
  return Ticket(Report(object, seen, kThen), seen.excluded);
}

TEST(Ticket, PutsWhatIsWrongBeforeTheTables) {
  const std::string text = TicketOf(test::RecordedMachine("hgx-down").Look());
  const std::size_t wrong = text.find("\nWrong\n  LinksUp (LinkDown): "),
                    tables = text.find("\nGPUs and the NICs");
  ASSERT_NE(wrong, std::string::npos) << text;
  ASSERT_NE(tables, std::string::npos) << text;
  EXPECT_LT(wrong, tables);
  EXPECT_THAT(text, Not(HasSubstr("nothing that this agent can see")));
  EXPECT_THAT(text, HasSubstr("\nGood\n  "));
}

TEST(Ticket, OfASoundMachineSaysThatNothingIsWrong) {
  EXPECT_THAT(TicketOf(test::RecordedMachine("hgx-h100").Look()),
              HasSubstr("\nWrong\n  nothing that this agent can see\n"));
}

TEST(Ticket, NamesWhatWasLeftOutOnceForEachReason) {
  Observation seen = test::RecordedMachine("hgx-h100").Look();
  seen.excluded = {{"mlx5_20", "0000:01:00.1", "is a virtual function", true},
                   {"mlx5_21", "0000:01:00.2", "is a virtual function", true},
                   {"", "0000:02:00.0", "has no ports", true}};
  EXPECT_THAT(
      TicketOf(seen),
      HasSubstr("\nLeft out\n  mlx5_20, mlx5_21: is a virtual function\n  0000:02:00.0: has no ports\n"));
}

TEST(Ticket, SaysUnknownAndNeverZeroForWhatNobodyTold) {
  crds::NodeTopology object;
  object.name = "gpu-1";
  topology::Gpu gpu;
  gpu.model = "NVIDIA H100";
  object.status.node.gpus = {gpu};
  const std::string text = Ticket(object, {});
  EXPECT_THAT(text, HasSubstr("Machine    of an unknown make, 1 GPU, 0 NICs"));
  EXPECT_THAT(text, HasSubstr("Domain     Unknown\n"));
  EXPECT_THAT(text, HasSubstr("Seen       never"));
  // NUMA node, memory and NIC of the GPU.
  EXPECT_THAT(text, testing::ContainsRegex("0 +- +Unknown +NVIDIA H100 +\\? +none"));
}

TEST(Ticket, SaysWhatAPortOfAnUnknownRateCountsAs) {
  Observation seen = test::RecordedMachine("hgx-h100").Look();
  topology::NicPort& port = seen.node.nics.at(1).ports.at(0);
  port.rate_gbps = 0;
  EXPECT_THAT(TicketOf(seen), HasSubstr(" ? (counts as 400) "));
  port.usable_gbps = 0;
  EXPECT_THAT(TicketOf(seen), Not(HasSubstr("counts as")));
}

TEST(Ticket, ShowsWhoHoldsWhat) {
  crds::NodeTopology object;
  crds::Grant grant;
  grant.pod_namespace = "team";
  grant.pod_name = "train-0";
  grant.container = "main";
  grant.gpus = {{0, "GPU-a"}, {3, "GPU-b"}};
  grant.nics = {"mlx5_0", "mlx5_3"};
  object.status.grants = {grant};
  EXPECT_THAT(Ticket(object, {}), testing::ContainsRegex("team/train-0 +main +0,3 +mlx5_0,mlx5_3"));
}

// Names come from switches and drivers, and end on a terminal.
TEST(Ticket, LetsNoControlCharacterThrough) {
  Observation seen = test::RecordedMachine("hgx-h100").Look();
  const std::string hostile = "\x1b[31m\nroot#\x07";
  seen.node.name = hostile;
  seen.node.machine = hostile;
  seen.node.site = hostile;
  seen.node.gpus.at(0).model = hostile;
  seen.node.gpus.at(0).healthy = false;
  seen.node.gpus.at(0).unhealthy_reason = hostile;
  seen.node.nics.at(0).netdev = hostile;
  seen.node.nics.at(0).ports.at(0).leaf_port = topology::LeafPort{hostile, hostile};
  seen.node.nics.at(0).ports.at(0).reason = hostile;
  seen.node.nvlink_domain = topology::NvlinkMembership{hostile, true};
  seen.excluded = {{hostile, hostile, hostile, true}};
  seen.problems = {hostile};
  std::istringstream lines(TicketOf(seen));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_THAT(line, Not(testing::StartsWith("root#")));
    EXPECT_TRUE(std::all_of(line.begin(), line.end(), [](char c) {
      return static_cast<unsigned char>(c) >= 0x20;
    })) << line;
  }
}

}  // namespace
}  // namespace heddle::nodeagent
