// What a person gets of one machine. How each recorded machine looks stands in tests/golden/nodeagent/*.txt.
#include "nodeagent/ticket.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
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
  PrintedFacts facts;
  facts.excluded = seen.excluded;
  return Ticket(Report(object, seen, kThen), facts);
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

TEST(Ticket, CountsTheRailWhoseNicIsGoneAndNamesIt) {
  test::MemoryFileTree files;
  test::Fill(test::ReadOf("hgx-h100"), files);
  files.Remove("sys/class/infiniband/mlx5_3");
  EXPECT_THAT(TicketOf(test::LookAt(files, "node-00")),
              HasSubstr("InfiniBand, rails up 7/8 (gone: rail 3's NIC 0000:5e:00.0), leaves "));
}

TEST(Ticket, NamesAStoragePortThatIsDown) {
  Observation seen = test::RecordedMachine("dgx-a100").Look();
  EXPECT_THAT(TicketOf(seen), HasSubstr("\nWrong\n  nothing that this agent can see\n"));
  for (topology::Nic& nic : seen.node.nics) {
    if (nic.name == "mlx5_4") nic.ports.at(0).state = topology::LinkState::kDown;
  }
  EXPECT_THAT(TicketOf(seen), HasSubstr("\n  storage port mlx5_4 is Down\n"));
  for (topology::Nic& nic : seen.node.nics) {
    if (nic.role == topology::NicRole::kStorage) nic.ports.at(0).state = topology::LinkState::kDown;
  }
  EXPECT_THAT(TicketOf(seen), Not(HasSubstr("storage port"))) << "that nobody cabled these is as likely";
}

TEST(Ticket, SaysWhichGpusCountForLessOverNvlink) {
  Observation seen = test::RecordedMachine("hgx-h100").Look();
  seen.node.nvlink.exceptions = {{2, 17}, {3, 18, 3500}};
  std::string text = TicketOf(seen);
  text.erase(std::unique(text.begin(), text.end(),
                         [](unsigned char a, unsigned char b) {
                           return std::isspace(a) != 0 && std::isspace(b) != 0;
                         }),
             text.end());
  std::replace(text.begin(), text.end(), '\n', ' ');  // wherever the line breaks
  EXPECT_THAT(text, HasSubstr("GPU 2: 17 up; GPU 3: 18 up, counted for 3500 Gb/s"));
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
  PrintedFacts nothing;
  nothing.read = true;
  const std::string text = Ticket(object, nothing);
  EXPECT_THAT(text, HasSubstr("Machine    of an unknown make, 1 GPU, 0 NICs"));
  EXPECT_THAT(text, HasSubstr("NVLink     ?\nDomain     Unknown\n"));
  EXPECT_THAT(text, HasSubstr("Seen       never"));
  EXPECT_THAT(text, HasSubstr(", ? NUMA nodes\n"));
  EXPECT_THAT(text, HasSubstr("Software   kernel ?\n"));
  // UUID, NUMA node, memory and NIC of the GPU.
  EXPECT_THAT(text, testing::ContainsRegex("0 +\\? +- +Unknown +NVIDIA H100 +\\? +none"));
  object.status.node.nvswitches.resize(4);
  EXPECT_THAT(Ticket(object, {}), HasSubstr("NVLink     ?, 4 NVSwitches\n"));
  object.status.node.nvlink_domain = topology::Missing::kNotApplicable;
  EXPECT_THAT(Ticket(object, {}), HasSubstr("NVLink     none, 4 NVSwitches\n"));
  object.status.node.nvswitches.clear();
  object.status.node.nvlink = {0, 18, 0, {}};
  EXPECT_THAT(Ticket(object, {}), HasSubstr("NVLink     18 links of each GPU, ? Gb/s a GPU and direction\n"));
  object.status.node = {};
  EXPECT_THAT(Ticket(object, {}), HasSubstr("of an unknown make, ? GPUs, ? NICs, ? NUMA nodes\n"));
}

// What a vendor's support asks first. One card that is behind stands out.
TEST(Ticket, NamesDriverKernelAndTheFirmwareOfEveryNic) {
  const test::TemporaryFolder folder;
  test::WriteMachine("hgx-h100", folder.path());
  folder.Write("sys/class/infiniband/mlx5_3/fw_ver", "28.35.1012\n");
  for (int nic = 0; nic < 8; ++nic) {
    std::filesystem::create_symlink(
        "../../../../bus/pci/drivers/mlx5_core",
        fmt::format("{}/sys/class/infiniband/mlx5_{}/device/driver", folder.path(), nic));
  }
  folder.Write("sys/module/mlx5_core/version", "24.10-1.1.4\n");
  const std::string text = test::TicketAt(folder.path());
  EXPECT_THAT(text, HasSubstr("Software   kernel 6.8.0-48-generic, GPU driver 550.90.07\n"));
  EXPECT_THAT(text,
              HasSubstr("\nVersions of NICs\n"
                        "  firmware 28.35.1012 (MT4129, board MT_0000000838), driver mlx5_core 24.10-1.1.4:\n"
                        "    mlx5_3\n"
                        "  firmware 28.39.3560 (MT4129, board MT_0000000838), driver mlx5_core 24.10-1.1.4:\n"
                        "    mlx5_0, mlx5_1, mlx5_2, mlx5_4, mlx5_5, mlx5_6, mlx5_7\n"));
  EXPECT_THAT(text, testing::ContainsRegex(" 0  GPU-[0-9a-f]{8}  0000:1b:00.0 "));
}

