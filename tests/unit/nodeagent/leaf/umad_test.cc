#include "nodeagent/leaf/umad.h"

#include <gmock/gmock.h>

#include <deque>
#include <functional>
#include <stop_token>

#include "tests/support/memory_file_tree.h"

namespace heddle::nodeagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using topology::LeafPort;
using topology::Missing;

const std::pair<std::string, int> kPort{"mlx5_0", 1};

// A switch as it answers on the wire. What a test wants broken, it breaks in `spoil`.
struct FakeSwitch {
  std::string name = "leaf-0";
  int kind = 2;
  std::uint64_t guid = 0xfc6a1c0300ab12cd;
  int ports = 64;
  int port = 7;
  std::function<void(Mad&)> spoil = [](Mad&) {};
  int lost = 0;                              // so many questions get no answer
  int stray = 0;                             // so many answers to something else come before each
  std::string closed;                        // why the port cannot be opened
  base::Code broken = base::Code::kTimeout;  // what a lost answer looks like
  std::vector<Mad> asked;

  Mad Answer(const Mad& question) const {
    Mad answer = question;
    answer[3] = 0x81;  // GetResp
    answer[4] = 0x80;  // on its way back
    answer[8] = 0xab;  // as the kernel marks transactions
    if (question[17] == 0x11) {
      answer[64 + 2] = std::uint8_t(kind);
      answer[64 + 3] = std::uint8_t(ports);
      for (int i = 0; i < 8; ++i) answer[std::size_t(64 + 12 + i)] = std::uint8_t(guid >> (56 - 8 * i));
      answer[64 + 36] = std::uint8_t(port);
    } else {
      std::copy_n(name.begin(), std::min<std::size_t>(name.size(), 64), answer.begin() + 64);
    }
    spoil(answer);
    return answer;
  }
};

class FakePort final : public SmpPort {
 public:
  explicit FakePort(FakeSwitch& peer) : peer_(peer) {}
  base::Status Send(const Mad& question) override {
    peer_.asked.push_back(question);
    if (peer_.lost > 0) {
      --peer_.lost;
      return {};
    }
    Mad stray = peer_.Answer(question);
    stray[15] ^= 0x55;
    for (int i = 0; i < peer_.stray; ++i) answers_.push_back(stray);
    answers_.push_back(peer_.Answer(question));
    return {};
  }
  base::Result<Mad> Receive() override {
    if (answers_.empty()) return base::Fail(peer_.broken, "no answer");
    const Mad answer = answers_.front();
    answers_.pop_front();
    return answer;
  }

 private:
  FakeSwitch& peer_;
  std::deque<Mad> answers_;
};

class FakePorts final : public SmpPorts {
 public:
  explicit FakePorts(FakeSwitch& peer) : peer_(peer) {}
  base::Result<std::unique_ptr<SmpPort>> Open(const std::string& /*device*/, int /*port*/) override {
    if (!peer_.closed.empty()) return base::Fail(base::Code::kForbidden, peer_.closed);
    return std::make_unique<FakePort>(peer_);
  }

 private:
  FakeSwitch& peer_;
};

class UmadLeavesTest : public testing::Test {
 protected:
  UmadLeavesTest() { AddPort("mlx5_0", "4: ACTIVE", "InfiniBand"); }
  void AddPort(const std::string& device, const std::string& state, const std::string& layer, int port = 1) {
    const std::string base = "sys/class/infiniband/" + device + "/ports/" + std::to_string(port);
    files_.Write(base + "/state", state + "\n");
    files_.Write(base + "/link_layer", layer + "\n");
    files_.Write(base + "/lid", "0x22\n");
  }
  LeafReadings Read() {
    return UmadLeaves(files_, std::make_unique<FakePorts>(switch_)).Read(RdmaProbe(files_).Read());
  }
  // One active port whose leaf cannot be told, and why.
  void ExpectUnknown(const std::string& why) {
    const LeafReadings readings = Read();
    EXPECT_EQ(readings.by_port.at(kPort).missing(), Missing::kUnknown);
    EXPECT_THAT(readings.problems, ElementsAre(HasSubstr(why)));
    EXPECT_TRUE(readings.unanswered.contains(kPort));
  }

