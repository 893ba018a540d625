// Leaves that answer what they have counted, late, wrong, for another switch, or never.
#include "nodeagent/leaf/leaf_counts.h"

#include <gmock/gmock.h>

#include <deque>
#include <functional>
#include <stop_token>

#include "tests/support/fake_clock.h"
#include "tests/support/memory_file_tree.h"

namespace heddle::nodeagent {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr std::uint8_t kSubnet = 0x81, kPerformance = 0x04;

// A fabric of one cable, as it answers on the wire.
struct FakeLeaf {
  std::string name = "su1-r3";
  int kind = 2;
  std::uint64_t guid = 0xfc6a1c0300ab12cd;
  int port = 18;
  int lid = 12;            // as the switch says
  int answering_lid = 12;  // where somebody answers for its counters
  std::uint8_t mask_high = 0, mask2 = 0;
  std::uint8_t status = 0;  // of what performance management answers
  int link_downed = 0;
  int symbol_errors = 0;
  std::uint32_t packets = 0;
  std::function<void(Mad&)> spoil = [](Mad&) {};
  bool silent = false, counters_silent = false;
  int strays = 0;
  milliseconds takes{0};
  base::Code broken = base::Code::kTimeout;
  std::string closed;  // why the port cannot be opened
  int opened = 0, partition = -1;
  std::vector<Mad> asked;

  Mad Answer(const Mad& question) {
    Mad answer = question;
    answer[3] = 0x81;
    answer[8] = 0xab;
    if (question[1] == kSubnet) {
      answer[4] = 0x80;
      AnswerSubnet(question[17], answer);
    } else {
      answer[5] = status;
      AnswerCounters(question[17], answer);
    }
    spoil(answer);
    return answer;
  }
  void AnswerSubnet(int attribute, Mad& answer) const {
    if (attribute == 0x11) {
      answer[64 + 2] = std::uint8_t(kind);
      answer[64 + 3] = 64;
      for (int i = 0; i < 8; ++i) answer[std::size_t(64 + 12 + i)] = std::uint8_t(guid >> (56 - 8 * i));
      answer[64 + 36] = std::uint8_t(port);
    } else if (attribute == 0x10) {
      std::copy(name.begin(), name.end(), answer.begin() + 64);
    } else {
      answer[64 + 16] = std::uint8_t(lid >> 8);
      answer[64 + 17] = std::uint8_t(lid);
    }
  }
  void AnswerCounters(int attribute, Mad& answer) {
    if (attribute == 0x01) {
      answer[64 + 2] = mask_high;
      answer[64 + 7] = std::uint8_t(mask2 << 5);
    } else if (attribute == 0x12) {
      answer[64 + 4] = std::uint8_t(symbol_errors >> 8);
      answer[64 + 5] = std::uint8_t(symbol_errors);
      answer[64 + 7] = std::uint8_t(link_downed);
      ++packets;  // traffic goes on
      for (int i = 0; i < 4; ++i) answer[std::size_t(64 + 32 + i)] = std::uint8_t(packets >> (24 - 8 * i));
    } else {
      answer[64 + 95] = std::uint8_t(link_downed);
    }
  }
  int Count(std::uint8_t management_class, int attribute) const {
    return int(std::count_if(asked.begin(), asked.end(), [&](const Mad& mad) {
      return mad[1] == management_class && mad[17] == attribute;
    }));
  }
};

class FakeLine final : public LeafLine {
 public:
  FakeLine(FakeLeaf& leaf, test::FakeClock& clock) : leaf_(leaf), clock_(clock) {}
  base::Status Send(const Mad& question, int lid, std::chrono::nanoseconds at_most) override {
    EXPECT_GT(at_most.count(), 0);
    leaf_.asked.push_back(question);
    const bool of_counters = question[1] == kPerformance;
    if (leaf_.silent || (of_counters && (leaf_.counters_silent || lid != leaf_.answering_lid))) return {};
    Mad stray = leaf_.Answer(question);
    stray[15] ^= 0x55;
    for (int i = 0; i < leaf_.strays; ++i) answers_.push_back(stray);
    answers_.push_back(leaf_.Answer(question));
    return {};
  }
  base::Result<Mad> Receive(std::chrono::nanoseconds at_most) override {
    EXPECT_LE(at_most, kLeafBudget);
    if (answers_.empty() || leaf_.takes > at_most) {
      clock_.Advance(at_most);
      return base::Fail(leaf_.broken, "no answer");
    }
    clock_.Advance(leaf_.takes);
    const Mad answer = answers_.front();
    answers_.pop_front();
    return answer;
  }

