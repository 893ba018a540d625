#include "formats/hostlist.h"

#include <gmock/gmock.h>

namespace heddle::formats {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> Names(std::string_view list) {
  const auto names = ExpandHostlist(list);
  EXPECT_TRUE(names) << list << ": " << names.error().message;
  return names.value_or(std::vector<std::string>());
}

std::string Refusal(std::string_view list) {
  const auto names = ExpandHostlist(list);
  EXPECT_FALSE(names) << list;
  return names ? "" : names.error().message;
}

TEST(Hostlist, KeepsLeadingZerosAndOrder) {
  EXPECT_THAT(Names("node[008-010,3],login1"),
              ElementsAre("node008", "node009", "node010", "node3", "login1"));
}

TEST(Hostlist, MultipliesSeveralBracketsOfOneName) {
  EXPECT_THAT(Names("r[1-2]n[01-02]-ib"), ElementsAre("r1n01-ib", "r1n02-ib", "r2n01-ib", "r2n02-ib"));
}

TEST(Hostlist, GrowsPastItsWidth) {
  EXPECT_THAT(Names("n[9-11]"), ElementsAre("n9", "n10", "n11"));
}

TEST(Hostlist, RefusesABombByName) {
  EXPECT_THAT(Refusal("n[0-999999999]"), HasSubstr("`n[0-999999999]` makes it more than 262144 names"));
  EXPECT_THAT(Refusal("n[0-9999][0-9999][0-9999][0-9999]"), HasSubstr("more than 262144 names"));
  EXPECT_THAT(Refusal("a,n[1-262144]"), HasSubstr("more than 262144 names"));
  EXPECT_EQ(ExpandHostlist("n[1-4]", 3).error().code, base::Code::kTooLarge);
  EXPECT_EQ(Names("n[1-262144]").size(), kMaxHosts);
}

TEST(Hostlist, NamesWhatIsWrong) {
  EXPECT_THAT(Refusal("n[1-"), HasSubstr("has a `[` without its `]`"));
  EXPECT_THAT(Refusal("n1]"), HasSubstr("has a `]` without its `[`"));
  EXPECT_THAT(Refusal("n[3-1]"), HasSubstr("counts backwards in `3-1`"));
  EXPECT_THAT(Refusal("n[a-b]"), HasSubstr("has `a-b` where a number"));
  EXPECT_THAT(Refusal("n[]"), HasSubstr("where a number"));
  EXPECT_THAT(Refusal("a,,b"), HasSubstr("a name in the list is empty"));
  EXPECT_THAT(Refusal("a b"), HasSubstr("has a blank"));
  EXPECT_THAT(Refusal("n[1-99999999999999999999]"), HasSubstr("at most 9 digits"));
}

}  // namespace
}  // namespace heddle::formats
