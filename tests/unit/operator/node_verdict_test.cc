#include "operator/node_verdict.h"

#include <gmock/gmock.h>

#include <string>

namespace heddle::operators {
namespace {

TEST(CableMessage, IsCutBetweenCharactersAndSaysSoAndNeverWithoutWhatToDo) {
  lossless::CableFinding finding;
  finding.sentence = std::string(482, 'x') + "µm of cable";  // µ is two bytes, and the cut comes between them
  finding.next = "take another";
  EXPECT_EQ(MessageOf(&finding), std::string(482, 'x') + "...; take another");
  finding.sentence.erase(0, 1);
  EXPECT_EQ(MessageOf(&finding), std::string(481, 'x') + "µ...; take another");
  finding.sentence = "short, in µs";
  EXPECT_EQ(MessageOf(&finding), "short, in µs; take another");
  EXPECT_EQ(MessageOf(nullptr), "");
}

}  // namespace
}  // namespace heddle::operators
