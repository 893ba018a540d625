// Buffers of SIOCETHTOOL as a kernel fills them, and as it must not.
#include "nodeagent/health/ethtool_answers.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::nodeagent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

template <class Number>
std::string Bytes(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

std::string CountAnswer(std::uint64_t sets, std::uint32_t count) {
  return Bytes<std::uint32_t>(0x37) + Bytes<std::uint32_t>(0) + Bytes(sets) + Bytes(count);
}

std::string NamesAnswer(std::uint32_t count, const std::vector<std::string>& names) {
  std::string answer = Bytes<std::uint32_t>(0x1b) + Bytes<std::uint32_t>(1) + Bytes(count);
  for (std::string name : names) {
    name.resize(32);
    answer += name;
  }
  return answer;
}

std::string ValuesAnswer(std::uint32_t count, const std::vector<std::uint64_t>& values) {
  std::string answer = Bytes<std::uint32_t>(0x1d) + Bytes(count);
  for (const std::uint64_t value : values) answer += Bytes(value);
  return answer;
}

TEST(EthtoolAnswers, SayHowManyStatisticsThereAre) {
  EXPECT_EQ(StatsCountOf(CountAnswer(2, 3)), 3U);
  EXPECT_EQ(StatsCountOf(CountAnswer(2, ~0U)), ~0U);
  // The driver has none, and what stands behind is nobody's.
  EXPECT_EQ(StatsCountOf(CountAnswer(0, 3)), 0U);
  EXPECT_EQ(StatsCountOf(CountAnswer(2, 3).substr(0, 19)), 0U);
  EXPECT_EQ(StatsCountOf(""), 0U);
}

TEST(EthtoolAnswers, HaveNamesOfWhichOneMayFillItsPlace) {
  const std::string full(32, 'x');
  EXPECT_THAT(StatsNamesOf(NamesAnswer(3, {"rx_prio3_pause", full, "a\x01"}), 3),
              Optional(ElementsAre("rx_prio3_pause", full, "a?")));
  EXPECT_THAT(StatsNamesOf(NamesAnswer(1, {""}), 1), Optional(ElementsAre("")));
  EXPECT_THAT(StatsNamesOf(NamesAnswer(0, {}), 0), Optional(IsEmpty()));
}

TEST(EthtoolAnswers, HaveTheValuesThatTheDriverSaid) {
  EXPECT_THAT(StatsValuesOf(ValuesAnswer(2, {41927, ~std::uint64_t(0)}), 2),
              Optional(ElementsAre(41927U, ~std::uint64_t(0))));
  // The buffer has room for more than there are.
  EXPECT_THAT(StatsValuesOf(ValuesAnswer(1, {7, 0, 0}), 1), Optional(ElementsAre(7U)));
}

// Channels that came or went in between move every name to another value.
TEST(EthtoolAnswers, AreNoneWhereTheDriverHasAnotherNumberByThen) {
  EXPECT_FALSE(StatsNamesOf(NamesAnswer(3, {"a", "b", "c"}), 2));
  EXPECT_FALSE(StatsNamesOf(NamesAnswer(1, {"a", ""}), 2));
  EXPECT_FALSE(StatsValuesOf(ValuesAnswer(3, {1, 2, 3}), 2));
  EXPECT_FALSE(StatsValuesOf(ValuesAnswer(0, {1, 2}), 2));
}

TEST(EthtoolAnswers, AreNoneWhereLessStandsThereThanTheySay) {
  EXPECT_FALSE(StatsNamesOf(NamesAnswer(2, {"a"}), 2));
  EXPECT_FALSE(StatsNamesOf(NamesAnswer(~0U, {"a"}), ~0U));
  EXPECT_FALSE(StatsNamesOf("", 0));
  EXPECT_FALSE(StatsValuesOf(ValuesAnswer(2, {1}), 2));
  EXPECT_FALSE(StatsValuesOf(ValuesAnswer(~0U, {1}), ~0U));
  EXPECT_FALSE(StatsValuesOf("", 0));
}

}  // namespace
}  // namespace heddle::nodeagent