  test::MemoryFileTree files_;
  FakeSwitch switch_;
};

TEST_F(UmadLeavesTest, NameTheSwitchAndItsPortWithTwoQuestions) {
  const LeafReadings readings = Read();
  EXPECT_EQ(readings.by_port.at(kPort), (LeafPort{"leaf-0", "7"}));
  EXPECT_THAT(readings.problems, IsEmpty());
  EXPECT_THAT(switch_.asked, SizeIs(2));
  EXPECT_EQ(readings.files.at("ib.txt"), "mlx5_0 1 34 switch 0xfc6a1c0300ab12cd \"leaf-0\" 7\n");
}

TEST_F(UmadLeavesTest, SendNothingButGetsOverOneHopThroughThePortItself) {
  AddPort("mlx5_9", "4: ACTIVE", "InfiniBand", 3);
  (void)Read();
  ASSERT_THAT(switch_.asked, SizeIs(4));
  for (const Mad& mad : switch_.asked) {
    EXPECT_EQ(mad[1], 0x81);
    EXPECT_EQ(mad[3], 0x01);
    EXPECT_EQ(mad[6], 0);
    EXPECT_EQ(mad[7], 1);
  }
  EXPECT_EQ(switch_.asked.front()[129], 1);
  EXPECT_EQ(switch_.asked.back()[129], 3);
}

TEST_F(UmadLeavesTest, SaySoInARecordingThatReplaysTheSame) {
  AddPort("mlx5_1", "1: DOWN", "InfiniBand");
  switch_.name = "leaf \"zero\"\x01";
  const LeafReadings readings = Read();
  test::MemoryFileTree recorded;
  recorded.Write("ib.txt", readings.files.at("ib.txt"));
  const LeafReadings again = IbFileLeaves(recorded).Read({});
  EXPECT_EQ(again.by_port, readings.by_port);
  EXPECT_EQ(again.problems, readings.problems);
}

TEST_F(UmadLeavesTest, EndAWalkAtTheNextPortOnceStopIsAsked) {
  AddPort("mlx5_1", "4: ACTIVE", "InfiniBand");
  std::stop_source stop;
  switch_.spoil = [&stop](Mad&) { stop.request_stop(); };
  (void)UmadLeaves(files_, std::make_unique<FakePorts>(switch_), stop.get_token())
      .Read(RdmaProbe(files_).Read());
  EXPECT_THAT(switch_.asked, SizeIs(2));
}

TEST_F(UmadLeavesTest, FallBackToTheGuidWhereTheNameIsTheMakersDefault) {
  switch_.name = "MF0;switch:MQM8700/U1 Mellanox Technologies";
  EXPECT_EQ(Read().by_port.at(kPort)->leaf, "0xfc6a1c0300ab12cd");
}

TEST_F(UmadLeavesTest, CallACableBetweenTwoHostsNotApplicable) {
  switch_.kind = 1;
  EXPECT_EQ(Read().by_port.at(kPort).missing(), Missing::kNotApplicable);
}

TEST_F(UmadLeavesTest, AskAgainAfterLostAnswersAndPastLateOnes) {
  switch_.lost = 2;
  switch_.stray = 3;
  EXPECT_TRUE(Read().by_port.at(kPort).known());
  EXPECT_THAT(switch_.asked, SizeIs(4));
}

TEST_F(UmadLeavesTest, GiveUpAfterThreeLostAnswers) {
  switch_.lost = 1'000;
  ExpectUnknown("no answer");
  EXPECT_THAT(switch_.asked, SizeIs(3));
}

TEST_F(UmadLeavesTest, AskADeviceThatVanishedOnlyOnce) {
  switch_.lost = 1'000;
  switch_.broken = base::Code::kUnavailable;
  ExpectUnknown("no answer");
  EXPECT_THAT(switch_.asked, SizeIs(1));
}

