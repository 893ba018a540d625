#include "nodeagent/flags.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/version.h"
#include "nvml_bed.h"
#include "recorded_machine.h"

namespace heddle::nodeagent {
namespace {

TEST(AgentFlags, SayWhichVersionThisIs) {
  CLI::App app;
  Flags flags;
  Define(app, flags);
  const char* words[] = {"heddle-nodeagent", "--version"};
  try {
    app.parse(2, words);
    FAIL() << "it goes on";
  } catch (const CLI::CallForVersion& said) {
    EXPECT_EQ(said.what(), "heddle-nodeagent " + std::string(base::kVersion));
    EXPECT_EQ(said.get_exit_code(), 0);
  }
}

using Words = std::vector<std::string>;

Flags FlagsOf(Words words) {
  Flags flags;
  CLI::App app;
  Define(app, flags);
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  app.parse(words);
  return flags;
}

// Why the command line cannot be done; empty: it can.
std::string WhyNot(Words words) {
  return WhyNotTogether(FlagsOf(std::move(words)));
}

TEST(AgentFlags, LeaveNothingOutInSilence) {
  using testing::HasSubstr;
  EXPECT_THAT(WhyNot({"--print", "--follow", "-o", "yaml"}), HasSubstr("give -o text or -o json"));
  for (const Words& two :
       {Words{"--print", "--nccl-topo", "-"}, Words{"--print", "record", "folder"},
        Words{"--print", "qos", "show"}, Words{"--nccl-topo", "x.xml", "record", "folder"}})
    EXPECT_THAT(WhyNot(two), HasSubstr("give one of them"));
  EXPECT_THAT(WhyNot({"--print", "--listen", "127.0.0.1:0"}), HasSubstr("serve no metrics"));
  EXPECT_THAT(WhyNot({"--listen", "127.0.0.1:0", "record", "folder"}), HasSubstr("serve no metrics"));
  EXPECT_THAT(WhyNot({"-o", "json"}), HasSubstr("add --print"));
}

TEST(AgentFlags, AreTakenTogetherWhereTheyGoTogether) {
  for (const Words& words :
       {Words{}, Words{"--print"}, Words{"--print", "-o", "yaml"}, Words{"--print", "--follow", "-o", "json"},
        Words{"--nccl-topo", "-"}, Words{"record", "folder", "--scrub"}, Words{"qos", "show", "-o", "json"},
        Words{"qos", "watch"}, Words{"--listen", "127.0.0.1:0"}, Words{"--machine", "folder", "--listen", ""},
        Words{"--from-nccl-xml", "x.xml", "--print"}, Words{"--from-nccl-xml", "x.xml", "--nccl-topo", "-"}})
    EXPECT_EQ(WhyNot(words), "") << testing::PrintToString(words);
}

// The kubelet's socket moves with its --root-dir, and its folder of device plugins does not.
TEST(AgentFlags, HearOfAllocationsInTheFolderOfDevicePluginsWhereverTheSocketIs) {
  const std::string usual = "/var/lib/kubelet/device-plugins";
  for (const Words& words :
       {Words{}, Words{"--pod-resources", "/data/kubelet/pod-resources/kubelet.sock"},
        Words{"--device-plugins", "none"},
        Words{"--machine", "folder", "--pod-resources", "/data/kubelet/pod-resources/kubelet.sock"}})
    EXPECT_EQ(FlagsOf(words).AllocationsFolder(), usual) << testing::PrintToString(words);
  EXPECT_EQ(FlagsOf({"--device-plugins", "/host/device-plugins"}).AllocationsFolder(),
            "/host/device-plugins");
}

// To a person, not as a line of a log; and with what to do next.
TEST(AgentFlags, FailuresOfWhatIsAskedOnceAreSaidPlainly) {
  const std::string agent = test::Built("bin/heddle-nodeagent");
  const test::TemporaryFolder folder;
  const std::string none = test::Output("! " + agent + " --machine " + folder.path() + " --print");
  EXPECT_THAT(none, testing::StartsWith("heddle-nodeagent: " + folder.path() + ": there is no recording"));
  EXPECT_THAT(none, testing::HasSubstr("heddle-nodeagent record DIR makes one"));
  EXPECT_THAT(test::Output("! " + agent + " --print --nccl-topo -"),
              testing::StartsWith("heddle-nodeagent: --print, --nccl-topo, record and qos "));
  const test::RecordedMachine machine("plain-host");
  EXPECT_THAT(test::Output("! " + agent + " --machine " + machine.path() + " qos watch"),
              testing::StartsWith("heddle-nodeagent: a recorded machine does not change"));
}

}  // namespace
}  // namespace heddle::nodeagent
