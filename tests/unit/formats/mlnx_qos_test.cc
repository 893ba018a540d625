#include "formats/mlnx_qos.h"

#include <gmock/gmock.h>

#include "qos_text.h"

namespace heddle::formats {
namespace {

using lossless::Algorithm;
using test::LosslessFixture;
using test::Replaced;
using testing::HasSubstr;

std::string Refusal(const std::string& text) {
  const auto read = ParseMlnxQos(text);
  return read ? "was read" : read.error().message;
}

TEST(MlnxQos, ReadsAllThatItSays) {
  const std::string text = LosslessFixture("mlnx_qos.txt");
  EXPECT_TRUE(LooksLikeMlnxQos(text));
  const auto read = ParseMlnxQos(text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->dcbx, lossless::Dcbx::kHost);
  EXPECT_EQ(read->trust, lossless::Trust::kDscp);
  EXPECT_EQ(lossless::DscpRanges(*read->dscp_to_priority, 3), "24-31");
  EXPECT_EQ(read->pfc, lossless::PrioritySet{3});
  EXPECT_EQ(read->cable_metres, 7);
  EXPECT_EQ(read->priority_to_buffer, (lossless::PriorityTable{0, 0, 0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(read->buffer_bytes, (lossless::Numbers{130'944, 130'944, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(read->priority_to_class, (lossless::PriorityTable{1, 0, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ((*read->class_algorithm)[6], Algorithm::kEts);
  EXPECT_EQ((*read->class_percent)[6], 13);
  EXPECT_FALSE(read->mtu || read->tos || read->watchdog_ms) << "it does not say these";
}

TEST(MlnxQos, LeavesOpenWhatAnOlderVersionDoesNotPrint) {
  const auto read = ParseMlnxQos(
      "Priority trust state: pcp\nPFC configuration:\n\tpriority    0   1   2   3   4   5   6   7\n"
      "\tenabled     0   0   0   0   0   0   0   0   \ntc: 6 ratelimit: 10.0 Gbps, tsa: strict\n\t priority: "
      " 6\n");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->trust, lossless::Trust::kPcp);
  EXPECT_EQ(read->pfc, lossless::PrioritySet{});
  EXPECT_FALSE(read->dcbx || read->dscp_to_priority || read->buffer_bytes || read->cable_metres);
  EXPECT_EQ((*read->class_algorithm)[6], Algorithm::kStrict);
  EXPECT_EQ((*read->class_algorithm)[0], Algorithm::kAny);
  EXPECT_EQ((*read->priority_to_class)[0], lossless::kNotSaid);
}

// The second would be taken for all of it, whatever the first is set to.
TEST(MlnxQos, RefusesTwoInterfacesInOneText) {
  const std::string text = LosslessFixture("mlnx_qos.txt");
  EXPECT_THAT(Refusal(text + text),
              HasSubstr("\"DCBX mode:\" stands twice, and this is of one interface a file: split it"));
  const std::string older = "PFC configuration:\n\tenabled     0   0   0   1   0   0   0   0   \n";
  EXPECT_EQ(Refusal(older), "was read");
  EXPECT_THAT(Refusal(older + older), HasSubstr("line 4: \"enabled\" stands twice"));
}

TEST(MlnxQos, ReadsListsThatGoOnUnderTheirPriority) {
  const auto older = ParseMlnxQos(
      "Priority trust state: dscp\ndscp2prio mapping:\n\tprio:0 dscp:00,01,02,03,04,05,06,07,\n"
      "\t            08,09,\n\tprio:3 dscp:26,\ndefault priority:\n");
  ASSERT_TRUE(older) << older.error().message;
  EXPECT_EQ(lossless::DscpRanges(*older->dscp_to_priority, 0), "0-9");
  EXPECT_EQ(lossless::DscpRanges(*older->dscp_to_priority, 3), "26");
  const auto newer = ParseMlnxQos("\tprio:0 dscp:00,01,\n\tprio:0 dscp:02,\nCable len: 7\n99,\n");
  ASSERT_TRUE(newer) << newer.error().message;
  EXPECT_EQ(lossless::DscpRanges(*newer->dscp_to_priority, 0), "0-2");
}

TEST(MlnxQos, DoesNotTakeWhatItCouldNotFindOutForAnAnswer) {
  const auto read =
      ParseMlnxQos("Priority trust state: none\nBuffers commands are not supported on your system\n");
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->trust || read->buffer_bytes);
}

TEST(MlnxQos, NamesTheLineThatIsWrong) {
  const std::string good = LosslessFixture("mlnx_qos.txt");
  EXPECT_THAT(Refusal(Replaced(good, "OS controlled", "mine")), HasSubstr("line 1: the DCBX mode"));
  EXPECT_THAT(Refusal(Replaced(good, "prio:0 dscp:07", "prio:0 dscp:64")),
              HasSubstr("line 4: \"64\" is no DSCP"));
  EXPECT_THAT(Refusal(Replaced(good, "prio:3", "prio:9")), HasSubstr("line 7: "));
  EXPECT_THAT(Refusal(Replaced(good, "enabled     0", "enabled     2")), HasSubstr("PFC is 0 or 1"));
  EXPECT_THAT(Refusal(Replaced(good, "bw: 12%", "bw: 120%")), HasSubstr("bw: N%"));
  EXPECT_THAT(Refusal(Replaced(good, "tsa: ets", "tsa: drr")), HasSubstr("none of strict, ets and vendor"));
  EXPECT_THAT(Refusal(Replaced(good, "130944,130944", "-1,130944")), HasSubstr("\"-1\" is no size"));
  EXPECT_THAT(Refusal("hello\n"), HasSubstr("not what `mlnx_qos -i DEV` prints"));
  EXPECT_THAT(Refusal(""), HasSubstr("not what"));
  EXPECT_THAT(Refusal(std::string(2'000'000, 'x')), HasSubstr("1 MiB"));
  EXPECT_FALSE(LooksLikeMlnxQos("kind: LosslessPolicy\n"));
}

}  // namespace
}  // namespace heddle::formats
