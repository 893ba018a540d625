// The real path to the driver, dlopen and all, against a libnvidia-ml of our own (tests/support/nvml).
#include "nodeagent/gpu/nvml_gpus.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <tuple>

#include "nvml_bed.h"

namespace heddle::nodeagent {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using topology::Missing;

// What the recording says is all that the driver says: MIG and the like are unknown where it is silent.
void ExpectAsRecorded(const std::string& machine) {
  const test::NvmlBed bed(machine);
  const GpuReadings recorded = ParseNvmlYaml(bed.recorded());
  NvmlGpus gpus(test::Nvml());
  const GpuReadings live = gpus.Read();
  EXPECT_EQ(live.gpus, recorded.gpus) << machine << "\n" << FormatNvmlYaml(live);
  EXPECT_EQ(live.driver, recorded.driver) << machine;
  EXPECT_THAT(live.problems, IsEmpty()) << machine;
  EXPECT_EQ(gpus.Read().gpus, recorded.gpus) << machine << ", the second time";
}

TEST(NvmlGpus, SaysThroughTheDriverWhatTheRecordingSays) {
  for (const char* machine : {"dgx-a100", "dgx-a800", "hgx-h100", "hgx-h800", "hgx-h200", "hgx-b200",
                              "hgx-b300", "gb200-nvl72-tray", "gb300-nvl72-tray", "p5-48xlarge",
                              "p4d-24xlarge", "p6-b200-48xlarge", "roce-dual-tor"})
    ExpectAsRecorded(machine);
}

TEST(NvmlGpus, ReadsXidsEccAndRowRemapping) {
  ExpectAsRecorded("hgx-bad-gpu");
  NvmlGpus gpus(test::Nvml());
  const test::NvmlBed bed("hgx-bad-gpu");
  EXPECT_EQ(gpus.Read().gpus.at(5).last_xid, 95);
}

TEST(NvmlGpus, HearsANewXidBetweenTwoLooksAndTellsItWithTheNext) {
  const test::NvmlBed bed("hgx-bad-gpu");
  NvmlGpus gpus(test::Nvml());
  EXPECT_FALSE(gpus.Listen()) << "nothing is loaded yet";
  EXPECT_EQ(gpus.Read().gpus.at(5).last_xid, 95);
  EXPECT_FALSE(gpus.Listen());
  bed.Write(bed.Changed("last_xid: 95", "95", "13"));
  EXPECT_FALSE(gpus.Listen()) << "an application's own says nothing new of a GPU that is lost";
  bed.Write(bed.Changed("last_xid: 95", "95", "79"));
  EXPECT_TRUE(gpus.Listen());
  EXPECT_FALSE(gpus.Listen());
  EXPECT_EQ(gpus.Read().gpus.at(5).last_xid, 79);
}

TEST(NvmlGpus, SaysThatXidsAreNotHeardAndTriesAgain) {
  const test::NvmlBed bed("hgx-bad-gpu");
  for (const auto& [call, problem] :
       {std::pair("nvmlEventSetCreate", "XIDs of GPUs 0, 1, 2, 3, 4, 5, 6, 7 are not heard: error 999"),
        std::pair("nvmlDeviceRegisterEvents", "XIDs of GPUs 0, 1, 2, 3, 4, 5, 6, 7 are not heard: error 999"),
        std::pair("nvmlEventSetWait_v2", "XIDs are not heard: error 999")}) {
    SCOPED_TRACE(call);
    NvmlGpus gpus(test::Nvml());
    bed.Misbehave(std::string("{fails: {") + call + ": 999}}");
    for (int look = 0; look < 2; ++look) {
      const GpuReadings deaf = gpus.Read();
      EXPECT_THAT(deaf.problems, ElementsAre(problem));
      EXPECT_EQ(deaf.gpus.at(5).last_xid, 0);
    }
    bed.Write(bed.recorded());
    const GpuReadings hears = gpus.Read();
    EXPECT_THAT(hears.problems, IsEmpty());
    EXPECT_EQ(hears.gpus.at(5).last_xid, 95);
  }
  for (const char* call : {"nvmlEventSetCreate", "nvmlDeviceRegisterEvents"}) {
    bed.Misbehave(std::string("{fails: {") + call + ": 3}}");
    EXPECT_THAT(NvmlGpus(test::Nvml()).Read().problems, IsEmpty()) << "it has none to tell";
  }
  bed.Misbehave("{fails: {nvmlDeviceRegisterEvents: 3, nvmlEventSetWait_v2: 999}}");
  NvmlGpus none(test::Nvml());
  EXPECT_THAT(none.Read().problems, IsEmpty()) << "there is nothing to wait for";
  EXPECT_FALSE(none.listens());
}

TEST(NvmlGpus, HearsXidsOfADriverThatDoesNotKnowRecoveryActions) {
  const test::NvmlBed bed("hgx-bad-gpu");
  for (const char* error : {"2", "3", "999"}) {
    bed.Misbehave(std::string("{unknown_event: ") + error + "}");
    const GpuReadings readings = NvmlGpus(test::Nvml()).Read();
    EXPECT_THAT(readings.problems, IsEmpty()) << error;
    EXPECT_EQ(readings.gpus.at(5).last_xid, 95) << error;
  }
}

TEST(NvmlGpus, KeepsAFatalXidWhenAnApplicationsOwnFollows) {
  const test::NvmlBed bed("hgx-bad-gpu");
  NvmlGpus gpus(test::Nvml());
  EXPECT_EQ(gpus.Read().gpus.at(5).last_xid, 95);
  bed.Write(bed.Changed("last_xid: 95", "95", "13"));
  EXPECT_EQ(gpus.Read().gpus.at(5).last_xid, 95);
  bed.Write(bed.Changed("last_xid: 95", "95", "79"));
  EXPECT_EQ(gpus.Read().gpus.at(5).last_xid, 79);
}

TEST(NvmlGpus, LeavesUnknownWhatAnOldDriverCannotTell) {
  const test::NvmlBed bed("hgx-bad-gpu");
  const GpuReadings readings = NvmlGpus(test::OldNvml()).Read();
  EXPECT_THAT(readings.problems, IsEmpty());
  ASSERT_EQ(readings.gpus.size(), 8u);
  const GpuReading& bad = readings.gpus.at(5);
  const GpuReading recorded = ParseNvmlYaml(bed.recorded()).gpus.at(5);
  EXPECT_EQ(bad.pci, recorded.pci);  // by nvmlDeviceGetPciInfo
  EXPECT_EQ(bad.uuid, recorded.uuid);
  ASSERT_EQ(bad.nvlinks.size(), recorded.nvlinks.size());
  EXPECT_EQ(bad.nvlinks.at(3).remote_pci, recorded.nvlinks.at(3).remote_pci);
  EXPECT_EQ(bad.nvlinks.at(3).end, LinkEnd::kUnknown);
  EXPECT_EQ(bad.fabric.state, FabricState::kUnknown);
  EXPECT_EQ(bad.row_remap_pending, std::nullopt);
  EXPECT_EQ(bad.mig, std::nullopt);
  EXPECT_EQ(bad.last_xid, 95);  // by nvmlEventSetWait, whose event is shorter
  EXPECT_EQ(readings.gpus.at(4).last_xid, 0);
  EXPECT_EQ(bad.uncorrected_ecc, 1);
}

TEST(NvmlGpus, AsksOfTheFabricInTheNewestWordsThatTheDriverKnows) {
  const test::NvmlBed bed("gb200-nvl72-tray");
  const std::string sick =
      bed.Changed("clique: 3", "clique: 3", "clique: 3, health_mask: 5, health_summary: 3");
  for (const int version : {3, 2}) {
    bed.Write(sick + "fake: {fabric_version: " + std::to_string(version) + "}\n");
    const FabricReading fabric = NvmlGpus(test::Nvml()).Read().gpus.at(0).fabric;
    EXPECT_EQ(fabric.state, FabricState::kCompleted) << version;
    EXPECT_EQ(fabric.cluster_uuid, "7a1c0000-0000-4000-8000-00000000000a") << version;
    EXPECT_EQ(fabric.clique, 3u) << version;
    EXPECT_EQ(fabric.health_mask, 5u) << version;
    EXPECT_EQ(fabric.health_summary, version == 3 ? 3 : 0) << version;
  }
  bed.Write(sick + "fake: {fabric_version: 1}\n");
  const FabricReading first = NvmlGpus(test::Nvml()).Read().gpus.at(0).fabric;
  EXPECT_EQ(first,
            (FabricReading{FabricState::kCompleted, "7a1c0000-0000-4000-8000-00000000000a", 3, 0, 0, 0}));
  bed.Write(bed.Changed("index: 0", "state: completed", "state: in_progress") +
            "fake: {fabric_version: 1}\n");
  EXPECT_EQ(NvmlGpus(test::Nvml()).Read().gpus.at(0).fabric.state, FabricState::kInProgress);
  bed.Write(sick + "fake: {fabric_version: 0}\n");
  EXPECT_EQ(NvmlGpus(test::Nvml()).Read().gpus.at(0).fabric.state, FabricState::kUnknown);
}

TEST(NvmlGpus, TakesAFabricThatTheDriverFailsToTellOfForNoOtherDomain) {
  const test::NvmlBed bed("gb200-nvl72-tray");
  NvmlGpus gpus(test::Nvml());
  const GpuReadings before = gpus.Read();
  std::vector<std::string> problems;
  EXPECT_EQ(DomainOf(before.gpus, "n", problems)->id, "7a1c0000-0000-4000-8000-00000000000a.3");
  bed.Misbehave("{fails: {nvmlDeviceGetGpuFabricInfoV: 999}}");
  const GpuReadings after = gpus.Read();
  EXPECT_EQ(DomainOf(after.gpus, "n", problems).missing(), Missing::kUnknown) << "and not this machine alone";
  EXPECT_THAT(problems, ElementsAre(HasSubstr("does not say which NVLink fabric it is in (NVML error 999)")));
  FabricReading kept = after.gpus.at(2).fabric;
  kept.unread = 0;
  EXPECT_EQ(kept, before.gpus.at(2).fabric) << "what it last said";
  EXPECT_EQ(ParseNvmlYaml(FormatNvmlYaml(after)).gpus, after.gpus) << "a recording keeps it";
  // Of one GPU: the others do not speak for it, and it is in no second clique.
  std::vector<GpuReading> one = before.gpus;
  one[1].fabric.unread = 999;
  problems.clear();
  EXPECT_EQ(DomainOf(one, "n", problems).missing(), Missing::kUnknown);
  EXPECT_THAT(problems, ElementsAre(HasSubstr("GPU 1 does not say which")));
  bed.Write(bed.recorded());
  EXPECT_EQ(gpus.Read().gpus, before.gpus);
  bed.Misbehave("{fails: {nvmlDeviceGetGpuFabricInfoV: 999}}");
  problems.clear();
  EXPECT_EQ(DomainOf(NvmlGpus(test::Nvml()).Read().gpus, "n", problems).missing(), Missing::kUnknown)
      << "where it never said anything";
}

TEST(NvmlGpus, TakesAFabricThatADriverDoesNotKnowForNone) {
  const test::NvmlBed bed("hgx-h100");
  for (const char* error : {"2", "3", "13", "25", "26"}) {
    bed.Misbehave(std::string("{fails: {nvmlDeviceGetGpuFabricInfoV: ") + error + "}}");
    std::vector<std::string> problems;
    EXPECT_EQ(DomainOf(NvmlGpus(test::Nvml()).Read().gpus, "n", problems)->id, "n") << error;
    EXPECT_THAT(problems, IsEmpty()) << error;
  }
}

// A link that trained to half of its speed moves half of the data, and every ring over it waits.
TEST(NvmlGpus, NamesLinksThatAreSlowerThanIsUsualHere) {
  const test::NvmlBed bed("hgx-h100");
  EXPECT_THAT(SpeedsOf(NvmlGpus(test::Nvml()).Read().gpus).slow, IsEmpty());
  bed.Write(bed.Changed("index: 3", "speed_mbps: 26562", "speed_mbps: 13281"));
  const GpuReadings readings = NvmlGpus(test::Nvml()).Read();
  const NvlinkSpeeds speeds = SpeedsOf(readings.gpus);
  EXPECT_EQ(speeds.usual_gbps, 200);
  EXPECT_FALSE(speeds.assumed);
  EXPECT_THAT(speeds.slow, ElementsAre("GPU 3: link 0 trained to 100 Gb/s, others to 200"));
  EXPECT_EQ(NvlinkOf(readings.gpus).gbps_per_gpu, 3600);
  EXPECT_EQ(NvlinkOf(readings.gpus).usable_gbps(3), 3500) << "what placement counts on";
  EXPECT_EQ(NvlinkOf(readings.gpus).usable_gbps(2), 3600);
  // One that says more than the others does not speak for them.
  bed.Write(bed.Changed("index: 3", "speed_mbps: 26562", "speed_mbps: 53125"));
  EXPECT_EQ(NvlinkOf(NvmlGpus(test::Nvml()).Read().gpus).gbps_per_gpu, 3600);
  bed.Misbehave("{speeds: none}");
  EXPECT_TRUE(SpeedsOf(NvmlGpus(test::Nvml()).Read().gpus).assumed);
  EXPECT_EQ(SpeedsOf(NvmlGpus(test::Nvml()).Read().gpus).usual_gbps, 200);
}

TEST(NvmlGpus, ReadsTheFabricAnewEachTime) {
  const test::NvmlBed bed("gb200-nvl72-tray");
  NvmlGpus gpus(test::Nvml());
  std::vector<std::string> problems;
  EXPECT_TRUE(DomainOf(gpus.Read().gpus, "n", problems).known());
  bed.Write(bed.Changed("index: 1", "clique: 3", "clique: 4"));
  EXPECT_EQ(DomainOf(gpus.Read().gpus, "n", problems).missing(), Missing::kAmbiguous);
  bed.Write(bed.Changed("index: 1", "state: completed", "state: in_progress"));
  EXPECT_EQ(DomainOf(gpus.Read().gpus, "n", problems).missing(), Missing::kUnknown);
  bed.Write(bed.recorded());
  EXPECT_TRUE(DomainOf(gpus.Read().gpus, "n", problems).known());
}

TEST(NvmlGpus, SeesALinkGoDownAndComeBack) {
  const test::NvmlBed bed("hgx-h100");
  NvmlGpus gpus(test::Nvml());
  EXPECT_THAT(NvlinkOf(gpus.Read().gpus).exceptions, IsEmpty());
  bed.Write(bed.Changed("index: 4", "link: 7, state: active", "link: 7, state: inactive"));
  const auto nvlink = NvlinkOf(gpus.Read().gpus);
  ASSERT_EQ(nvlink.exceptions.size(), 1u);
  EXPECT_EQ(nvlink.exceptions[0].gpu, 4);
  EXPECT_EQ(nvlink.exceptions[0].links_up, 17);
  bed.Write(bed.recorded());
  EXPECT_THAT(NvlinkOf(gpus.Read().gpus).exceptions, IsEmpty());
}

// As drivers do that have dropped the call, for the whole GPU or by saying that they do not support it.
TEST(NvmlGpus, AsksForTheStateOfLinksByTheFieldWhereTheCallIsNotSupported) {
  const test::NvmlBed bed("hgx-h100");
  const std::string one_down = bed.Changed("index: 4", "link: 7, state: active", "link: 7, state: inactive");
  bed.Write(one_down);
  const GpuReadings by_call = NvmlGpus(test::Nvml()).Read();
  for (const char* error : {"3", "13"}) {
    bed.Write(one_down + "fake: {link_states: true, fails: {nvmlDeviceGetNvLinkState: " + error + "}}\n");
    EXPECT_EQ(NvmlGpus(test::Nvml()).Read().gpus, by_call.gpus) << error;
  }
  bed.Write(one_down + "fake: {fails: {nvmlDeviceGetNvLinkState: 3}}\n");
  for (const GpuReading& gpu : NvmlGpus(test::Nvml()).Read().gpus)
    EXPECT_THAT(gpu.nvlinks, IsEmpty()) << "neither tells: no link, and not one that is down";
}

// A query that fails is no link that is down, and no link that is not there.
TEST(NvmlGpus, KeepsWhatWasLastToldOfALinkThatTheDriverFailsToTellOf) {
  const test::NvmlBed bed("hgx-h100");
  NvmlGpus gpus(test::Nvml());
  const GpuReadings before = gpus.Read();
  bed.Misbehave("{link_fails: {\"3.7\": 999, \"3.9\": 4}}");
  const GpuReadings after = gpus.Read();
  EXPECT_THAT(after.problems,
              ElementsAre("GPU 3 does not say whether its NVLinks 7, 9 are up, and what it last said "
                          "stays: permission is denied: give the agent's container the driver's "
                          "device nodes"));
  ASSERT_EQ(after.gpus.at(3).nvlinks.size(), 18u);
  NvlinkReading kept = after.gpus[3].nvlinks[7];
  EXPECT_EQ(kept.word, LinkWord::kKept);
  kept.word = LinkWord::kSaid;
  EXPECT_EQ(kept, before.gpus[3].nvlinks[7]);
  EXPECT_EQ(NvlinkOf(after.gpus), NvlinkOf(before.gpus));
  EXPECT_EQ(ParseNvmlYaml(FormatNvmlYaml(after)).gpus, after.gpus) << "a recording keeps it";
  bed.Write(bed.recorded());
  EXPECT_EQ(gpus.Read().gpus, before.gpus);
}

TEST(NvmlGpus, KeepsWhereALinkEndsAndItsSpeedWhileTheDriverFailsToTellThat) {
  const test::NvmlBed bed("hgx-h100");
  for (const char* call : {"nvmlDeviceGetNvLinkVersion", "nvmlDeviceGetNvLinkRemoteDeviceType",
                           "nvmlDeviceGetNvLinkRemotePciInfo_v2", "nvmlDeviceGetFieldValues"}) {
    NvmlGpus gpus(test::Nvml());
    const GpuReadings before = gpus.Read();
    bed.Misbehave(std::string("{fails: {") + call + ": 999}}");
    EXPECT_EQ(gpus.Read().gpus, before.gpus) << call;
    bed.Write(bed.recorded());
  }
}

TEST(NvmlGpus, CallsALinkThatIsDownStillDownWhenTheDriverFailsToTellOfIt) {
  const test::NvmlBed bed("hgx-h100");
  const std::string one_down = bed.Changed("index: 4", "link: 7, state: active", "link: 7, state: inactive");
  bed.Write(one_down);
  NvmlGpus gpus(test::Nvml());
  const auto down = NvlinkOf(gpus.Read().gpus);
  ASSERT_EQ(down.exceptions.size(), 1u);
  bed.Write(one_down + "fake: {link_fails: {\"4.7\": 999}}\n");
  EXPECT_EQ(NvlinkOf(gpus.Read().gpus), down);
}

TEST(NvmlGpus, CountsALinkThatNobodyEverToldOfAsNeitherUpNorDown) {
  const test::NvmlBed bed("hgx-h100");
  bed.Misbehave("{link_fails: {\"3.7\": 999}}");
  const GpuReadings one = NvmlGpus(test::Nvml()).Read();
  EXPECT_EQ(one.gpus.at(3).nvlinks.at(7).word, LinkWord::kUntold);
  EXPECT_FALSE(one.gpus[3].nvlinks[7].active);
  EXPECT_THAT(NvlinkOf(one.gpus).exceptions, IsEmpty());
  EXPECT_EQ(NvlinkOf(one.gpus).links_per_gpu, 18);
  std::vector<std::string> problems;
  EXPECT_EQ(DomainOf(one.gpus, "n", problems)->id, "n");
  // Of all links of all GPUs: that there is no NVLink is not known either.
  for (const char* fake : {"{fails: {nvmlDeviceGetNvLinkState: 999}}",
                           "{fails: {nvmlDeviceGetNvLinkState: 3, nvmlDeviceGetFieldValues: 999}}"}) {
    bed.Misbehave(fake);
    const GpuReadings none = NvmlGpus(test::Nvml()).Read();
    EXPECT_EQ(none.problems.size(), 8u) << fake;
    EXPECT_EQ(NvlinkOf(none.gpus).links_per_gpu, 0) << fake;
    EXPECT_EQ(DomainOf(none.gpus, "n", problems).missing(), Missing::kUnknown) << fake;
    EXPECT_EQ(ParseNvmlYaml(FormatNvmlYaml(none)).gpus, none.gpus) << fake;
  }
}

TEST(NvmlGpus, AsksForTheStateOfAllLinksAtOnce) {
  const test::NvmlBed bed("roce-dual-tor");  // L40S, without NVLink
  int calls = 0;
  NvmlGpus gpus(test::Nvml(), [&calls](std::string_view call, int gpu) {
    if (gpu == 0 && call == "nvmlDeviceGetFieldValues") ++calls;
  });
  EXPECT_THAT(gpus.Read().gpus.at(0).nvlinks, IsEmpty());
  EXPECT_EQ(calls, 2) << "one for all links, one for the recovery action";
}

TEST(NvmlGpus, AsksLinksBeforeGeneration5ForNoCountThatTheyDoNotHave) {
  const test::NvmlBed bed("hgx-h100");
  bed.Write(bed.Changed("nvlinks:", "{link: 0", "{link: 0, replays: 5, malformed: 7"));
  const NvlinkErrors errors = NvmlGpus(test::Nvml()).Read().gpus.at(0).nvlinks.at(0).errors;
  EXPECT_EQ(errors.replays, 5u);
  EXPECT_EQ(errors.malformed, std::nullopt);
}

std::string WithSpeeds(std::string yaml, const std::string& speed) {
  std::size_t at = 0;
  while ((at = yaml.find("remote_type:", at)) != std::string::npos) {
    yaml.insert(at, "speed_mbps: " + speed + ", ");
    at += speed.size() + 30;
  }
  return yaml;
}

TEST(NvmlGpus, TakesTheBandwidthOfALinkFromTheDriverInEitherField) {
  const test::NvmlBed bed("hgx-h100");
  for (const char* speeds : {"all", "common"}) {
    bed.Write(WithSpeeds(bed.recorded(), "13281") + "fake: {speeds: " + speeds + "}\n");
    EXPECT_EQ(NvlinkOf(NvmlGpus(test::Nvml()).Read().gpus).gbps_per_gpu, 1800) << speeds;
  }
  bed.Write(WithSpeeds(bed.recorded(), "26562") + "fake: {speeds: none}\n");
  const auto silent = NvmlGpus(test::Nvml()).Read();
  EXPECT_EQ(silent.gpus.at(0).nvlinks.at(0).speed_mbps, 0);
  EXPECT_EQ(NvlinkOf(silent.gpus).gbps_per_gpu, 3600);
}

TEST(NvmlGpus, KeepsTheNameOfAGpuThatIsLostBetweenTwoLooks) {
  const test::NvmlBed bed("hgx-h100");
  NvmlGpus gpus(test::Nvml());
  const GpuReadings before = gpus.Read();
  bed.Misbehave("{lost: {2: 0}}");
  const GpuReadings after = gpus.Read();
  ASSERT_EQ(after.gpus.size(), 8u);
  EXPECT_EQ(after.gpus[2].state, GpuState::kLost);
  EXPECT_EQ(after.gpus[2].uuid, before.gpus[2].uuid);
  EXPECT_EQ(after.gpus[2].pci, before.gpus[2].pci);
  EXPECT_THAT(FaultOf(after.gpus[2]), HasSubstr("fell off the bus"));
  EXPECT_EQ(after.gpus[3], before.gpus[3]);
  std::vector<std::string> problems;
  EXPECT_EQ(DomainOf(after.gpus, "n", problems)->id, "n");  // the other seven are still in one
  EXPECT_THAT(problems, IsEmpty());
}

// An error is not that it went: seven GPUs would be another machine.
TEST(NvmlGpus, KeepsAGpuThatItKnowsWhileTheDriverFailsOnIt) {
  const test::NvmlBed bed("hgx-h100");
  NvmlGpus gpus(test::Nvml());
  const GpuReadings before = gpus.Read();
  bed.Misbehave("{gpu_fails: {2: 999}}");
  for (int look = 0; look < 2; ++look) {
    const GpuReadings after = gpus.Read();
    ASSERT_EQ(after.gpus.size(), 8u);
    EXPECT_EQ(after.gpus[2].state, GpuState::kFails);
    EXPECT_EQ(FaultOf(after.gpus[2]),
              "the driver does not answer for it (error 999): if that stays, drain and reboot the node");
    GpuReading kept = after.gpus[2];
    kept.state = GpuState::kAnswers;
    kept.failure.clear();
    EXPECT_EQ(kept, before.gpus[2]) << "what it last said";
    EXPECT_EQ(after.gpus[3], before.gpus[3]);
    EXPECT_EQ(ParseNvmlYaml(FormatNvmlYaml(after)).gpus, after.gpus) << "a recording keeps it";
  }
  bed.Write(bed.recorded());
  EXPECT_EQ(gpus.Read().gpus, before.gpus);
}

// Each call of a lost GPU may take the driver's whole time-out.
TEST(NvmlGpus, AsksALostGpuNothingMore) {
  const test::NvmlBed bed("hgx-h100");
  std::vector<std::string> calls;
  NvmlGpus gpus(test::Nvml(), [&calls](std::string_view call, int gpu) {
    if (gpu == 2) calls.emplace_back(call);
  });
  (void)gpus.Read();
  bed.Misbehave("{lost: {2: 3}}");
  calls.clear();
  (void)gpus.Read();
  EXPECT_THAT(calls, ElementsAre("nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUUID", "nvmlDeviceGetName",
                                 "nvmlDeviceGetPciInfo_v3"));
}

// Wherever in the questions it happens: every call of the GPU may be the last that is answered.
TEST(NvmlGpus, NoticesAGpuThatIsLostInTheMiddleOfALook) {
  const test::NvmlBed bed("dgx-a100");
  NvmlGpus gpus(test::Nvml());
  const GpuReadings before = gpus.Read();
  int calls = 1;
  for (;; ++calls) {
    bed.Misbehave("{lost: {6: " + std::to_string(calls) + "}}");
    const GpuReadings after = gpus.Read();
    ASSERT_EQ(after.gpus.size(), 8u) << calls;
    EXPECT_EQ(after.gpus[7], before.gpus[7]) << calls;
    EXPECT_EQ(after.gpus[6].uuid, before.gpus[6].uuid) << calls;
    if (after.gpus[6] == before.gpus[6]) break;  // it was asked everything before it went
    EXPECT_EQ(after.gpus[6].state, GpuState::kLost) << calls;
    ASSERT_LT(calls, 1000);
  }
  EXPECT_GT(calls, 12 * 3);
}

TEST(NvmlGpus, NamesAGpuThatNeverAnswered) {
  const test::NvmlBed bed("hgx-h100");
  bed.Misbehave("{lost: {2: 0}}");
  const GpuReadings readings = NvmlGpus(test::Nvml()).Read();
  EXPECT_EQ(readings.gpus.size(), 7u);
  EXPECT_THAT(readings.problems,
              ElementsAre(HasSubstr("GPU 2 does not answer: the GPU has fallen off the bus")));
}

TEST(NvmlGpus, TakesAFailingCallForAnUnknownFactAndNoMore) {
  const test::NvmlBed bed("hgx-h100");
  const GpuReadings good = NvmlGpus(test::Nvml()).Read();
  for (const char* call :
       {"nvmlSystemGetDriverVersion", "nvmlDeviceGetUUID", "nvmlDeviceGetName", "nvmlDeviceGetPciInfo_v3",
        "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetNvLinkState", "nvmlDeviceGetNvLinkVersion",
        "nvmlDeviceGetNvLinkRemoteDeviceType", "nvmlDeviceGetNvLinkRemotePciInfo_v2",
        "nvmlDeviceGetFieldValues", "nvmlDeviceGetGpuFabricInfoV", "nvmlDeviceGetTotalEccErrors",
        "nvmlDeviceGetRemappedRows", "nvmlDeviceGetMigMode", "nvmlEventSetCreate", "nvmlDeviceRegisterEvents",
        "nvmlEventSetWait_v2"}) {
    bed.Misbehave(std::string("{fails: {") + call + ": 999}}");
    const GpuReadings readings = NvmlGpus(test::Nvml()).Read();
    EXPECT_EQ(readings.gpus.size(), 8u) << call;
    EXPECT_THAT(readings.absent, IsEmpty()) << call;
    for (const GpuReading& gpu : readings.gpus) EXPECT_EQ(FaultOf(gpu), "") << call;
  }
  bed.Misbehave("{fails: {nvmlDeviceGetHandleByIndex_v2: 4}}");
  const GpuReadings none = NvmlGpus(test::Nvml()).Read();
  EXPECT_THAT(none.gpus, IsEmpty());
  EXPECT_THAT(none.problems, Contains(HasSubstr("give the agent's container the driver's device nodes")));
}

TEST(NvmlGpus, KeepsAGpuUnhealthyWhoseFaultCannotBeReadAnyMore) {
  const test::NvmlBed bed("hgx-h100");
  for (const auto& [good, bad, call, what] :
       {std::tuple("volatile_uncorrected: 0", "volatile_uncorrected: 2", "nvmlDeviceGetTotalEccErrors",
                   "2 uncorrectable ECC errors"),
        std::tuple("row_remap_pending: false", "row_remap_pending: true", "nvmlDeviceGetRemappedRows",
                   "waits to be remapped"),
        std::tuple("row_remap_failure: false", "row_remap_failure: true", "nvmlDeviceGetRemappedRows",
                   "could not be remapped")}) {
    SCOPED_TRACE(what);
    NvmlGpus gpus(test::Nvml());
    const std::string sick = bed.Changed("index: 3", good, bad);
    bed.Write(sick);
    EXPECT_THAT(FaultOf(gpus.Read().gpus.at(3)), HasSubstr(what));
    bed.Write(sick + "fake: {fails: {" + call + ": 999}}\n");
    for (int look = 0; look < 2; ++look) EXPECT_THAT(FaultOf(gpus.Read().gpus.at(3)), HasSubstr(what));
    bed.Write(bed.recorded());
    EXPECT_EQ(FaultOf(gpus.Read().gpus.at(3)), "") << "it is told that it is over";
  }
}

TEST(NvmlGpus, ReadsWhatTheDriverAsksForAndHearsWhenThatChanges) {
  const test::NvmlBed bed("hgx-h100");
  const auto asks = [&bed](const char* action) {
    bed.Write(bed.Changed("index: 3", "last_xid: 0", std::string("last_xid: 0, recovery_action: ") + action));
  };
  asks("0");
  NvmlGpus gpus(test::Nvml());
  const GpuReadings none = gpus.Read();
  EXPECT_EQ(none.gpus.at(3).recovery_action, 0);
  EXPECT_EQ(none.gpus.at(4).recovery_action, std::nullopt) << "an older driver does not say";
  EXPECT_THAT(none.problems, IsEmpty());
  EXPECT_EQ(FaultOf(none.gpus[3]), "");
  EXPECT_FALSE(gpus.Listen());
  asks("2");
  EXPECT_TRUE(gpus.Listen());
  EXPECT_FALSE(gpus.Listen());
  const GpuReadings reboot = gpus.Read();
  EXPECT_EQ(FaultOf(reboot.gpus.at(3)), "the driver asks for a reboot: drain and reboot the node");
  EXPECT_EQ(ParseNvmlYaml(FormatNvmlYaml(reboot)).gpus, reboot.gpus) << "a recording keeps it";
  asks("0");
  EXPECT_EQ(FaultOf(gpus.Read().gpus.at(3)), "");
}

TEST(NvmlGpus, SaysWhyTheDriverDoesNotStartAndTriesAgain) {
  const test::NvmlBed bed("hgx-h100");
  NvmlGpus gpus(test::Nvml());
  bed.Misbehave("{init: 9}");
  EXPECT_THAT(gpus.Read().absent, HasSubstr("the nvidia kernel module is not loaded"));
  bed.Misbehave("{init: 18}");
  EXPECT_THAT(gpus.Read().absent, HasSubstr("different versions"));
  bed.Misbehave("{fails: {nvmlDeviceGetCount_v2: 999}}");
  EXPECT_THAT(gpus.Read().absent, HasSubstr("how many GPUs there are: error 999"));
  bed.Write(bed.recorded());
  EXPECT_EQ(gpus.Read().gpus.size(), 8u);
}

TEST(NvmlGpus, FindsTheDriverBelowTheRootOfAHost) {
  const test::NvmlBed bed("hgx-h100");
  const test::TemporaryFolder host;
  NvmlGpus gpus(host.path() + "/");
  EXPECT_THAT(gpus.Read().absent, HasSubstr("no libnvidia-ml.so.1 below " + host.path()));
  const auto install = [&host](const std::string& library, const std::string& folder) {
    const std::filesystem::path to = std::filesystem::path(host.path()) / folder;
    std::filesystem::create_directories(to);
    std::filesystem::create_symlink(library, to / "libnvidia-ml.so.1");
  };
  install("/nowhere/of/the/host", "usr/lib/x86_64-linux-gnu");  // Debian's alternatives
  EXPECT_THAT(gpus.Read().absent, HasSubstr("no libnvidia-ml.so.1 below"));
  install(test::OldNvml(), "usr/lib64");
  EXPECT_EQ(gpus.Read().gpus.size(), 8u) << "the driver came after the agent";
  install("/bin/true", "run/nvidia/driver/usr/lib64");
  EXPECT_THAT(NvmlGpus(host.path() + "/").Read().absent, HasSubstr("run/nvidia/driver"))
      << "a driver container goes first: its module is the one that is loaded";
}

TEST(NvmlGpus, ReportsAnAskedForResetAndMig) {
  const test::NvmlBed bed("hgx-h100");
  bed.Misbehave("{fails: {nvmlDeviceGetName: 16}}");
  EXPECT_THAT(FaultOf(NvmlGpus(test::Nvml()).Read().gpus.at(0)), HasSubstr("reset the GPU"));
  bed.Write(bed.Changed("index: 3", "memory_mib", "mig: true\n  memory_mib"));
  const GpuReadings readings = NvmlGpus(test::Nvml()).Read();
  EXPECT_THAT(FaultOf(readings.gpus.at(3)), HasSubstr("MIG is on"));
  EXPECT_EQ(FaultOf(readings.gpus.at(4)), "");
}

TEST(NvmlGpus, NamesEveryCallBeforeItIsMade) {
  const test::NvmlBed bed("hgx-h100");
  std::vector<std::string> calls;
  NvmlGpus gpus(test::Nvml(), [&calls](std::string_view call, int gpu) {
    calls.push_back(std::string(call) + " " + std::to_string(gpu));
  });
  (void)gpus.Read();
  ASSERT_GT(calls.size(), 100u);
  EXPECT_EQ(calls[0], "dlopen -1");
  EXPECT_EQ(calls[1], "nvmlInit_v2 -1");
  EXPECT_THAT(calls, Contains("nvmlDeviceGetNvLinkState 7"));
}

}  // namespace
}  // namespace heddle::nodeagent
