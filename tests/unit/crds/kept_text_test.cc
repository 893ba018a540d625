#include "crds/kept_text.h"

#include <gmock/gmock.h>

#include "tests/unit/crds/samples.h"

namespace heddle::crds {
namespace {

std::string Times(int count, std::string_view text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

TEST(KeptText, IsCutBetweenCharactersOfSeveralBytes) {
  EXPECT_EQ(KeptText(Times(4, "ß"), 4), Times(4, "ß"));
  EXPECT_EQ(KeptText(Times(5, "ß"), 4), Times(3, "ß") + "…");
  EXPECT_EQ(KeptText("rail", 3), "ra…");
  EXPECT_EQ(KeptText("", 3), "");
}

TEST(KeptText, IsTheSameWhenItIsKeptAgain) {
  for (const std::string& text :
       {Times(600, "x"), Times(600, "ß"), Times(600, "\xff"), Times(511, "x") + "\xe2\x80"}) {
    const std::string once = KeptText(text, kMaxKeptReason);
    EXPECT_EQ(KeptText(once, kMaxKeptReason), once);
  }
}

TEST(KeptText, OfAReasonIsReadBackAsItWasDecided) {
  const std::string reason = KeptText(Times(600, "ß"), kMaxKeptReason);
  NodeTopology object = samples::DgxH100();
  object.spec.devices = samples::FullDeviceWishes();
  object.spec.devices[1].reason = reason;
  object.spec.lossless = samples::FullWishes();
  object.spec.lossless[1].reason = reason;
  const auto back = NodeTopologyFromJson(ToJson(object));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->spec.devices[1].reason, reason);
  EXPECT_EQ(back->spec.lossless[1].reason, reason);
}

}  // namespace
}  // namespace heddle::crds
