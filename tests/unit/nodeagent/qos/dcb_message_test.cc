#include "nodeagent/qos/dcb_message.h"

#include <gmock/gmock.h>
#include <linux/rtnetlink.h>

#include <cerrno>

#include "base/file_tree.h"
#include "netlink_builder.h"
#include "tests/support/seeds.h"

namespace heddle::nodeagent {
namespace {

using base::Code;
using test::Attribute;
using test::BytesOf;
using test::Ending;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint32_t kSequence = 7;

std::string Dcb(int type, int command, std::string_view attributes, std::uint32_t sequence = kSequence) {
  const dcbmsg head{0, std::uint8_t(command), 0};
  return test::Message(type, sequence, BytesOf(head) + std::string(attributes));
}

std::string App(int selector, int priority, int protocol, int type = DCB_ATTR_IEEE_APP) {
  return Attribute(type,
                   BytesOf(dcb_app{std::uint8_t(selector), std::uint8_t(priority), std::uint16_t(protocol)}));
}

std::string Ieee(std::string_view parts) {
  return Dcb(RTM_GETDCB, DCB_CMD_IEEE_GET, Attribute(DCB_ATTR_IEEE, parts));
}

DcbAnswer Taken(const std::string& datagram) {
  DcbAnswer answer;
  const auto taken = TakeDcb(datagram, kSequence, answer);
  EXPECT_TRUE(taken) << taken.error().message;
  return answer;
}

std::string WhyNot(const std::string& datagram) {
  DcbAnswer answer;
  const auto taken = TakeDcb(datagram, kSequence, answer);
  return taken ? std::string() : taken.error().message;
}

// The wire is forever: a header that says otherwise is not the kernel's.
TEST(DcbMessage, HasTheNumbersOfTheKernel) {
  EXPECT_EQ(RTM_GETDCB, 78);
  EXPECT_EQ(RTM_SETDCB, 79);
  EXPECT_EQ(int(DCB_CMD_IEEE_SET), 20);
  EXPECT_EQ(int(DCB_CMD_IEEE_GET), 21);
  EXPECT_EQ(int(DCB_CMD_GDCBX), 22);
  EXPECT_EQ(int(DCB_CMD_SDCBX), 23);
  EXPECT_EQ(int(DCB_CMD_IEEE_DEL), 27);
  EXPECT_EQ(int(DCB_ATTR_IFNAME), 1);
  EXPECT_EQ(int(DCB_ATTR_IEEE), 13);
  EXPECT_EQ(int(DCB_ATTR_DCBX), 14);
  EXPECT_EQ(int(DCB_ATTR_IEEE_ETS), 1);
  EXPECT_EQ(int(DCB_ATTR_IEEE_PFC), 2);
  EXPECT_EQ(int(DCB_ATTR_IEEE_APP_TABLE), 3);
  EXPECT_EQ(int(DCB_ATTR_IEEE_MAXRATE), 7);
  EXPECT_EQ(int(DCB_ATTR_DCB_BUFFER), 10);
  EXPECT_EQ(kIeeeAppTrustTable, int(DCB_ATTR_DCB_BUFFER) + 1);
  EXPECT_EQ(int(DCB_ATTR_IEEE_APP), 1);
  EXPECT_EQ(IEEE_8021QAZ_APP_SEL_DSCP, 5);
  EXPECT_EQ(DCB_CAP_DCBX_HOST, 1);
  EXPECT_EQ(DCB_CAP_DCBX_LLD_MANAGED, 2);
  EXPECT_EQ(DCB_CAP_DCBX_VER_IEEE, 8);
  EXPECT_EQ(sizeof(ieee_ets), 59u);
  EXPECT_EQ(sizeof(ieee_pfc), 136u);
  EXPECT_EQ(sizeof(dcb_app), 4u);
  EXPECT_EQ(sizeof(dcbnl_buffer), 44u);
  EXPECT_EQ(sizeof(ieee_maxrate), 64u);
}

// As `strace -e trace=sendmsg -x dcb pfc show dev dcb0` shows that one asks.
TEST(DcbMessage, AsksByNameAndForAnAcknowledgement) {
  const std::string head = BytesOf(nlmsghdr{32, 78, NLM_F_REQUEST | NLM_F_ACK, 9, 0});
  EXPECT_EQ(AskDcb("dcb0", 9),
            head + std::string("\0\x15\0\0", 4) + Attribute(DCB_ATTR_IFNAME, {"dcb0\0", 5}));
}

TEST(DcbMessage, ReadsWhatADriverHasAndSaysWhatItLacks) {
  ieee_pfc pfc{};
  pfc.pfc_en = 1 << 3;
  pfc.delay = 7;
  ieee_ets ets{};
  ets.tc_tsa[2] = IEEE_8021QAZ_TSA_ETS;
  dcbnl_buffer buffer{};
  buffer.buffer_size[1] = 4096;
  const std::string apps =
      App(5, 3, 26) + App(1, 0, 0) + App(5, 6, 48) + App(5, 3, 26) + App(255, 2, 1, kDcbApp);
  const std::string trust = Attribute(DCB_ATTR_IEEE_APP, "\x05") + Attribute(kDcbApp, "\xff");
  const std::string parts = Attribute(DCB_ATTR_IEEE_ETS, BytesOf(ets)) +
                            Attribute(DCB_ATTR_IEEE_PFC, BytesOf(pfc)) +
                            Attribute(DCB_ATTR_DCB_BUFFER, BytesOf(buffer)) +
                            Attribute(DCB_ATTR_IEEE_APP_TABLE | NLA_F_NESTED, apps) +
                            Attribute(kIeeeAppTrustTable, trust) + Attribute(99, "what comes one day");
  const std::string message =
      Dcb(RTM_GETDCB, DCB_CMD_IEEE_GET,
          Attribute(DCB_ATTR_IEEE | NLA_F_NESTED, parts) + Attribute(DCB_ATTR_DCBX, "\x09"));
  const DcbAnswer answer = Taken(message + Ending(kSequence, 0));
  ASSERT_TRUE(answer.state && answer.done);
  EXPECT_EQ(answer.error, 0);
  EXPECT_EQ(answer.state->pfc->pfc_en, 8);
  EXPECT_EQ(answer.state->pfc->delay, 7);
  EXPECT_EQ(answer.state->ets->tc_tsa[2], 2);
  EXPECT_EQ(answer.state->buffer->buffer_size[1], 4096u);
  EXPECT_FALSE(answer.state->max_rate);
  EXPECT_EQ(answer.state->dcbx, 9);
  EXPECT_THAT(*answer.state->trust, ElementsAre(5, 255));
  EXPECT_THAT(answer.state->apps,
              ElementsAre(DcbApp{1, 0, 0}, DcbApp{5, 26, 3}, DcbApp{5, 48, 6}, DcbApp{255, 1, 2}));
}

// What Linux 6.1 sent after `dcb pfc set dev dcb0 prio-pfc 3:on delay 30`, `dcb app add dev dcb0 dscp-prio 26:3 48:6`
// and `dcb ets set dev dcb0 tc-tsa all:strict 0:ets 3:ets tc-bw 0:50 3:50 prio-tc all:0 3:3 6:6`.
TEST(DcbMessage, ReadsWhatAKernelSent) {
  const base::DiskFileTree corpus("tests/fuzz/corpus/dcbnl");
  const DcbAnswer answer = Taken(corpus.Read("state").value());
  ASSERT_TRUE(answer.done && answer.state);
  EXPECT_EQ(answer.state->pfc->pfc_en, 8);
  EXPECT_EQ(answer.state->pfc->delay, 30);
  EXPECT_EQ(answer.state->ets->tc_tsa[3], IEEE_8021QAZ_TSA_ETS);
  EXPECT_EQ(answer.state->ets->tc_tx_bw[3], 50);
  EXPECT_EQ(answer.state->ets->prio_tc[6], 6);
  EXPECT_EQ(answer.state->buffer->total_size, 1'048'512u);
  EXPECT_EQ(answer.state->dcbx, 13);
  EXPECT_THAT(answer.state->apps, ElementsAre(DcbApp{5, 26, 3}, DcbApp{5, 48, 6}));
  const DcbAnswer refused = Taken(corpus.Read("refused").value());
  EXPECT_TRUE(refused.done && refused.error == 0) << "the message itself was right";
  EXPECT_EQ(refused.refusal, EOPNOTSUPP);
  EXPECT_EQ(Taken(corpus.Read("dcbx").value()).refusal, 1);
  EXPECT_EQ(Taken(corpus.Read("nobody").value()).error, ENODEV);
  EXPECT_THAT(ChangedByDcb(corpus.Read("notice").value()), ElementsAre("dcb0"));
}

// A message that we send to change something reads back as what it says: the kernel's own answer is made of the same.
TEST(DcbMessage, ChangesCarryWhatTheyAreGiven) {
  DcbChange change;
  change.ets.emplace().tc_tx_bw[3] = 50;
  change.pfc.emplace().pfc_en = 8;
  change.buffer.emplace().prio2buffer[3] = 1;
  change.max_rate.emplace().tc_maxrate[0] = 1000;
  change.apps = {{5, 26, 3}, {255, 1, 2}};
  change.trust = {5, 255};
  std::string message = SetDcb("dcb0", kSequence, change);
  EXPECT_EQ(message[4], 79);
  message[sizeof(nlmsghdr) + 1] = DCB_CMD_IEEE_GET;
  const DcbAnswer answer = Taken(message);
  ASSERT_TRUE(answer.state);
  EXPECT_EQ(answer.state->ets->tc_tx_bw[3], 50);
  EXPECT_EQ(answer.state->pfc->pfc_en, 8);
  EXPECT_EQ(answer.state->buffer->prio2buffer[3], 1);
  EXPECT_EQ(answer.state->max_rate->tc_maxrate[0], 1000u);
  EXPECT_EQ(answer.state->apps, change.apps);
  EXPECT_EQ(answer.state->trust, change.trust);
  std::string deletion = DeleteDcbApps("dcb0", kSequence, change.apps);
  EXPECT_EQ(deletion[sizeof(nlmsghdr) + 1], DCB_CMD_IEEE_DEL);
  deletion[sizeof(nlmsghdr) + 1] = DCB_CMD_IEEE_GET;
  EXPECT_EQ(Taken(deletion).state->apps, change.apps);
}

TEST(DcbMessage, AWholeDscpTableAndMoreFitsIntoOneMessage) {
  DcbChange change;
  change.ets.emplace();
  change.pfc.emplace();
  change.buffer.emplace();
  for (int dscp = 0; dscp < 64; ++dscp) {
    for (int priority = 0; priority < 8; ++priority) change.apps.push_back({5, dscp, priority});
  }
  std::string message = SetDcb("fifteen-letters", kSequence, change);
  message[sizeof(nlmsghdr) + 1] = DCB_CMD_IEEE_GET;
  EXPECT_EQ(Taken(message).state->apps.size(), kMaxDcbApps);
}

TEST(DcbMessage, TheDriversErrorIsASignedByte) {
  const auto refused = [](int error) {
    const auto byte = std::uint8_t(std::int8_t(-error));
    return Taken(Dcb(RTM_SETDCB, DCB_CMD_IEEE_SET, Attribute(DCB_ATTR_IEEE, BytesOf(byte)))).refusal;
  };
  EXPECT_EQ(refused(0), 0);
  EXPECT_EQ(refused(EOPNOTSUPP), EOPNOTSUPP);
  EXPECT_EQ(refused(EBUSY), EBUSY);
  EXPECT_EQ(Taken(Dcb(RTM_SETDCB, DCB_CMD_SDCBX, Attribute(DCB_ATTR_DCBX, "\x01"))).refusal, 1);
  EXPECT_EQ(Taken(Ending(kSequence, EOPNOTSUPP)).error, EOPNOTSUPP);
  EXPECT_EQ(Taken(Ending(kSequence, 0)).error, 0);
}

TEST(DcbMessage, PassesOverWhatAnswersAnotherQuestion) {
  DcbAnswer answer;
  ASSERT_TRUE(TakeDcb(Ending(kSequence + 1, EBUSY), kSequence, answer));
  EXPECT_FALSE(answer.done);
}

TEST(DcbMessage, RefusesWhatIsCutShortByName) {
  EXPECT_THAT(WhyNot(Ieee(Attribute(DCB_ATTR_IEEE_ETS, "abc"))),
              HasSubstr("ETS of 3 bytes, which must be 59"));
  EXPECT_THAT(WhyNot(Ieee(Attribute(DCB_ATTR_IEEE_PFC, ""))), HasSubstr("PFC of 0 bytes"));
  EXPECT_THAT(WhyNot(Ieee(Attribute(DCB_ATTR_IEEE_APP_TABLE, Attribute(1, "x")))), HasSubstr("an APP entry"));
  EXPECT_THAT(WhyNot(test::Message(RTM_GETDCB, kSequence, "")), HasSubstr("without its head"));
  EXPECT_THAT(WhyNot("no netlink"), HasSubstr("no netlink message"));
  // libmnl itself takes this length for a negative one.
  EXPECT_THAT(WhyNot(BytesOf(nlmsghdr{0x80000010, RTM_GETDCB, 0, kSequence, 0})),
              HasSubstr("no netlink message"));
  std::string apps;
  for (std::size_t i = 0; i <= kMaxReadApps; ++i) apps += App(4, int(i % 8), int(i));
  EXPECT_THAT(WhyNot(Ieee(Attribute(DCB_ATTR_IEEE_APP_TABLE, apps))),
              HasSubstr("more than 4096 APP entries"));
}

TEST(DcbMessage, DamagedAnswersAreReadOrRefusedAndNothingElse) {
  const base::DiskFileTree corpus("tests/fuzz/corpus/dcbnl");
  int read = 0, refused = 0;
  for (const std::uint64_t seed : test::Seeds(2'000)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    for (const char* name : {"state", "refused", "dcbx", "notice"}) {
      const std::string bytes = test::Damage(corpus.Read(name).value(), random);
      DcbAnswer answer;
      const auto taken = TakeDcb(bytes, kSequence, answer);
      ++(taken ? read : refused);
      EXPECT_TRUE(taken || !taken.error().message.empty());
      for (const std::string& netdev : ChangedByDcb(bytes)) EXPECT_LE(netdev.size(), 64U);
      EXPECT_LE(answer.state.value_or(DcbState{}).apps.size(), kMaxReadApps);
    }
  }
  // One seed alone, as HEDDLE_SEED has it, may do either.
  EXPECT_TRUE(test::Seeds(2).size() == 1 || (read > 0 && refused > 0));
}

TEST(DcbMessage, NotificationsNameTheirInterfaces) {
  const auto notice = [](std::string_view name) {
    return Dcb(RTM_SETDCB, DCB_CMD_IEEE_SET, Attribute(DCB_ATTR_IFNAME, name), 0);
  };
  EXPECT_THAT(ChangedByDcb(notice({"dcb0\0", 5}) + notice({"dcb1\0", 5}) + notice({"dcb0\0", 5})),
              ElementsAre("dcb0", "dcb1"));
  EXPECT_THAT(ChangedByDcb(test::Message(RTM_NEWLINK, 0, Attribute(1, "abcd"))), IsEmpty());
  EXPECT_THAT(ChangedByDcb("x"), IsEmpty());
}

}  // namespace
}  // namespace heddle::nodeagent