 private:
  FakeLeaf& leaf_;
  test::FakeClock& clock_;
  std::deque<Mad> answers_;
};

class FakeLines final : public LeafLines {
 public:
  FakeLines(FakeLeaf& leaf, test::FakeClock& clock) : leaf_(leaf), clock_(clock) {}
  base::Result<std::unique_ptr<LeafLine>> Open(const std::string& /*device*/, int /*port*/,
                                               int partition) override {
    ++leaf_.opened;
    leaf_.partition = partition;
    if (!leaf_.closed.empty()) return base::Fail(base::Code::kForbidden, leaf_.closed);
    return std::make_unique<FakeLine>(leaf_, clock_);
  }

 private:
  FakeLeaf& leaf_;
  test::FakeClock& clock_;
};

class PmaLeafCountsTest : public testing::Test {
 protected:
  PmaLeafCountsTest() { SetState("4: ACTIVE"); }
  void SetState(const std::string& state, const std::string& device = "mlx5_0") {
    files_.Write("sys/class/infiniband/" + device + "/ports/1/state", state + "\n");
  }
  // One pass, ten seconds after the one before.
  std::vector<LeafCounts> Pass(const std::vector<RdmaPortName>& ports = {{"mlx5_0", 1}}) {
    clock_.Advance(seconds(10));
    return source_.Read(ports);
  }
  LeafCounts Read() {
    auto read = Pass();
    if (read.size() != 1) {
      ADD_FAILURE() << read.size() << " entries";
      return {};
    }
    return read.front();
  }
  static std::uint64_t Value(const LeafCounts& counts, std::string_view name) {
    for (const PmaCount& count : counts.counts) {
      if (count.name == name) return count.value;
    }
    ADD_FAILURE() << "no " << name;
    return 0;
  }