TEST(Ticket, SaysOfADriverWithoutAVersionWhetherItIsTheKernelsOwn) {
  const test::TemporaryFolder folder;
  test::WriteMachine("hgx-h100", folder.path());
  std::filesystem::create_symlink("../../../../bus/pci/drivers/mlx5_core",
                                  folder.path() + "/sys/class/infiniband/mlx5_0/device/driver");
  EXPECT_THAT(test::TicketAt(folder.path()),
              HasSubstr(", driver mlx5_core, the kernel's own:\n    mlx5_0\n"));
  std::filesystem::create_directories(folder.path() + "/sys/module/mlx5_core/version");
  EXPECT_THAT(test::TicketAt(folder.path()), HasSubstr(", driver mlx5_core ?:\n    mlx5_0\n"))
      << "it is there and cannot be read";
}

TEST(Ticket, ShowsHowFarEveryNicIsFromEveryGpu) {
  const std::string text = test::TicketAt(test::RecordedMachine("hgx-h100").path());
  EXPECT_THAT(text, HasSubstr("\nNIC     GPU0  GPU1  GPU2  GPU3  GPU4  GPU5  GPU6  GPU7  BEHIND\n"));
  EXPECT_THAT(text, HasSubstr("\nmlx5_0  PIX   NODE  NODE  NODE  SYS   SYS   SYS   SYS   0000:16:00.0\n"));
  EXPECT_THAT(text, HasSubstr("\neno1    NODE  NODE  NODE  NODE  SYS   SYS   SYS   SYS   -\n"));
  EXPECT_THAT(test::TicketAt(test::RecordedMachine("mi300x").path()),
              HasSubstr("\nmlx5_0  PXB   NODE  NODE  NODE  SYS   SYS   SYS   SYS   -\n"));
}

TEST(Ticket, BreaksLongLinesOfGoodNews) {
  std::istringstream lines(TicketOf(test::RecordedMachine("hgx-b300").Look()));
  bool good = false;
  for (std::string line; std::getline(lines, line) && !(good && line.empty());) {
    if (good) {
      EXPECT_LE(line.size(), 100u) << line;
    }
    good = good || line == "Good";
  }
  EXPECT_TRUE(good);
}

TEST(Ticket, BreaksLongLinesOfWhatIsWrongAndLosesNoWord) {
  Observation seen = test::RecordedMachine("hgx-h100").Look();
  seen.problems = {
      "a probe that is told at length and " + std::string(120, 'x') + " cannot say more than this",
      "another one fails, too: its files are there, and nobody may read them on this machine"};
  std::istringstream lines(TicketOf(seen));
  std::string wrong, joined;
  int count = 0;
  bool here = false;
  for (std::string line; std::getline(lines, line); here = here || line == "Wrong") {
    if (line == "Good") break;
    if (!here) continue;
    ++count;
    if (line.find("xxx") == std::string::npos) {
      EXPECT_LE(line.size(), 100u) << line;
    }
    EXPECT_THAT(line, testing::StartsWith(count == 1 ? "  DiscoveryComplete (ProbesFailed): " : "    "));
    joined += (joined.empty() ? "" : " ") + line.substr(line.find_first_not_of(' '));
  }
  EXPECT_GT(count, 2);
  EXPECT_EQ(joined, "DiscoveryComplete (ProbesFailed): " + seen.problems[0] + "; " + seen.problems[1]);
}

TEST(Ticket, CallsTheLinksOfAmdByTheirName) {
  const std::string text = test::TicketAt(test::RecordedMachine("mi300x").path());
  EXPECT_THAT(text, HasSubstr("\nxGMI       7 links of each GPU, "));
  EXPECT_THAT(text, Not(HasSubstr("\nNVLink ")));
}

TEST(Ticket, SaysWhatAPortOfAnUnknownRateCountsAs) {
  Observation seen = test::RecordedMachine("hgx-h100").Look();
  topology::NicPort& port = seen.node.nics.at(1).ports.at(0);
  port.rate_gbps = 0;
  EXPECT_THAT(TicketOf(seen), HasSubstr(" ? (counts as 400) "));
  port.usable_gbps = 0;
  EXPECT_THAT(TicketOf(seen), Not(HasSubstr("counts as")));
}

TEST(Ticket, ShowsWhatTheLeavesHaveCountedOfWhatIsWrong) {
  const LeafCounts sound{
      "mlx5_0", 1, "su1-r0", "0x1", 18, 12, false, {{"link_downed", 0}, {"port_xmit_packets", 9}}, ""};
  LeafCounts worn = sound, silent = sound, unknown = sound;
  worn.device = "mlx5_1";
  worn.leaf = "su1-r1";
  worn.counts = {{"link_downed", 41}, {"symbol_error", 7}};
  silent.device = "mlx5_2";
  silent.leaf = "su1-\x1br2";
  silent.unread = "su1-r2 port 18 does not tell what it has counted (LID 12): no answer within 50 ms";
  PrintedFacts facts;
  unknown = {"mlx5_3", 1, "", "", 0, 0, false, {}, "no permission for /dev/infiniband/umad3"};
  facts.leaves = {sound, worn, silent, unknown};
  EXPECT_THAT(
      Ticket({}, facts),
      HasSubstr("\nCounted at the leaf since its counters were cleared\n"
                "  mlx5_0 port 1 (su1-r0 port 18): nothing wrong\n"
                "  mlx5_1 port 1 (su1-r1 port 18): link_downed 41, symbol_error 7\n"
                "  mlx5_2 port 1 (su1-?r2 port 18): su1-r2 port 18 does not tell what it has counted (LID "
                "12): no answer within 50 ms\n"
                "  mlx5_3 port 1: no permission for /dev/infiniband/umad3\n"));
  EXPECT_THAT(Ticket({}, {}), Not(HasSubstr("Counted at the leaf")));
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
