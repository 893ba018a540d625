// Performance management as it goes over the wire: bytes written here by hand after the tables of InfiniBand
// Architecture Specification, volume 1, sections 13.4.3, 16.1.2 and 16.1.3.
#include "nodeagent/leaf/pma.h"

#include <gmock/gmock.h>

#include <initializer_list>

namespace heddle::nodeagent {
namespace {

using testing::Contains;
using testing::Each;
using testing::Field;
using testing::Not;

// An answer whose data, from byte 64 on, are `bytes` and then zeros.
Mad DataOf(std::initializer_list<int> bytes) {
  Mad mad{};
  std::size_t at = 64;
  for (const int byte : bytes) mad[at++] = std::uint8_t(byte);
  return mad;
}

std::uint64_t Value(const std::vector<PmaCount>& counts, std::string_view name) {
  for (const PmaCount& count : counts) {
    if (count.name == name) return count.value;
  }
  ADD_FAILURE() << "no " << name;
  return 0;
}

TEST(Pma, AsksWithAGetOfOnePortAndNothingElse) {
  const Mad mad = AskCounters(PmaAttribute::kPortCounters, 18, 0x01020304);
  const std::initializer_list<int> header{
      1, 4,    1, 1,               // base version, class PerfMgt, class version, method Get
      0, 0,    0, 0,               // status, class specific
      0, 0,    0, 0, 1, 2, 3, 4,   // transaction
      0, 0x12, 0, 0, 0, 0, 0, 0};  // attribute, reserved, modifier
  EXPECT_TRUE(std::equal(header.begin(), header.end(), mad.begin(), [](int a, int b) { return a == b; }));
  EXPECT_EQ(mad[65], 18) << "PortSelect";
  EXPECT_EQ(mad[66], 0) << "CounterSelect: nothing is chosen to be set";
  EXPECT_EQ(mad[67], 0);
  EXPECT_THAT(std::vector<int>(mad.begin() + 68, mad.end()), Each(0));
  EXPECT_EQ(AskCounters(PmaAttribute::kPortCountersExtended, 18, 1)[17], 0x1d);
  const Mad info = AskCounters(PmaAttribute::kClassPortInfo, 18, 1);
  EXPECT_EQ(info[17], 0x01);
  EXPECT_EQ(info[65], 0) << "of the node, not of a port";
}

TEST(Pma, TakesForAnAnswerWhatAnswersThisQuestion) {
  const Mad question = AskCounters(PmaAttribute::kPortCounters, 18, 7);
  Mad answer = question;
  answer[3] = 0x81;
  answer[8] = 0xab;  // the kernel's half of the transaction
  EXPECT_TRUE(AnswersCounters(answer, question));
  for (const std::size_t byte : {std::size_t(1), std::size_t(3), std::size_t(15), std::size_t(17)}) {
    Mad other = answer;
    other[byte] ^= 0x40;
    EXPECT_FALSE(AnswersCounters(other, question)) << byte;
  }
  EXPECT_FALSE(AnswersCounters(question, question)) << "a question is no answer";
}

TEST(Pma, ReadsPortCountersWhereTheSpecificationHasThem) {
  const Mad mad = DataOf({0,    18,   0,    0,     // reserved, PortSelect, CounterSelect
                          0x12, 0x34,              // SymbolErrorCounter
                          0x56, 0x78,              // LinkErrorRecoveryCounter, LinkDownedCounter
                          0x01, 0x02, 0x03, 0x04,  // PortRcvErrors, PortRcvRemotePhysicalErrors
                          0xaa, 0xaa, 0x05, 0x06,  // PortRcvSwitchRelayErrors, PortXmitDiscards
                          0xbb, 0xbb, 0xcc,        // constraint errors both ways, CounterSelect2
                          0x9c,                    // LocalLinkIntegrityErrors, ExcessiveBufferOverrunErrors
                          0xdd, 0xdd, 0xee, 0xee,  // QP1Dropped, VL15Dropped
                          1,    1,    1,    1,    2, 2, 2, 2,  // PortXmitData, PortRcvData
                          0x10, 0x20, 0x30, 0x40,              // PortXmitPkts
                          3,    3,    3,    3,                 // PortRcvPkts
                          0xf0, 0xe0, 0xd0, 0xc0});            // PortXmitWait
  const auto counts = ReadCounters(mad, PmaAttribute::kPortCounters, 18, {false, true});
  ASSERT_TRUE(counts);
  EXPECT_EQ(Value(*counts, "symbol_error"), 0x1234u);
  EXPECT_EQ(Value(*counts, "link_error_recovery"), 0x56u);
  EXPECT_EQ(Value(*counts, "link_downed"), 0x78u);
  EXPECT_EQ(Value(*counts, "port_rcv_errors"), 0x0102u);
  EXPECT_EQ(Value(*counts, "port_rcv_remote_physical_errors"), 0x0304u);
  EXPECT_EQ(Value(*counts, "port_xmit_discards"), 0x0506u);
  EXPECT_EQ(Value(*counts, "local_link_integrity_errors"), 0x9u);
  EXPECT_EQ(Value(*counts, "excessive_buffer_overrun_errors"), 0xcu);
  EXPECT_EQ(Value(*counts, "port_xmit_packets"), 0x10203040u);
  EXPECT_EQ(Value(*counts, "port_xmit_wait"), 0xf0e0d0c0u);
}

TEST(Pma, LeavesOutTheWaitOfASwitchThatDoesNotCountIt) {
  const auto counts = ReadCounters(DataOf({0, 18}), PmaAttribute::kPortCounters, 18, {});
  ASSERT_TRUE(counts);
  EXPECT_THAT(*counts, Not(Contains(Field(&PmaCount::name, "port_xmit_wait"))));
  EXPECT_EQ(Value(*counts, "link_downed"), 0u);
}

TEST(Pma, ReadsExtendedCountersWhereTheSpecificationHasThem) {
  Mad mad = DataOf({0, 18});
  const auto put = [&mad](std::size_t byte, std::uint64_t value) {
    for (int i = 0; i < 8; ++i) mad[64 + byte + std::size_t(i)] = std::uint8_t(value >> (56 - 8 * i));
  };
  put(24, 0x1111222233334444);   // PortXmitPkts
  put(72, 0x100000001);          // SymbolErrorCounter, the first of the additional ones
  put(80, 0x200000002);          // LinkErrorRecoveryCounter
  put(88, 0x300000003);          // LinkDownedCounter
  put(96, 0x400000004);          // PortRcvErrors
  put(104, 0x500000005);         // PortRcvRemotePhysicalErrors
  put(120, 0x600000006);         // PortXmitDiscards
  put(144, 0x700000007);         // LocalLinkIntegrityErrors
  put(152, 0x800000008);         // ExcessiveBufferOverrunErrors
  put(168, 0xffffffffffffffff);  // PortXmitWait
  const auto counts = ReadCounters(mad, PmaAttribute::kPortCountersExtended, 18, {true, false});
  ASSERT_TRUE(counts);
  EXPECT_EQ(Value(*counts, "port_xmit_packets"), 0x1111222233334444u);
  EXPECT_EQ(Value(*counts, "symbol_error"), 0x100000001u);
  EXPECT_EQ(Value(*counts, "link_error_recovery"), 0x200000002u);
  EXPECT_EQ(Value(*counts, "link_downed"), 0x300000003u);
  EXPECT_EQ(Value(*counts, "port_rcv_errors"), 0x400000004u);
  EXPECT_EQ(Value(*counts, "port_rcv_remote_physical_errors"), 0x500000005u);
  EXPECT_EQ(Value(*counts, "port_xmit_discards"), 0x600000006u);
  EXPECT_EQ(Value(*counts, "local_link_integrity_errors"), 0x700000007u);
  EXPECT_EQ(Value(*counts, "excessive_buffer_overrun_errors"), 0x800000008u);
  EXPECT_EQ(Value(*counts, "port_xmit_wait"), 0xffffffffffffffffu);
}

TEST(Pma, BelievesNoAnswerOfAnotherPort) {
  EXPECT_FALSE(ReadCounters(DataOf({0, 17}), PmaAttribute::kPortCounters, 18, {}));
  EXPECT_FALSE(ReadCounters(DataOf({0, 255}), PmaAttribute::kPortCountersExtended, 18, {}));
}

TEST(Pma, CountsExtendedOnlyWhereTheErrorsAreThere) {
  // BaseVersion, ClassVersion, CapabilityMask, CapabilityMask2 and RespTimeValue.
  const auto able = [](int high, int low, int mask2) {
    return ReadClassPortInfo(DataOf({1, 1, high, low, 0, 0, 0, mask2 << 5 | 0x12}));
  };
  EXPECT_EQ(able(0, 0, 0), (PmaAbilities{false, false}));
  EXPECT_EQ(able(0x02, 0, 0), (PmaAbilities{false, false})) << "traffic in 64 bits, errors in 16";
  EXPECT_EQ(able(0x02, 0, 2), (PmaAbilities{true, false}));
  EXPECT_EQ(able(0x04, 0, 2), (PmaAbilities{true, false})) << "without unicast and multicast";
  EXPECT_EQ(able(0x00, 0, 2), (PmaAbilities{false, false})) << "additional to nothing";
  EXPECT_EQ(able(0x12, 0, 1), (PmaAbilities{false, true})) << "PM_Key, and the wait";
}

TEST(Pma, KnowsWhichCountersStandStill) {
  EXPECT_TRUE(StandsStill("link_downed"));
  EXPECT_FALSE(StandsStill("port_xmit_packets"));
  EXPECT_FALSE(StandsStill("port_xmit_wait"));
  EXPECT_FALSE(StandsStill("nothing of ours"));
  EXPECT_EQ(FindPmaCount("symbol_error"), "symbol_error");
  EXPECT_EQ(FindPmaCount("nothing of ours"), "");
}

TEST(Smp, ReadsTheLidOfOnePortOnly) {
  Mad mad{};
  EXPECT_FALSE(ReadLid(mad)) << "no subnet manager was there";
  mad[64 + 16] = 0x01;
  mad[64 + 17] = 0x2c;
  EXPECT_EQ(ReadLid(mad), 300);
  mad[64 + 16] = 0xc0;
  EXPECT_FALSE(ReadLid(mad)) << "a multicast group";
}

}  // namespace
}  // namespace heddle::nodeagent