  test::MemoryFileTree files_;
  test::FakeClock clock_;
  FakeLeaf leaf_;
  std::stop_source stop_;
  PmaLeafCounts source_{files_, clock_, std::make_unique<FakeLines>(leaf_, clock_), stop_.get_token()};
};

TEST_F(PmaLeafCountsTest, SayWhichSwitchPortItIsAndWhatItHasCounted) {
  leaf_.link_downed = 41;
  const LeafCounts counts = Read();
  EXPECT_EQ(counts.leaf, "su1-r3");
  EXPECT_EQ(counts.guid, "0xfc6a1c0300ab12cd");
  EXPECT_EQ(counts.leaf_port, 18);
  EXPECT_EQ(counts.lid, 12);
  EXPECT_EQ(Value(counts, "link_downed"), 41u);
  EXPECT_EQ(counts.unread, "");
}

TEST_F(PmaLeafCountsTest, CostOneDatagramAPassAndThreeMoreAMinute) {
  (void)Read();
  EXPECT_THAT(leaf_.asked, SizeIs(5)) << "which port, its name, its LID, what it can, what it has counted";
  for (int pass = 0; pass < 12; ++pass) (void)Read();
  EXPECT_THAT(leaf_.asked, SizeIs(5 + 12 + 2 * 3));
}

TEST_F(PmaLeafCountsTest, SendNothingButGets) {
  for (int pass = 0; pass < 20; ++pass) {
    leaf_.link_downed += pass % 3;
    leaf_.status = pass == 7 ? 0x1c : 0;
    (void)Read();
  }
  for (const Mad& mad : leaf_.asked) EXPECT_EQ(mad[3], 0x01);
}

TEST_F(PmaLeafCountsTest, TalkWithinTheDefaultPartitionWhereverItsKeyStands) {
  (void)Read();
  EXPECT_EQ(leaf_.partition, 0) << "nobody says where";
  const std::string table = "sys/class/infiniband/mlx5_0/ports/1/pkeys/";
  files_.Write(table + "0", "0x8001\n");
  files_.Write(table + "1", "0x7fff\n");
  (void)Read();
  EXPECT_EQ(leaf_.partition, 1) << "a limited member";
  files_.Write(table + "0", "0xffff\n");
  (void)Read();
  EXPECT_EQ(leaf_.partition, 0);
}

TEST_F(PmaLeafCountsTest, TakeTheWideCountersOfASwitchThatHasThem) {
  leaf_.mask_high = 0x02;
  leaf_.mask2 = 2;
  leaf_.link_downed = 7;
  const LeafCounts counts = Read();
  EXPECT_TRUE(counts.extended);
  EXPECT_EQ(Value(counts, "link_downed"), 7u);
  EXPECT_EQ(leaf_.Count(kPerformance, 0x12), 0);
}

TEST_F(PmaLeafCountsTest, TakeThePlainOnesOfASwitchThatDoesNotSayWhatItCan) {
  leaf_.spoil = [](Mad& mad) {
    if (mad[1] == kPerformance && mad[17] == 0x01) mad[5] = 0x0c;
  };
  leaf_.link_downed = 7;
  EXPECT_EQ(Value(Read(), "link_downed"), 7u);
}

// A subnet manager that restarts may give LIDs anew: the counts of another switch must not look like errors.
TEST_F(PmaLeafCountsTest, BelieveNoMoveOfACounterBeforeTheSwitchIsConfirmed) {
  (void)Read();
  leaf_.link_downed = 200;  // of the switch that has LID 12 now
  leaf_.lid = leaf_.answering_lid = 44;
  leaf_.spoil = [this](Mad& mad) {
    if (mad[1] == kPerformance) mad[64 + 7] = leaf_.Count(kSubnet, 0x15) > 1 ? 0 : 200;
  };
  leaf_.answering_lid = 12;
  EXPECT_THAT(Read().counts, IsEmpty()) << "moved, confirmed: another LID, where nobody answers yet";
  leaf_.answering_lid = 44;
  const LeafCounts counts = Read();
  EXPECT_EQ(counts.lid, 44);
  EXPECT_EQ(Value(counts, "link_downed"), 0u);
}

TEST_F(PmaLeafCountsTest, ConfirmTheSwitchWhenACounterMovedAndNotForTraffic) {
  (void)Read();
  (void)Read();
  EXPECT_EQ(leaf_.Count(kSubnet, 0x15), 1);
  leaf_.symbol_errors = 3;
  EXPECT_EQ(Value(Read(), "symbol_error"), 3u);
  EXPECT_EQ(leaf_.Count(kSubnet, 0x15), 2);
}

TEST_F(PmaLeafCountsTest, NameTheNewPortOfACableThatWasMoved) {
  leaf_.link_downed = 3;
  (void)Read();
  leaf_.guid = 0xfc6a1c0300ab12ce;
  leaf_.name = "su1-r4";
  leaf_.port = 7;
  leaf_.lid = leaf_.answering_lid = 13;
  SetState("1: DOWN");
  EXPECT_THAT(Pass(), IsEmpty());
  SetState("4: ACTIVE");
  const LeafCounts counts = Read();
  EXPECT_EQ(counts.leaf, "su1-r4");
  EXPECT_EQ(counts.leaf_port, 7);
  EXPECT_EQ(Value(counts, "link_downed"), 3u);
}

TEST_F(PmaLeafCountsTest, SayNothingOfOneAnswerThatWasLost) {
  (void)Read();
  leaf_.counters_silent = true;
  for (int miss = 1; miss < kLeafMisses; ++miss) {
    const LeafCounts counts = Read();
    EXPECT_THAT(counts.counts, IsEmpty());
    EXPECT_EQ(counts.unread, "") << "what came before stands";
  }
  leaf_.counters_silent = false;
  EXPECT_THAT(Read().counts, Not(IsEmpty()));
}

TEST_F(PmaLeafCountsTest, SayOfALeafThatNeverAnswersWhyAndAskItEverLess) {
  leaf_.counters_silent = true;
  const LeafCounts first = Read();
  EXPECT_EQ(first.leaf, "su1-r3") << "subnet management answers";
  EXPECT_EQ(first.unread,
            "su1-r3 port 18 does not tell what it has counted (LID 12): no answer within 50 ms");
  std::vector<int> asked;  // by the half hour
  for (int half = 0; half < 4; ++half) {
    const int before = leaf_.opened;
    for (int pass = 0; pass < 180; ++pass) EXPECT_EQ(Read().unread, first.unread);
    asked.push_back(leaf_.opened - before);
  }
  EXPECT_THAT(asked, ElementsAre(testing::Le(8), testing::Le(4), testing::Le(4), testing::Le(4)));
  EXPECT_GE(asked.back(), 2) << "and never given up";
  leaf_.counters_silent = false;
  LeafCounts back;
  for (int pass = 0; pass < 61 && back.counts.empty(); ++pass) back = Read();
  EXPECT_THAT(back.counts, Not(IsEmpty()));
  EXPECT_EQ(back.unread, "");
}

TEST_F(PmaLeafCountsTest, AskAnewAtOnceWhenThePortComesBack) {
  leaf_.counters_silent = true;
  for (int pass = 0; pass < 10; ++pass) (void)Read();
  leaf_.counters_silent = false;
  SetState("2: INIT");
  EXPECT_THAT(Pass(), IsEmpty());
  SetState("4: ACTIVE");
  EXPECT_THAT(Read().counts, Not(IsEmpty()));
}

TEST_F(PmaLeafCountsTest, SayWhatARefusalWas) {
  leaf_.status = 0x0c;
  EXPECT_THAT(Read().unread, HasSubstr("refused the question with MAD status 0x000c"));
  leaf_.status = 0;
  leaf_.closed = "no permission for /dev/infiniband/umad0";
  EXPECT_THAT(Read().unread, HasSubstr("no permission for /dev/infiniband/umad0"));
}

TEST_F(PmaLeafCountsTest, SayOfASwitchWithoutALidThatNoSubnetManagerSawIt) {
  leaf_.lid = 0;
  EXPECT_THAT(Read().unread, HasSubstr("su1-r3 has no LID"));
  EXPECT_EQ(leaf_.Count(kPerformance, 0x12), 0);
}

TEST_F(PmaLeafCountsTest, RefuseAnswersThatMakeNoSense) {
  leaf_.spoil = [](Mad& mad) {
    if (mad[1] == kPerformance) mad[65] = 17;
  };
  EXPECT_THAT(Read().unread, HasSubstr("it answers for another port"));
  leaf_.spoil = [](Mad& mad) {
    if (mad[1] == kSubnet) mad[64 + 2] = 200;
  };
  EXPECT_THAT(Read().unread, HasSubstr("NodeInfo makes no sense"));
  leaf_.spoil = [](Mad&) {};
  leaf_.strays = 1'000;
  EXPECT_THAT(Read().unread, HasSubstr("other questions"));
}

TEST_F(PmaLeafCountsTest, SpendNoMoreThanItsBudgetOnAPort) {
  for (const milliseconds takes : {milliseconds(11), milliseconds(49), milliseconds(300)}) {
    leaf_.takes = takes;
    clock_.Advance(minutes(11));
    const auto started = clock_.Now();
    (void)source_.Read({{"mlx5_0", 1}});
    EXPECT_LE(clock_.Now() - started, kLeafBudget) << takes.count();
  }
}

TEST_F(PmaLeafCountsTest, AskNobodyAboutACableBetweenTwoHosts) {
  leaf_.kind = 1;
  EXPECT_THAT(Pass(), IsEmpty());
  EXPECT_EQ(leaf_.Count(kPerformance, 0x12), 0);
}

TEST_F(PmaLeafCountsTest, AskNobodyThroughAPortThatIsNotActive) {
  for (const char* state : {"1: DOWN", "2: INIT", "", "garbage"}) {
    SetState(state);
    EXPECT_THAT(Pass(), IsEmpty()) << state;
  }
  EXPECT_THAT(Pass({{"mlx5_7", 1}}), IsEmpty());
  EXPECT_EQ(leaf_.opened, 0);
}

TEST_F(PmaLeafCountsTest, EndAPassAtTheNextPortOnceStopIsAsked) {
  SetState("4: ACTIVE", "mlx5_1");
  leaf_.spoil = [this](Mad&) { stop_.request_stop(); };
  EXPECT_THAT(Pass({{"mlx5_0", 1}, {"mlx5_1", 1}}), SizeIs(1));
}

TEST(LeafCountersFile, ReadsWhatItWrote) {
  const std::vector<LeafCounts> ports{
      {"mlx5_0",
       1,
       "su1-r3",
       "0xfc6a1c0300ab12cd",
       18,
       12,
       false,
       {{"link_downed", 3}, {"symbol_error", 0}},
       ""},
      {"mlx5_1", 1, "su1-r4", "0xfc6a1c0300ab12ce", 18, 13, true, {{"link_downed", 1ULL << 40}}, ""},
      {"mlx5_2", 1, "", "", 0, 0, false, {}, "no permission for /dev/infiniband/umad2"}};
  const std::string text = FormatLeafCounts(ports);
  EXPECT_EQ(text,
            "mlx5_0 1 0xfc6a1c0300ab12cd \"su1-r3\" 18 lid 12 link_downed=3 symbol_error=0\n"
            "mlx5_1 1 0xfc6a1c0300ab12ce \"su1-r4\" 18 lid 13 extended link_downed=1099511627776\n"
            "mlx5_2 1 none \"\" 0 lid 0 unread \"no permission for /dev/infiniband/umad2\"\n");
  EXPECT_EQ(ParseLeafCounts(text), ports);
}

TEST(LeafCountersFile, PassesOverWhatMakesNoSense) {
  EXPECT_THAT(
      ParseLeafCounts("mlx5_0 0 none \"\" 0 lid 0\nmlx5_0 1 none \"\" 900 lid 0\nmlx5_0 1 none\n\n# x\n"
                      "mlx5_0 1 none \"\" 0 lid 49152\nmlx5_0 1 none \"\" 0 lid\n\"\"\""),
      IsEmpty());
  const auto odd = ParseLeafCounts(
      "mlx5_0 1 0x1 \"a\" 1 lid 1 link_downed=-3 link_downed=x link_downed=4 link_downed=5 flux=9 unread\n");
  ASSERT_THAT(odd, SizeIs(1));
  EXPECT_THAT(odd[0].counts, ElementsAre(PmaCount{"link_downed", 4}));
  EXPECT_EQ(odd[0].unread, "nobody says why");
}

TEST(RecordedLeafCounts, AnswerForThePortsThatAreAskedFor) {
  test::MemoryFileTree files;
  EXPECT_THAT(RecordedLeafCounts(files).Read({{"mlx5_0", 1}}), IsEmpty()) << "nobody asked";
  files.Write(
      kLeafCountersFile,
      "mlx5_1 1 0x2 \"su1-r4\" 18 lid 13 link_downed=1\nmlx5_0 1 0x1 \"su1-r3\" 18 lid 12 link_downed=3\n");
  const auto read = RecordedLeafCounts(files).Read({{"mlx5_0", 1}, {"mlx5_9", 1}});
  ASSERT_THAT(read, SizeIs(1));
  EXPECT_EQ(read[0].leaf, "su1-r3");
}

}  // namespace
}  // namespace heddle::nodeagent
