// NVLink from look to look: errors, links that went, cliques that changed, GPUs that do not answer, restarts.
#include "nodeagent/health/nvlink_health.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "nodeagent/gpu/nvml_gpus.h"
#include "nodeagent/health/link_rules.h"
#include "nvml_bed.h"
#include "tests/support/seeds.h"

namespace heddle::nodeagent {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct Gpus {
  Gpus() {
    for (int i = 0; i < 8; ++i) {
      GpuReading gpu;
      gpu.index = i;
      gpu.uuid = fmt::format("GPU-{}", i);
      for (int link = 0; link < 18; ++link)
        gpu.nvlinks.push_back({link, true, LinkEnd::kSwitch, {}, 26'562, {0, 0, 0, std::nullopt}});
      gpu.fabric.state = FabricState::kCompleted;
      gpu.fabric.cluster_uuid = "c1";
      gpu.fabric.clique = 1;
      readings.gpus.push_back(std::move(gpu));
    }
  }
  NvlinkErrors& Errors(int gpu, int link) {
    return readings.gpus[std::size_t(gpu)].nvlinks[std::size_t(link)].errors;
  }
  GpuReading& operator[](int gpu) { return readings.gpus[std::size_t(gpu)]; }
  std::vector<std::string> LookAfter(std::chrono::seconds time) {
    now += time;
    wall += time;
    std::vector<std::string> said;
    for (const NvlinkChange& change : health.Look(readings, now, wall)) said.push_back(SayChange(change));
    return said;
  }
  topology::Node Published() const {
    topology::Node node;
    node.nvlink.links_per_gpu = 18;
    for (const GpuReading& gpu : readings.gpus) {
      topology::Gpu one;
      one.uuid = gpu.uuid;
      node.gpus.push_back(one);
    }
    return node;
  }

  NvlinkHealth health;
  GpuReadings readings;
  base::MonotonicTime now{minutes(1)};
  base::WallTime wall{seconds(1'800'000'000)};
};

TEST(NvlinkHealth, HasNothingAgainstWhatItSeesFirst) {
  Gpus gpus;
  EXPECT_FALSE(gpus.health.Judges());
  gpus.Errors(3, 4) = {1'000'000, 12, 3, std::nullopt};
  EXPECT_THAT(gpus.LookAfter(seconds(60)), IsEmpty());
  EXPECT_TRUE(gpus.health.Judges());
  EXPECT_EQ(gpus.health.ExpectedLinks(), 18);
  EXPECT_THAT(gpus.health.Faults(), IsEmpty());
}

TEST(NvlinkHealth, NamesReplaysAndRecoveriesWithTheirLinks) {
  Gpus gpus;
  gpus.LookAfter(seconds(60));
  gpus.Errors(3, 4).replays = 1;
  gpus.Errors(3, 11).replays = 2;
  gpus.Errors(5, 0).recoveries = 1;
  EXPECT_THAT(gpus.LookAfter(seconds(60)), SizeIs(2));
  EXPECT_THAT(gpus.health.Faults(),
              ElementsAre("GPU 3 counts 3 replays on NVLinks 4, 11, since 2027-01-15T08:02:00Z",
                          "GPU 5 counts 1 recoveries on NVLink 0, since 2027-01-15T08:02:00Z"));
}

TEST(NvlinkHealth, CallsCrcErrorsAFaultFromAHundredASecond) {
  Gpus gpus;
  gpus.LookAfter(seconds(60));
  gpus.Errors(2, 7).crc = 5'999;
  gpus.LookAfter(seconds(60));
  EXPECT_THAT(gpus.health.Faults(), IsEmpty());
  gpus.Errors(2, 7).crc = 5'999 + 6'000;
  gpus.LookAfter(seconds(60));
  EXPECT_THAT(gpus.health.Faults(), ElementsAre(HasSubstr("GPU 2 counts 6000 CRC errors on NVLink 7")));
}

TEST(NvlinkHealth, CallsAnyOverrunIntegrityErrorAndFailedRecoveryAFaultAndTenMalformedPacketsASecond) {
  Gpus gpus;
  const auto count = [&gpus](std::uint64_t overruns, std::uint64_t malformed) {
    gpus.Errors(2, 7).overruns = gpus.Errors(2, 7).integrity = gpus.Errors(2, 7).failed_recoveries = overruns;
    gpus.Errors(2, 7).malformed = malformed;
    gpus.LookAfter(seconds(60));
  };
  count(3, 1'000);
  count(3, 1'599);
  EXPECT_THAT(gpus.health.Faults(), IsEmpty());
  count(4, 1'599 + 600);
  EXPECT_THAT(gpus.health.Faults(),
              ElementsAre(HasSubstr("GPU 2 counts 1 failed recoveries on NVLink 7"),
                          HasSubstr("GPU 2 counts 600 malformed packets on NVLink 7"),
                          HasSubstr("GPU 2 counts 1 buffer overruns on NVLink 7"),
                          HasSubstr("GPU 2 counts 1 local integrity errors on NVLink 7")));
  EXPECT_THAT(gpus.health.Doubts(), ElementsAre(NvlinkDoubt{2, 0, 1, std::nullopt}));
}

TEST(NvlinkHealth, TakesASmallerCountForADriverThatWasLoadedAnew) {
  Gpus gpus;
  gpus.Errors(2, 7).replays = 90;
  gpus.LookAfter(seconds(60));
  gpus.Errors(2, 7).replays = 3;
  EXPECT_THAT(gpus.LookAfter(seconds(60)), IsEmpty());
  gpus.Errors(2, 7).replays = 4;
  EXPECT_THAT(gpus.LookAfter(seconds(60)), SizeIs(1));
}

TEST(NvlinkHealth, ForgivesAfterAQuietTimeThatItWatched) {
  Gpus gpus;
  gpus.LookAfter(seconds(60));
  gpus.Errors(2, 7).replays = 1;
  gpus.LookAfter(seconds(60));
  gpus.LookAfter(seconds(60));  // quiet from here
  gpus.LookAfter(minutes(9));
  EXPECT_THAT(gpus.health.Faults(), SizeIs(1));
  gpus.Errors(2, 7).replays.reset();  // not told: not quiet
  gpus.LookAfter(minutes(5));
  gpus.Errors(2, 7).replays = 1;
  for (auto& link : gpus[2].nvlinks) link.errors.replays = link.link == 7 ? 1 : 0;
  gpus.LookAfter(minutes(5));
  EXPECT_THAT(gpus.LookAfter(minutes(10)), ElementsAre(HasSubstr("over: GPU 2 counts 1 replays")));
  EXPECT_THAT(gpus.health.Faults(), IsEmpty());
}

TEST(NvlinkHealth, MissesLinksThatEveryGpuLost) {
  Gpus gpus;
  gpus.LookAfter(seconds(60));
  for (GpuReading& gpu : gpus.readings.gpus) gpu.nvlinks[17].active = false;  // their switch died
  gpus.LookAfter(seconds(60));
  EXPECT_EQ(gpus.health.ExpectedLinks(), 18);
  EXPECT_THAT(gpus.health.Faults(), SizeIs(8));
  EXPECT_EQ(gpus.health.Faults().front(), "GPU 0 has 17 of 18 NVLinks up, since 2027-01-15T08:02:00Z");
  for (GpuReading& gpu : gpus.readings.gpus) gpu.nvlinks[17].active = true;
  gpus.LookAfter(seconds(60));
  EXPECT_THAT(gpus.health.Faults(), SizeIs(8)) << "a link that came back is not trusted at once";
  EXPECT_THAT(gpus.LookAfter(minutes(10)), SizeIs(8));
  EXPECT_THAT(gpus.health.Faults(), IsEmpty());
}

TEST(NvlinkHealth, BeginsAndEndsNothingByALinkThatTheDriverFailsToTellOf) {
  Gpus gpus;
  gpus[3].nvlinks[7].active = false;  // never told of
  gpus[3].nvlinks[7].word = LinkWord::kUntold;
  gpus.LookAfter(seconds(60));
  EXPECT_EQ(gpus.health.ExpectedLinks(), 18);
  EXPECT_THAT(gpus.LookAfter(seconds(60)), IsEmpty());
  EXPECT_THAT(gpus.health.Faults(), IsEmpty());
  gpus[3].nvlinks[8].active = false;  // said to be down
  gpus.LookAfter(seconds(60));
  EXPECT_THAT(gpus.health.Faults(), ElementsAre(HasSubstr("GPU 3 has 17 of 18 NVLinks up")));
  gpus[3].nvlinks[7].active = true;
  gpus[3].nvlinks[7].word = LinkWord::kSaid;
  gpus[3].nvlinks[8].word = LinkWord::kKept;  // as it was last told: down
  gpus.LookAfter(seconds(60));
  EXPECT_THAT(gpus.LookAfter(minutes(30)), IsEmpty());
  EXPECT_THAT(gpus.health.Faults(), ElementsAre(HasSubstr("GPU 3 has 17 of 18 NVLinks up")));
  gpus[3].nvlinks[8].active = true;
  gpus[3].nvlinks[8].word = LinkWord::kSaid;
  gpus.LookAfter(seconds(60));  // quiet from here
  gpus.LookAfter(minutes(5));
  gpus[3].nvlinks[8].word = LinkWord::kKept;  // not told: not quiet
  gpus.LookAfter(minutes(4));
  gpus[3].nvlinks[8].word = LinkWord::kSaid;
  EXPECT_THAT(gpus.LookAfter(minutes(2)), IsEmpty());
  EXPECT_THAT(gpus.LookAfter(minutes(10)), ElementsAre(HasSubstr("over: GPU 3 has 17 of 18")));
}

TEST(NvlinkHealth, DoubtsLinksWithErrorsAndLinksThatCameBackUntilTheQuietTimeIsOver) {
  Gpus gpus;
  gpus.LookAfter(seconds(60));
  EXPECT_THAT(gpus.health.Doubts(), IsEmpty());
  gpus.Errors(3, 4).replays = 1;
  gpus.Errors(3, 4).recoveries = 1;
  gpus.Errors(3, 11).replays = 2;
  gpus[5].nvlinks[17].active = false;
  gpus.LookAfter(seconds(60));
  const NvlinkDoubt errors{3, 0, 2, std::nullopt}, gone{5, 1, 0, std::nullopt};
  EXPECT_THAT(gpus.health.Doubts(), ElementsAre(errors, gone)) << "a link is one link whatever it counts";
  gpus[5].nvlinks[17].active = true;
  gpus.LookAfter(seconds(60));
  gpus.LookAfter(minutes(9));
  EXPECT_THAT(gpus.health.Doubts(), ElementsAre(errors, gone));
  gpus.LookAfter(minutes(1));
  EXPECT_THAT(gpus.health.Doubts(), IsEmpty());
}

// What is published changes with the sentence, and a sentence costs a write to the API server.
TEST(NvlinkHealth, DoubtsNoMoreLinksThanItsSentencesName) {
  Gpus gpus;
  gpus.LookAfter(seconds(60));
  gpus.Errors(3, 4).replays = 100;
  gpus.LookAfter(seconds(60));
  gpus.Errors(3, 5).replays = 1;
  EXPECT_THAT(gpus.LookAfter(seconds(60)), IsEmpty());
  EXPECT_THAT(gpus.health.Doubts(), ElementsAre(NvlinkDoubt{3, 0, 1, std::nullopt}));
  gpus.Errors(3, 5).replays = 101;
  EXPECT_THAT(gpus.LookAfter(seconds(60)), SizeIs(1));
  EXPECT_THAT(gpus.health.Doubts(), ElementsAre(NvlinkDoubt{3, 0, 2, std::nullopt}));
}

TEST(NvlinkHealth, DoubtsAfterARestartWhatWasDoubtedBefore) {
  topology::Node published;
  Gpus gpus;
  published = gpus.Published();
  published.nvlink.gbps_per_gpu = 3600;
  for (int i = 0; i < 8; ++i) published.gpus[std::size_t(i)].index = i;
  published.nvlink.exceptions = {{2, 18, 3500}};
  gpus.health.Restore(published, {"GPU 2 counts 1 replays on NVLink 7, since T"});
  std::swap(gpus[2].uuid, gpus[6].uuid);  // the driver numbers its GPUs anew
  gpus.LookAfter(seconds(60));
  EXPECT_THAT(gpus.health.Doubts(), ElementsAre(NvlinkDoubt{6, 0, 0, 3500}));
  gpus.LookAfter(minutes(9));
  EXPECT_THAT(gpus.health.Doubts(), SizeIs(1));
  gpus.LookAfter(minutes(1));
  EXPECT_THAT(gpus.health.Doubts(), IsEmpty());

  Gpus without;  // a fault that is no longer published holds nothing down
  without.health.Restore(published, {});
  without.LookAfter(seconds(60));
  EXPECT_THAT(without.health.Doubts(), IsEmpty());
}

TEST(NvlinkHealth, NamesAGpuThatChangesItsClique) {
  Gpus gpus;
  gpus.LookAfter(seconds(60));
  gpus[1].fabric.state = FabricState::kInProgress;  // says nothing of the clique
  EXPECT_THAT(gpus.LookAfter(seconds(60)), IsEmpty());
  gpus[1].fabric.state = FabricState::kCompleted;
  gpus[1].fabric.clique = 2;
  EXPECT_THAT(gpus.LookAfter(seconds(60)),
              ElementsAre("GPU 1 moved from NVLink clique c1.1 to c1.2, since 2027-01-15T08:03:00Z"));
  gpus[1].fabric.clique = 1;
  EXPECT_THAT(gpus.LookAfter(seconds(60)),
              ElementsAre(HasSubstr("GPU 1 changed its NVLink clique 2 times, now c1.1")));
  EXPECT_THAT(gpus.health.Doubts(), IsEmpty()) << "its links are as good as before";
}

TEST(NvlinkHealth, KeepsAChangedCliqueWhileTheFabricIsNotTold) {
  Gpus gpus;
  gpus.LookAfter(seconds(60));
  gpus[1].fabric.clique = 2;
  gpus.LookAfter(seconds(60));
  gpus[1].fabric.unread = 999;
  gpus.LookAfter(seconds(60));
  EXPECT_THAT(gpus.LookAfter(minutes(30)), IsEmpty());
  EXPECT_THAT(gpus.health.Faults(), SizeIs(1));
}

TEST(NvlinkHealth, KnowsNothingFromAGpuThatDoesNotAnswer) {
  Gpus gpus;
  gpus.LookAfter(seconds(60));
  for (const GpuState state : {GpuState::kLost, GpuState::kSilent, GpuState::kResetRequired}) {
    gpus[4].state = state;
    gpus[4].nvlinks.clear();
    EXPECT_THAT(gpus.LookAfter(seconds(60)), IsEmpty());
  }
  gpus.readings.gpus.clear();
  EXPECT_THAT(gpus.LookAfter(seconds(60)), IsEmpty());
  EXPECT_TRUE(gpus.health.Judges());
}

// A GPU that fell off the bus is not listed by a driver that starts anew, and the others get other numbers.
TEST(NvlinkHealth, EndsTheTroubleOfAGpuThatIsListedNoLongerAndSaysWhy) {
  Gpus gpus;
  gpus.LookAfter(seconds(60));
  gpus.Errors(3, 4).replays = 1;
  gpus.Errors(5, 0).recoveries = 1;
  gpus.LookAfter(seconds(60));
  const GpuReadings all = gpus.readings;
  gpus.readings.gpus.erase(gpus.readings.gpus.begin() + 3);
  for (int i = 3; i < 7; ++i) gpus[i].index = i;
  EXPECT_THAT(gpus.LookAfter(seconds(60)), IsEmpty());
  EXPECT_THAT(gpus.health.Faults(), ElementsAre(HasSubstr("GPU 3 counts 1 replays on NVLink 4"),
                                                HasSubstr("GPU 4 counts 1 recoveries on NVLink 0")))
      << "GPU 5 is GPU 4 now";
  EXPECT_THAT(gpus.health.Doubts(), ElementsAre(NvlinkDoubt{4, 0, 1, std::nullopt}))
      << "of a GPU that is not listed there are no links to count on";
  gpus.Errors(4, 0).recoveries = 2;
  gpus.LookAfter(minutes(5));
  gpus.readings.gpus.clear();  // a driver that does not answer ends nothing
  EXPECT_THAT(gpus.LookAfter(minutes(30)), IsEmpty());
  gpus.readings = all;
  EXPECT_THAT(gpus.LookAfter(seconds(60)), IsEmpty()) << "it is back";
  EXPECT_THAT(gpus.health.Faults(), SizeIs(2));
  gpus.readings.gpus.erase(gpus.readings.gpus.begin() + 3);
  gpus.Errors(4, 0).recoveries.reset();
  EXPECT_THAT(gpus.LookAfter(seconds(60)), IsEmpty());
  EXPECT_THAT(gpus.LookAfter(minutes(9)), IsEmpty());
  EXPECT_THAT(gpus.LookAfter(minutes(2)),
              ElementsAre(testing::AllOf(HasSubstr("over: GPU 3 counts 1 replays on NVLink 4"),
                                         HasSubstr("(the driver lists this GPU no longer)"))));
  EXPECT_THAT(gpus.health.Faults(), ElementsAre(HasSubstr("GPU 5 counts 2 recoveries")));
}

TEST(NvlinkHealth, KeepsWhatWasPublishedThroughARestart) {
  Gpus gpus;
  gpus.health.Restore(gpus.Published(), {"GPU 2 counts 1 replays on NVLink 7, since T"});
  for (GpuReading& gpu : gpus.readings.gpus) gpu.nvlinks[17].active = false;
  gpus.LookAfter(seconds(60));
  EXPECT_EQ(gpus.health.ExpectedLinks(), 18) << "the agent was away when the switch died";
  EXPECT_THAT(gpus.health.Faults(), SizeIs(9));
  for (GpuReading& gpu : gpus.readings.gpus) gpu.nvlinks[17].active = true;
  gpus.LookAfter(minutes(1));
  gpus.LookAfter(minutes(8));
  EXPECT_THAT(gpus.health.Faults(), SizeIs(9));
  gpus.LookAfter(minutes(3));
  EXPECT_THAT(gpus.health.Faults(), IsEmpty());
}

TEST(NvlinkHealth, ExpectsNothingOfOtherGpusInTheSameNode) {
  Gpus gpus;
  gpus.health.Restore(gpus.Published(), {});
  for (GpuReading& gpu : gpus.readings.gpus) {
    gpu.uuid += "-new";
    gpu.nvlinks.resize(8);  // H800
  }
  gpus.LookAfter(seconds(60));
  EXPECT_EQ(gpus.health.ExpectedLinks(), 8);
  EXPECT_THAT(gpus.health.Faults(), IsEmpty());
}

TEST(NvlinkHealth, CountsThroughNvmlOfBothAges) {
  for (const auto& [machine, what] :
       {std::pair("hgx-h100", "replays: 5"), std::pair("hgx-b200", "receive_errors: 100000"),
        std::pair("hgx-b200", "malformed: 100000"), std::pair("hgx-b200", "overruns: 1"),
        std::pair("hgx-b200", "integrity: 1"), std::pair("hgx-b200", "failed_recoveries: 1")}) {
    SCOPED_TRACE(std::string(machine) + " " + what);
    const test::NvmlBed bed(machine);
    // The first link of the first GPU has never counted anything.
    bed.Write(bed.Changed(
        "nvlinks:", "{link: 0",
        std::string("{link: 0, ") + std::string(what).substr(0, std::string(what).find(':')) + ": 0"));
    NvlinkHealth health;
    NvmlGpus before(test::Nvml(), nullptr);
    base::MonotonicTime now{minutes(1)};
    health.Look(before.Read(), now, {});
    EXPECT_THAT(health.Faults(), IsEmpty());
    bed.Write(bed.Changed("nvlinks:", "{link: 0", std::string("{link: 0, ") + what));
    NvmlGpus after(test::Nvml(), nullptr);
    health.Look(after.Read(), now + minutes(1), {});
    EXPECT_THAT(health.Faults(), ElementsAre(HasSubstr("on NVLink 0")));
  }
}

TEST(NvlinkHealth, KeepsErrorsInARecording) {
  Gpus gpus;
  gpus.Errors(1, 2) = {5, 6, 7, 8, 9, 10, 11, 12};
  gpus.Errors(1, 3) = {};
  EXPECT_EQ(ParseNvmlYaml(FormatNvmlYaml(gpus.readings)).gpus, gpus.readings.gpus);
}

TEST(NvlinkHealth, TakesAnyReadings) {
  for (const std::uint64_t seed : test::Seeds(100)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    Gpus gpus;
    for (int look = 0; look < 40; ++look) {
      GpuReading& gpu = gpus[int(random.Below(8))];
      gpu.state = random.Below(5) == 0 ? GpuState(random.Below(5)) : GpuState::kAnswers;
      gpu.nvlinks.resize(random.Below(20));
      for (NvlinkReading& link : gpu.nvlinks) {
        link.link = int(random.Below(40));
        link.active = random.Below(4) != 0;
        link.word = random.Below(8) == 0 ? LinkWord(random.Below(3)) : LinkWord::kSaid;
        link.errors = {random.Next() >> random.Below(64), random.Below(3), std::nullopt, random.Next()};
      }
      gpu.fabric.clique = std::uint32_t(random.Below(3));
      const std::size_t faults = gpus.health.Faults().size();
      gpus.LookAfter(seconds(random.Below(400)));
      ASSERT_LE(gpus.health.Faults().size(), faults + 6 * 8);
    }
  }
}

}  // namespace
}  // namespace heddle::nodeagent