TEST_F(UmadLeavesTest, GiveUpOnAFloodOfAnswersToSomethingElse) {
  switch_.stray = 1'000;
  ExpectUnknown("other questions");
}

TEST_F(UmadLeavesTest, RefuseAnswersThatMakeNoSense) {
  const std::vector<std::function<void(FakeSwitch&)>> wrongs{
      [](FakeSwitch& peer) { peer.kind = 0; },  [](FakeSwitch& peer) { peer.kind = 200; },
      [](FakeSwitch& peer) { peer.guid = 0; },  [](FakeSwitch& peer) { peer.port = 0; },
      [](FakeSwitch& peer) { peer.port = 65; },
  };
  for (const auto& wrong : wrongs) {
    switch_ = FakeSwitch{};
    wrong(switch_);
    ExpectUnknown("makes no sense");
  }
}

TEST_F(UmadLeavesTest, SayTheStatusOfARefusal) {
  switch_.spoil = [](Mad& mad) { mad[5] = 0x1c; };
  ExpectUnknown("MAD status 0x001c");
  switch_.spoil = [](Mad& mad) { mad[5] = 0x01; };
  ExpectUnknown("(busy)");
}

TEST_F(UmadLeavesTest, NameNoSwitchByItsGuidBecauseItsNameWasLost) {
  switch_.spoil = [](Mad& mad) {
    if (mad[17] == 0x10) mad[5] = 0x1c;
  };
  ExpectUnknown("refused");
}

TEST_F(UmadLeavesTest, SayOfEveryPortWhyItCannotBeOpened) {
  AddPort("mlx5_1", "4: ACTIVE", "InfiniBand");
  switch_.closed = "no permission for /dev/infiniband/umad0";
  const LeafReadings readings = Read();
  EXPECT_THAT(readings.by_port, SizeIs(2));
  EXPECT_THAT(readings.problems, ElementsAre(HasSubstr("mlx5_0 port 1: its leaf is unknown: no permission"),
                                             HasSubstr("mlx5_1 port 1: its leaf is unknown: no permission")));
}

TEST_F(UmadLeavesTest, DoNotAskAPortThatIsNotActive) {
  AddPort("mlx5_0", "1: DOWN", "InfiniBand");
  AddPort("mlx5_1", "2: INIT", "InfiniBand");
  const LeafReadings readings = Read();
  EXPECT_THAT(switch_.asked, IsEmpty());
  EXPECT_THAT(readings.unanswered, IsEmpty());
  EXPECT_THAT(readings.problems, ElementsAre(HasSubstr("the port is Down"), HasSubstr("(2: INIT)")));
}

TEST_F(UmadLeavesTest, LeaveEthernetPortsAndEfaToOthers) {
  AddPort("mlx5_0", "4: ACTIVE", "Ethernet");
  AddPort("efa_0", "4: ACTIVE", "Unspecified");
  const LeafReadings readings = Read();
  EXPECT_THAT(readings.by_port, IsEmpty());
  EXPECT_THAT(readings.files, IsEmpty());
}

TEST(UmadPorts, SayWhatIsMissingWhereThereIsNoSuchDevice) {
  test::MemoryFileTree files;
  const auto none = UmadPorts(files).Open("heddle_none", 1);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("ib_umad is not loaded"));
  files.Write("sys/class/infiniband_mad/abi_version", "5\n");
  files.Write("sys/class/infiniband_mad/heddle0/ibdev", "heddle_none\n");
  files.Write("sys/class/infiniband_mad/heddle0/port", "1\n");
  const auto absent = UmadPorts(files).Open("heddle_none", 1);
  ASSERT_FALSE(absent);
  EXPECT_THAT(absent.error().message, HasSubstr("/dev/infiniband/heddle0 cannot be opened"));
  EXPECT_THAT(UmadPorts(files).Open("heddle_none", 2).error().message, HasSubstr("no umad device"));
}

}  // namespace
}  // namespace heddle::nodeagent
