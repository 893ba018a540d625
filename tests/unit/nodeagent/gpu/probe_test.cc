#include "nodeagent/gpu/probe.h"

#include <gmock/gmock.h>

#include "nodeagent/gpu/nvml_gpus.h"

namespace heddle::nodeagent {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using topology::Missing;

GpuReading Gpu(int index, int links_up, int links = 18) {
  GpuReading gpu;
  gpu.index = index;
  gpu.pci = "0000:0" + std::to_string(index) + ":00.0";
  gpu.nvlink_generation = 4;
  gpu.fabric.state = FabricState::kCompleted;
  for (int link = 0; link < links; ++link)
    gpu.nvlinks.push_back({link, link < links_up, LinkEnd::kSwitch, "", 0});
  return gpu;
}

TEST(Nvlink, CountsLinksAndNamesTheGpusThatDiffer) {
  const auto nvlink = NvlinkOf({Gpu(0, 18), Gpu(1, 16), Gpu(2, 18)});
  EXPECT_EQ(nvlink.links_per_gpu, 18);
  EXPECT_EQ(nvlink.gbps_per_gpu, 3600);
  ASSERT_EQ(nvlink.exceptions.size(), 1u);
  EXPECT_EQ(nvlink.exceptions[0].gpu, 1);
  EXPECT_EQ(nvlink.exceptions[0].links_up, 16);
}

TEST(Nvlink, CountsOfAGpuWithSlowLinksWhatTheyTrainedTo) {
  std::vector<GpuReading> gpus{Gpu(0, 18), Gpu(1, 18), Gpu(2, 17), Gpu(3, 18)};
  for (GpuReading& gpu : gpus) {
    for (NvlinkReading& link : gpu.nvlinks) link.speed_mbps = 26562;
  }
  gpus[1].nvlinks[4].speed_mbps = 13281;
  gpus[2].nvlinks[0].speed_mbps = 13281;
  gpus[3].nvlinks[5].speed_mbps = 53125;  // says more than the others
  const auto nvlink = NvlinkOf(gpus);
  EXPECT_EQ(nvlink.gbps_per_gpu, 3600);
  EXPECT_THAT(nvlink.exceptions, testing::ElementsAre(topology::NvLink::Exception{1, 18, 3500},
                                                      topology::NvLink::Exception{2, 17, 3300}));
  gpus[1].nvlinks[4].speed_mbps = 0;  // not said: as the others
  EXPECT_EQ(NvlinkOf(gpus).usable_gbps(1), 3600);
}

TEST(Nvlink, CountsWhatIsUpOnExportVariantsAndNotWhatTheChipCouldHave) {
  const auto nvlink = NvlinkOf({Gpu(0, 8), Gpu(1, 8)});  // H800
  EXPECT_EQ(nvlink.links_per_gpu, 8);
  EXPECT_THAT(nvlink.exceptions, IsEmpty());
}

// Raw speeds as H100, B200 and A100 report them.
TEST(Nvlink, CountsTheDataOfALinkAndNotItsLineCoding) {
  EXPECT_EQ(NvlinkGbps({0, true, LinkEnd::kSwitch, "", 26562}, 4), 200);
  EXPECT_EQ(NvlinkGbps({0, true, LinkEnd::kSwitch, "", 53125}, 5), 400);
  EXPECT_EQ(NvlinkGbps({0, true, LinkEnd::kSwitch, "", 25781}, 3), 200);
  EXPECT_EQ(NvlinkGbps({0, true, LinkEnd::kSwitch, "", 106250}, 6), 800);  // one that we have never seen
  EXPECT_EQ(NvlinkGbps({0, true, LinkEnd::kSwitch, "", 0}, 5), 400);
  EXPECT_EQ(NvlinkGbps({0, true, LinkEnd::kSwitch, "", 0}, 7), 0);
}

// The API server takes 1,000,000 Gb/s at most, and what it refuses is the whole node.
TEST(Nvlink, BelievesNoSpeedThatCouldNotBePublished) {
  GpuReading gpu = Gpu(0, 72, 72);
  for (NvlinkReading& link : gpu.nvlinks) link.speed_mbps = 10'000'000;
  const auto nvlink = NvlinkOf({gpu});
  EXPECT_GT(nvlink.gbps_per_gpu, 0);
  EXPECT_LE(nvlink.gbps_per_gpu, 1'000'000);
}

TEST(NvlinkDomain, IsUnknownWhereAGpuCouldNotJoin) {
  GpuReading gpu = Gpu(0, 18);
  gpu.fabric.error = 999;
  std::vector<std::string> problems;
  EXPECT_EQ(DomainOf({gpu, Gpu(1, 18)}, "n", problems).missing(), Missing::kUnknown);
  EXPECT_THAT(problems, testing::ElementsAre(HasSubstr("GPU 0 could not join")));
}

TEST(NvlinkDomain, OfARackIsThatOfTheGpusThatAreLeft) {
  std::vector<GpuReading> gpus{Gpu(0, 18), Gpu(1, 0, 0), Gpu(2, 18)};
  for (GpuReading& gpu : gpus) gpu.fabric.cluster_uuid = "7a1c";
  gpus[1].fabric = {};
  gpus[1].state = GpuState::kLost;
  std::vector<std::string> problems;
  EXPECT_EQ(DomainOf(gpus, "n", problems)->id, "7a1c.0");
  EXPECT_THAT(problems, IsEmpty());
}

TEST(NvlinkDomain, DoesNotApplyWhereEveryGpuIsLost) {
  GpuReading gpu = Gpu(0, 0, 0);
  gpu.state = GpuState::kLost;
  std::vector<std::string> problems;
  EXPECT_EQ(DomainOf({gpu}, "n", problems).missing(), Missing::kNotApplicable);
}

TEST(NvlinkFabric, SaysWhatTheHealthMaskMeans) {
  const auto of = [](std::uint32_t mask, int summary = 0) {
    GpuReading gpu;
    gpu.fabric.health_mask = mask;
    gpu.fabric.health_summary = summary;
    return FabricFaults({gpu});
  };
  EXPECT_THAT(of(0), IsEmpty());       // an older driver
  EXPECT_THAT(of(0x11aa), IsEmpty());  // nothing degraded, well configured, in a partition
  EXPECT_THAT(of(0x11a9), testing::ElementsAre("GPU 0: its bandwidth is degraded"));
  EXPECT_THAT(of(0x119a), testing::ElementsAre("GPU 0: a route is unhealthy"));
  EXPECT_THAT(
      of(0x15a6),
      testing::ElementsAre("GPU 0: routes are being recovered, its configuration is wrong: too few NVLinks"));
  EXPECT_THAT(of(0x2faa), testing::ElementsAre(HasSubstr("(code 15), it is assigned to no partition")));
  EXPECT_THAT(of(0, 3), testing::ElementsAre("GPU 0: its capacity is limited"));
}

TEST(NvlinkDomain, IsAmbiguousWhenTheGpusOfANodeAreInTwoCliques) {
  GpuReading a = Gpu(0, 18), b = Gpu(1, 18);
  a.fabric.cluster_uuid = b.fabric.cluster_uuid = "7a1c";
  b.fabric.clique = 1;
  std::vector<std::string> problems;
  EXPECT_EQ(DomainOf({a, b}, "n", problems).missing(), Missing::kAmbiguous);
  EXPECT_THAT(problems, testing::ElementsAre(HasSubstr("7a1c.0, 7a1c.1")));
}

TEST(NvlinkDomain, IsUnknownUntilTheFabricIsJoined) {
  GpuReading gpu = Gpu(0, 18);
  gpu.fabric.state = FabricState::kInProgress;
  std::vector<std::string> problems;
  EXPECT_EQ(DomainOf({gpu}, "n", problems).missing(), Missing::kUnknown);
  EXPECT_EQ(problems.size(), 1u);
}

TEST(NvlinkDomain, IsNotOneWhereBridgesJoinPairs) {
  std::vector<GpuReading> gpus;
  for (int i = 0; i < 4; ++i) {
    gpus.push_back(Gpu(i, 0, 0));
    gpus.back().nvlinks.push_back({0, true, LinkEnd::kGpu, "0000:0" + std::to_string(i ^ 1) + ":00.0", 0});
  }
  std::vector<std::string> problems;
  EXPECT_EQ(DomainOf(gpus, "n", problems).missing(), Missing::kAmbiguous);
  gpus[1].nvlinks.push_back({1, true, LinkEnd::kGpu, "0000:02:00.0", 0});
  EXPECT_EQ(DomainOf(gpus, "n", problems)->id, "n");
}

TEST(GpuHealth, NeedsPositiveEvidence) {
  GpuReading gpu;
  EXPECT_EQ(FaultOf(gpu), "");
  gpu.last_xid = 13;  // an application's own fault
  EXPECT_EQ(FaultOf(gpu), "");
  gpu.last_xid = 79;
  EXPECT_THAT(FaultOf(gpu), HasSubstr("XID 79"));
  gpu = {};
  gpu.row_remap_failure = true;
  EXPECT_THAT(FaultOf(gpu), HasSubstr("replace"));
  gpu = {};
  gpu.uncorrected_ecc = 2;
  EXPECT_THAT(FaultOf(gpu), HasSubstr("2 uncorrectable"));
  gpu = {};
  gpu.fabric.health_mask = 0x11a9;  // less bandwidth is no reason to leave the GPU alone
  gpu.fabric.health_summary = 3;
  EXPECT_EQ(FaultOf(gpu), "");
  gpu.fabric.health_summary = 2;
  EXPECT_THAT(FaultOf(gpu), HasSubstr("unhealthy: its bandwidth is degraded"));
  gpu = {};
  gpu.mig = false;
  EXPECT_EQ(FaultOf(gpu), "");
}

// NVIDIA's Xid catalog: of 144 to 149 only a status that comes with the XID tells what to do, and NVML does not have it.
TEST(GpuHealth, CallsAnXidFatalWhereItsNumberAloneTakesAReset) {
  for (const int xid : {48, 62, 64, 74, 79, 95, 110, 119, 120, 136, 140, 143, 150, 156, 158})
    EXPECT_TRUE(IsFatalXid(xid)) << xid;
  for (const int xid :
       {0, 13, 31, 43, 45, 63, 92, 94, 109, 137, 144, 145, 146, 147, 148, 149, 154, 155, 157, 161})
    EXPECT_FALSE(IsFatalXid(xid)) << xid;
}

TEST(GpuHealth, SaysWhatTheDriverAsksFor) {
  GpuReading gpu;
  gpu.recovery_action = 0;
  EXPECT_EQ(FaultOf(gpu), "");
  for (const auto& [action, next] :
       {std::pair(1, "drain the node and reset the GPU"), std::pair(2, "drain and reboot the node"),
        std::pair(3, "peer-to-peer traffic"), std::pair(4, "give it no new work"),
        std::pair(5, "nvidia-imex"), std::pair(77, "does not know (77)")}) {
    gpu.recovery_action = action;
    EXPECT_THAT(FaultOf(gpu), HasSubstr(next)) << action;
  }
  gpu.recovery_action = 2;
  gpu.last_xid = 119;
  EXPECT_EQ(FaultOf(gpu),
            "XID 119 was reported, and the driver asks for a reboot: drain and reboot the node");
  gpu.last_xid = 0;
  gpu.uncorrected_ecc = 2;
  EXPECT_EQ(FaultOf(gpu),
            "2 uncorrectable ECC errors since the driver was loaded, and the driver asks for a "
            "reboot: drain and reboot the node");
  gpu.recovery_action = 0;
  EXPECT_THAT(FaultOf(gpu), HasSubstr("loaded: drain the node and reset the GPU"));
  gpu.recovery_action.reset();  // not told now: as it was told last
  GpuReading before;
  before.recovery_action = 1;
  gpu.uncorrected_ecc = 0;
  KeepTold(before, gpu);
  EXPECT_THAT(FaultOf(gpu), HasSubstr("asks for a reset"));
}

TEST(NvmlYaml, ReadsBackWhatItWrote) {
  GpuReadings readings;
  readings.driver = "550.90.07";
  readings.gpus = {Gpu(0, 17), Gpu(1, 0, 0)};
  readings.gpus[0].uuid = "GPU-1";
  readings.gpus[0].name = "NVIDIA \"H100\" \\ 80GB: #1";
  readings.gpus[0].uncorrected_ecc = 3;
  readings.gpus[0].row_remap_pending = true;
  readings.gpus[0].nvlinks[2].speed_mbps = 26562;
  readings.gpus[0].mig = false;
  readings.gpus[1].state = GpuState::kLost;
  readings.gpus[1].fabric = {
      FabricState::kCompleted, "7a1c0000-0000-4000-8000-00000000000a", 4, 0x2aa6, 2, 999};
  readings.problems = {"GPU 2 does not answer: \"lost\"", "- x: y"};
  const GpuReadings again = ParseNvmlYaml(FormatNvmlYaml(readings));
  EXPECT_EQ(again.gpus, readings.gpus);
  EXPECT_EQ(again.driver, readings.driver);
  EXPECT_EQ(again.problems, readings.problems);
}

TEST(NvmlYaml, SaysAgainWhatTheSameTextSaidAndAnewWhatAnotherSays) {
  NvmlYaml reader;
  const std::string text = "driver_version: \"570.1\"\ngpus:\n- {index: 0, health: {last_xid: 0}}\n";
  EXPECT_EQ(reader.Read("").absent, ParseNvmlYaml("").absent) << "an empty text is one, too";
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(reader.Read(text).driver, "570.1");
    ASSERT_EQ(reader.Read(text).gpus.size(), 1u);
    EXPECT_EQ(reader.Read(text).gpus[0].last_xid, 0);
    EXPECT_EQ(reader.Read("driver_version: \"570.1\"\ngpus:\n- {index: 0, health: {last_xid: 79}}\n")
                  .gpus[0]
                  .last_xid,
              79);
  }
  EXPECT_TRUE(reader.Read("gpus: []\n").gpus.empty());
}

