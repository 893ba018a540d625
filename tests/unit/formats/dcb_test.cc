#include "formats/dcb.h"

#include <gmock/gmock.h>

#include "qos_text.h"

namespace heddle::formats {
namespace {

using test::LosslessFixture;
using test::Replaced;
using testing::HasSubstr;

std::string Refusal(const std::string& text) {
  const auto read = ParseDcb(text);
  return read ? "was read" : read.error().message;
}

TEST(Dcb, ReadsTextAndJsonAsTheSame) {
  const std::string text = LosslessFixture("dcb.txt"), json = LosslessFixture("dcb.json");
  EXPECT_TRUE(LooksLikeDcb(text));
  EXPECT_TRUE(LooksLikeDcb(json));
  const auto of_text = ParseDcb(text), of_json = ParseDcb(json);
  ASSERT_TRUE(of_text) << of_text.error().message;
  ASSERT_TRUE(of_json) << of_json.error().message;
  EXPECT_TRUE(*of_text == *of_json);
  EXPECT_EQ(of_text->pfc, lossless::PrioritySet{3});
  EXPECT_EQ(of_text->dcbx, lossless::Dcbx::kHost);
  EXPECT_EQ(of_text->trust, lossless::Trust::kDscp);
  EXPECT_EQ(lossless::DscpRanges(*of_text->dscp_to_priority, 3), "26");
  EXPECT_EQ(lossless::DscpRanges(*of_text->dscp_to_priority, 6), "48");
  EXPECT_EQ(lossless::DscpRanges(*of_text->dscp_to_priority, 0), "0-25,27-47,49-63");
  EXPECT_EQ(of_text->priority_to_class, (lossless::PriorityTable{0, 0, 0, 3, 0, 0, 6, 0}));
  EXPECT_EQ((*of_text->class_algorithm)[3], lossless::Algorithm::kEts);
  EXPECT_EQ((*of_text->class_percent)[3], 50);
  EXPECT_EQ((*of_text->buffer_bytes)[1], 262'144);
  EXPECT_EQ(of_text->cable_metres, 7);
}

TEST(Dcb, ReadsOneCommandAlone) {
  const auto pfc = ParseDcb("pfc-cap 8 macsec-bypass off delay 0 \nprio-pfc 0:on 1:off \n");
  ASSERT_TRUE(pfc);
  EXPECT_EQ(pfc->pfc, lossless::PrioritySet{0});
  EXPECT_FALSE(pfc->trust || pfc->cable_metres || pfc->class_percent);
  const auto trust = ParseDcb("order: pcp dscp \n");
  ASSERT_TRUE(trust);
  EXPECT_EQ(trust->trust, lossless::Trust::kPcp);
  const auto firmware = ParseDcb("lld-managed cee \n");
  ASSERT_TRUE(firmware);
  EXPECT_EQ(firmware->dcbx, lossless::Dcbx::kFirmware);
  EXPECT_EQ(ParseDcb(R"([{"prio_pfc":["on","off"]}])")->pfc, lossless::PrioritySet{0});
  const auto app = ParseDcb("default-prio 2 \ndscp-prio 26:3 \n");
  EXPECT_EQ(lossless::DscpRanges(*app->dscp_to_priority, 2), "0-25,27-63");
}

// The second would be taken for all of it, whatever the first is set to.
TEST(Dcb, RefusesTwoInterfacesInOneText) {
  const std::string text = LosslessFixture("dcb.txt"), json = LosslessFixture("dcb.json");
  EXPECT_THAT(Refusal(text + text),
              HasSubstr("delay stands twice, and this is of one interface a file: split it"));
  EXPECT_THAT(Refusal(json + json), HasSubstr("line 6: delay stands twice"));
  EXPECT_THAT(Refusal("prio-pfc 3:on \nprio-pfc 3:off \n"), HasSubstr("line 2: prio-pfc stands twice"));
  EXPECT_THAT(Refusal("host ieee \nhost ieee \n"), HasSubstr("line 2: dcbx stands twice"));
  EXPECT_THAT(Refusal(R"([{"prio_pfc":["on"]},{"prio_pfc":["off"]}])"), HasSubstr("prio-pfc stands twice"));
}

TEST(Dcb, NamesTheLineOrTheKeyThatIsWrong) {
  const std::string text = LosslessFixture("dcb.txt"), json = LosslessFixture("dcb.json");
  EXPECT_THAT(Refusal(Replaced(text, "3:on", "8:on")), HasSubstr("line 2: prio-pfc: \"8\" is not 0 to 7"));
  EXPECT_THAT(Refusal(Replaced(text, "3:on", "3:yes")),
              HasSubstr("line 2: prio-pfc: \"yes\" is not on or off"));
  EXPECT_THAT(Refusal(Replaced(text, "AF31", "AF44")), HasSubstr("dscp-prio: \"AF44\" is not a DSCP"));
  EXPECT_THAT(Refusal(Replaced(text, "tc-bw 0:50", "tc-bw 0:101")), HasSubstr("tc-bw"));
  EXPECT_THAT(Refusal(Replaced(text, "130944b", "1e99Mb")), HasSubstr("buffer-size"));
  EXPECT_THAT(Refusal(Replaced(text, "130944b", "nan")), HasSubstr("buffer-size"));
  EXPECT_THAT(Refusal(Replaced(json, "[26,3]", "[64,3]")), HasSubstr("line 3: dscp-prio: \"64\""));
  EXPECT_THAT(Refusal(Replaced(json, "[26,3]", "[26,8]")), HasSubstr("\"8\" is not a priority"));
  EXPECT_THAT(Refusal(Replaced(json, "\"ets\"", "\"best\"")), HasSubstr("tc-tsa"));
  EXPECT_THAT(Refusal(json.substr(0, 40)), HasSubstr("line 1: this is no JSON object"));
  EXPECT_THAT(Refusal("{\"a\":1}"), HasSubstr("not what `dcb"));
  EXPECT_THAT(Refusal("[1]"), HasSubstr("no JSON object"));
  EXPECT_THAT(Refusal("nothing of it\n"), HasSubstr("not what `dcb"));
  EXPECT_THAT(Refusal(std::string(2'000'000, ' ')), HasSubstr("1 MiB"));
  EXPECT_THAT(Refusal(std::string(100'000, '[')), HasSubstr("more values"));
  EXPECT_FALSE(LooksLikeDcb(R"({"PORT": {"Ethernet0": {}}})"));
  EXPECT_FALSE(LooksLikeDcb(""));
}

}  // namespace
}  // namespace heddle::formats
