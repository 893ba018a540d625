// The driver behind a deadline: the agent's own binary as the child, and a driver that hangs, dies or will not
// start. What is waited for is the deadline itself and nothing else.
#include "nodeagent/gpu/nvml_process.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stop_token>
#include <thread>

#include "nodeagent/discovery/discovery.h"
#include "nvml_bed.h"

namespace heddle::nodeagent {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr milliseconds kShort{1000};

// The deadline to start is as long as a loaded machine under sanitizers may need; it is waited for only where a
// driver hangs as it starts.
NvmlProcessOptions Options(const test::NvmlBed& bed) {
  NvmlProcessOptions options;
  options.program = test::Built("bin/heddle-nodeagent");
  options.library = test::Nvml();
  options.environment = {"HEDDLE_TEST_NVML=" + bed.path()};
  options.start = milliseconds(60'000);
  options.answer = milliseconds(60'000);
  options.grace = milliseconds(10'000);
  return options;
}

bool Exists(pid_t process) {
  return ::kill(process, 0) == 0;
}

TEST(NvmlProcess, SaysWhatTheDriverSays) {
  for (const char* machine : {"hgx-h100", "gb200-nvl72-tray", "hgx-bad-gpu"}) {
    const test::NvmlBed bed(machine);
    NvmlProcess driver(Options(bed));
    const GpuReadings readings = driver.Read();
    EXPECT_EQ(readings.gpus, ParseNvmlYaml(bed.recorded()).gpus) << machine;
    EXPECT_THAT(readings.problems, IsEmpty()) << machine;
  }
}

TEST(NvmlProcess, KeepsOneChildFromLookToLookAndTakesItAlong) {
  const test::NvmlBed bed("hgx-h100");
  pid_t child = -1;
  {
    NvmlProcess driver(Options(bed));
    EXPECT_EQ(driver.Read().gpus.size(), 8u);
    child = driver.child();
    ASSERT_GT(child, 0);
    bed.Write(bed.Changed("index: 4", "link: 7, state: active", "link: 7, state: inactive"));
    EXPECT_EQ(NvlinkOf(driver.Read().gpus).exceptions.size(), 1u);
    EXPECT_EQ(driver.child(), child);
  }
  EXPECT_FALSE(Exists(child));
}

TEST(NvmlProcess, NamesTheCallThatHangsAndComesBackWhenTheDriverDoes) {
  const test::NvmlBed bed("hgx-h100");
  NvmlProcessOptions options = Options(bed);
  options.answer = kShort;
  NvmlProcess driver(options);
  const GpuReadings before = driver.Read();
  const pid_t first = driver.child();
  bed.Misbehave("{hangs: {nvmlDeviceGetNvLinkState: 3}}");
  const GpuReadings hung = driver.Read();
  EXPECT_THAT(hung.problems, ElementsAre("the NVIDIA driver hangs in nvmlDeviceGetNvLinkState of GPU 3"));
  EXPECT_EQ(hung.gpus, before.gpus);  // once is no evidence against them
  EXPECT_EQ(driver.child(), -1);
  EXPECT_FALSE(Exists(first));
  bed.Write(bed.recorded());
  GpuReadings after = driver.Read();
  for (int i = 0; i < 200 && !after.problems.empty(); ++i)
    after = driver.Read();  // while the new child starts
  EXPECT_EQ(after.gpus, before.gpus);
  EXPECT_THAT(after.problems, IsEmpty());
  const pid_t second = driver.child();
  EXPECT_THAT(driver.Read().problems, IsEmpty());
  EXPECT_EQ(driver.child(), second);
}

TEST(NvmlProcess, TakesTheGpusForUnusableWhenTheDriverStaysSilent) {
  const test::NvmlBed bed("hgx-h100");
  NvmlProcessOptions options = Options(bed);
  options.answer = kShort;
  NvmlProcess driver(options);
  const GpuReadings before = driver.Read();
  bed.Misbehave("{hangs: {nvmlDeviceGetUUID: -1}}");
  (void)driver.Read();
  const GpuReadings silent = driver.Read();
  ASSERT_EQ(silent.gpus.size(), 8u);
  EXPECT_EQ(silent.gpus[0].uuid, before.gpus[0].uuid);
  EXPECT_THAT(FaultOf(silent.gpus[0]), HasSubstr("the driver hangs"));
  EXPECT_EQ(silent.problems.size(), 1u);
}

TEST(NvmlProcess, SaysWhereADriverHangsThatNeverAnswered) {
  const test::NvmlBed bed("hgx-h100");
  bed.Misbehave("{hangs: {nvmlInit_v2: -1}}");
  NvmlProcessOptions options = Options(bed);
  options.start = milliseconds(3000);
  NvmlProcess driver(options);
  const GpuReadings readings = driver.Read();
  EXPECT_THAT(readings.gpus, IsEmpty());
  EXPECT_THAT(readings.absent, "the NVIDIA driver hangs in nvmlInit_v2");
  EXPECT_THAT(readings.problems, ElementsAre(readings.absent));
}

TEST(NvmlProcess, IsNotWaitedForOnceStopIsAsked) {
  const test::NvmlBed bed("hgx-h100");
  bed.Misbehave("{hangs: {nvmlInit_v2: -1}}");
  std::stop_source stop;
  NvmlProcessOptions options = Options(bed);
  options.stop = stop.get_token();
  NvmlProcess driver(options);
  std::jthread ends([&stop] { stop.request_stop(); });
  EXPECT_EQ(driver.Read().absent, "the NVIDIA driver was not waited for: the agent ends");
  EXPECT_EQ(driver.Read().absent, "the NVIDIA driver was not waited for: the agent ends");
}

// A call that sleeps uninterruptibly in the kernel outlives SIGKILL. SIGCONT stands for it here: the child does
// not mind.
TEST(NvmlProcess, LeavesAChildAloneThatCannotBeEndedAndStartsNoSecond) {
  const test::NvmlBed bed("hgx-h100");
  NvmlProcessOptions options = Options(bed);
  options.answer = options.grace = kShort;
  options.end_signal = SIGCONT;
  NvmlProcess driver(options);
  (void)driver.Read();
  const pid_t stuck = driver.child();
  bed.Misbehave("{hangs: {nvmlDeviceGetName: 1}}");
  EXPECT_THAT(driver.Read().problems, ElementsAre("the NVIDIA driver hangs in nvmlDeviceGetName of GPU 1"));
  bed.Write(bed.recorded());
  for (int i = 0; i < 3; ++i) {
    const GpuReadings readings = driver.Read();
    EXPECT_THAT(readings.problems, ElementsAre(AllOf(HasSubstr("nvmlDeviceGetName of GPU 1"),
                                                     HasSubstr("cannot be ended: reboot the node"))));
    EXPECT_EQ(readings.gpus.at(0).state, GpuState::kSilent);
    EXPECT_EQ(driver.child(), stuck);
  }
  ASSERT_EQ(::kill(stuck, SIGKILL), 0);
  siginfo_t gone{};
  ASSERT_EQ(::waitid(P_PID, id_t(stuck), &gone, WEXITED | WNOWAIT), 0);
  GpuReadings after = driver.Read();
  for (int i = 0; i < 200 && !after.problems.empty(); ++i) after = driver.Read();
  EXPECT_EQ(after.gpus.at(0).state, GpuState::kAnswers);
  EXPECT_NE(driver.child(), stuck);
  ::kill(driver.child(), SIGKILL);  // the destructor's signal would not
}

TEST(NvmlProcess, OutlivesADriverThatCrashes) {
  const test::NvmlBed bed("hgx-h100");
  NvmlProcess driver(Options(bed));
  const GpuReadings before = driver.Read();
  bed.Misbehave("{crashes: nvmlDeviceGetMemoryInfo}");
  const GpuReadings crashed = driver.Read();
  EXPECT_THAT(crashed.problems, ElementsAre(HasSubstr("nvmlDeviceGetMemoryInfo of GPU 0")));
  EXPECT_EQ(crashed.gpus, before.gpus);
  bed.Write(bed.recorded());
  EXPECT_EQ(driver.Read().gpus, before.gpus);
}

TEST(NvmlProcess, SaysThatThereIsAnXidBeforeItIsAsked) {
  const test::NvmlBed bed("hgx-bad-gpu");
  NvmlProcess driver(Options(bed));
  EXPECT_EQ(driver.Read().gpus.at(5).last_xid, 95);
  bed.Write(bed.Changed("last_xid: 95", "95", "79"));
  pollfd news{driver.news(), POLLIN, 0};
  ASSERT_EQ(::poll(&news, 1, 60'000), 1);
  EXPECT_EQ(driver.Read().gpus.at(5).last_xid, 79);
}

TEST(NvmlProcess, KeepsAFatalXidOverANewChild) {
  const test::NvmlBed bed("hgx-bad-gpu");
  NvmlProcess driver(Options(bed));
  EXPECT_EQ(driver.Read().gpus.at(5).last_xid, 95);
  ::kill(driver.child(), SIGKILL);
  bed.Write(bed.Changed("last_xid: 95", "95", "0"));
  GpuReadings after = driver.Read();
  EXPECT_THAT(after.problems, ElementsAre(HasSubstr("process")));
  after = driver.Read();
  EXPECT_THAT(after.problems, IsEmpty());
  EXPECT_EQ(after.gpus.at(5).last_xid, 95);
  EXPECT_EQ(after.gpus.at(4).last_xid, 0);
}

TEST(NvmlProcess, KeepsAFatalXidOverALookThatFoundNoGpus) {
  const test::NvmlBed bed("hgx-bad-gpu");
  NvmlProcess driver(Options(bed));
  EXPECT_EQ(driver.Read().gpus.at(5).last_xid, 95);
  bed.Misbehave("{fails: {nvmlDeviceGetCount_v2: 999}}");
  EXPECT_THAT(driver.Read().absent, HasSubstr("how many GPUs there are"));
  bed.Write(bed.Changed("last_xid: 95", "95", "0"));
  EXPECT_EQ(driver.Read().gpus.at(5).last_xid, 95);
}

TEST(NvmlProcess, KeepsAFaultOverANewChildThatCannotReadIt) {
  const test::NvmlBed bed("hgx-h100");
  const std::string sick = bed.Changed("index: 3", "volatile_uncorrected: 0", "volatile_uncorrected: 2");
  bed.Write(sick);
  NvmlProcess driver(Options(bed));
  const GpuReadings before = driver.Read();
  EXPECT_THAT(FaultOf(before.gpus.at(3)), HasSubstr("2 uncorrectable"));
  ::kill(driver.child(), SIGKILL);
  bed.Write(sick + "fake: {fails: {nvmlDeviceGetTotalEccErrors: 999, nvmlDeviceGetNvLinkState: 999, " +
            "nvmlDeviceGetGpuFabricInfoV: 999}}\n");
  EXPECT_THAT(driver.Read().problems, ElementsAre(HasSubstr("process")));
  const GpuReadings after = driver.Read();
  EXPECT_THAT(FaultOf(after.gpus.at(3)), HasSubstr("2 uncorrectable"));
  EXPECT_EQ(NvlinkOf(after.gpus), NvlinkOf(before.gpus));
  ASSERT_EQ(after.gpus[3].nvlinks.size(), before.gpus[3].nvlinks.size());
  EXPECT_EQ(after.gpus[3].nvlinks[4].word, LinkWord::kKept);
  EXPECT_EQ(after.gpus[3].fabric.state, before.gpus[3].fabric.state);
}

TEST(NvmlProcess, KeepsNoProcessWhereThereIsNoDriver) {
  const test::NvmlBed bed("hgx-h100");
  NvmlProcessOptions options = Options(bed);
  options.library = "libheddle-has-no-such-library.so.1";
  NvmlProcess driver(options);
  const GpuReadings readings = driver.Read();
  EXPECT_THAT(readings.absent, HasSubstr("no NVIDIA driver here"));
  EXPECT_THAT(readings.problems, IsEmpty());
  EXPECT_EQ(driver.child(), -1);
}

TEST(NvmlProcess, SaysWhenItsProgramDoesNotStartOrAnswersNonsense) {
  const test::NvmlBed bed("hgx-h100");
  NvmlProcessOptions options = Options(bed);
  options.program = "/nonexistent/heddle-nodeagent";
  EXPECT_THAT(NvmlProcess(options).Read().absent, HasSubstr("No such file or directory"));
  const test::TemporaryFolder folder;
  const auto script = [&](const std::string& body) {
    folder.Write("program", "#!/bin/sh\n" + body + "\n");
    std::filesystem::permissions(folder.path() + "/program", std::filesystem::perms::owner_all);
    options.program = folder.path() + "/program";
    return NvmlProcess(options).Read();
  };
  EXPECT_THAT(script("exit 3").absent, HasSubstr("process that ask"));
  EXPECT_THAT(script("echo hello >&3; read x <&3").absent, HasSubstr("answers nonsense"));
  EXPECT_THAT(script("echo 99999999999 >&3; read x <&3").absent, HasSubstr("answers nonsense"));
  EXPECT_THAT(script("head -c 9999 /dev/zero >&3; read x <&3").absent, HasSubstr("answers nonsense"));
  EXPECT_THAT(script("printf '5\\n[[[[[' >&3; read x <&3; read x <&3").absent, HasSubstr("is not YAML"));
}

// A driver that prints would spoil what the agent prints.
TEST(NvmlProcess, PrintsAMachineOverTheWholeBinary) {
  const test::NvmlBed bed("hgx-h100");
  bed.Misbehave("{prints: noise}");
  const std::string printed =
      test::Output("(HEDDLE_TEST_NVML=" + bed.path() + " " + test::Built("bin/heddle-nodeagent") +
                   " --nvml " + test::Nvml() + " --node this-host --print -o json 2>" + bed.path() + ".err)");
  EXPECT_THAT(printed, HasSubstr("NVIDIA H100"));
  EXPECT_EQ(printed.front(), '{');
  EXPECT_THAT(printed, testing::Not(HasSubstr("noise")));
}

// A GPU that goes is still there in words, and no rail is renumbered for it.
TEST(NvmlProcess, ShowsALostGpuAsOneThatIsNotToBeUsed) {
  const test::RecordedMachine machine("hgx-h100");
  const base::DiskFileTree files(machine.path());
  const test::NvmlBed bed("hgx-h100");
  NvmlProcess driver(Options(bed));
  Discovery discovery(files, driver, RecordedLeaves(files), {"node-00", "", ""}, {});
  const Observation before = discovery.Look();
  bed.Misbehave("{lost: {2: 0}}");
  const Observation after = discovery.Look();
  EXPECT_THAT(topology::Diff(before.node, after.node), testing::Contains(HasSubstr("fell off the bus")));
  ASSERT_EQ(after.node.gpus.size(), 8u);
  EXPECT_FALSE(after.node.gpus[2].healthy);
  EXPECT_TRUE(after.node.gpus[3].healthy);
  EXPECT_EQ(after.node.gpus[2].uuid, before.node.gpus[2].uuid);
  EXPECT_EQ(after.node.nics, before.node.nics);
  EXPECT_EQ(after.node.nvlink_domain, before.node.nvlink_domain);
}

}  // namespace
}  // namespace heddle::nodeagent