TEST(NvmlYaml, LeavesOutTheGpuThatIsWrittenWrong) {
  const auto readings = ParseNvmlYaml(
      "gpus: [{index: 1, uuid: [x], memory_mib: much, nvlinks: 7}, {index: -1}, 5, {index: 1}, {index: 0}]");
  ASSERT_EQ(readings.gpus.size(), 2u);
  EXPECT_EQ(readings.gpus[0].index, 0);
  EXPECT_EQ(readings.gpus[1].uuid, "");
  EXPECT_EQ(readings.problems.size(), 3u);
}

TEST(NvmlYaml, IsOneProblemWhenItIsNoYaml) {
  for (const char* text : {"", "gpus", "gpus: {}", "{", "a: b: c", "[1", "&a [*a]", "gpus: 7"}) {
    const auto readings = ParseNvmlYaml(text);
    EXPECT_THAT(readings.gpus, IsEmpty()) << text;
    EXPECT_FALSE(readings.absent.empty()) << text;
  }
}

TEST(Nvml, SaysThatThereIsNoDriver) {
  NvmlGpus gpus("libheddle-has-no-such-library.so.1");
  const GpuReadings readings = gpus.Read();
  EXPECT_THAT(readings.gpus, IsEmpty());
  EXPECT_THAT(readings.absent, HasSubstr("no NVIDIA driver here"));
  EXPECT_THAT(readings.problems, IsEmpty());  // a machine without GPUs is not a fault
}

TEST(Nvml, RefusesALibraryThatIsNoNvml) {
  EXPECT_THAT(NvmlGpus("libc.so.6").Read().absent, HasSubstr("is not NVML"));
}

}  // namespace
}  // namespace heddle::nodeagent
