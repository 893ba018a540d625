#include "crds/label_value.h"

#include <gtest/gtest.h>

#include <string>

namespace heddle::crds {
namespace {

bool Valid(const std::string& value) {
  if (value.size() > 63) return false;
  if (value.empty()) return true;
  const auto alnum = [](char c) { return isalnum(static_cast<unsigned char>(c)) != 0; };
  for (const char c : value) {
    if (!alnum(c) && c != '-' && c != '_' && c != '.') return false;
  }
  return alnum(value.front()) && alnum(value.back());
}

TEST(LabelValue, KeepsAValueThatIsValidAsItIs) {
  EXPECT_EQ(IdentityLabel("3f2a91c0-7d11-4a5e-9a3b-0c1d2e3f4a5b.1"),
            "3f2a91c0-7d11-4a5e-9a3b-0c1d2e3f4a5b.1");
  EXPECT_EQ(ReadableLabel("su-0"), "su-0");
  EXPECT_EQ(IdentityLabel(""), "");
}

TEST(LabelValue, IsToldFromWhatNoLabelCanHave) {
  const std::string longest(63, 'a'), longer(64, 'a');
  for (const std::string value : {"a", "B-2", "su_0.r", "0", longest.c_str()}) {
    EXPECT_TRUE(IsLabelValue(value)) << value;
    EXPECT_TRUE(IsLabelKey("example.com/" + value)) << value;
  }
  for (const std::string value : {"", "-a", "a.", "a b", "a/b", "\u00b5", longer.c_str()})
    EXPECT_FALSE(IsLabelValue(value)) << value;
  EXPECT_TRUE(IsLabelKey("pool"));
  for (const char* key : {"", "/pool", "Example.com/pool", "example.com/", "-example.com/pool", "a/b/c"})
    EXPECT_FALSE(IsLabelKey(key)) << key;
}

TEST(LabelValue, TurnsAProductNameIntoOneWord) {
  EXPECT_EQ(ReadableLabel("DGX H100"), "DGX-H100");
}

TEST(LabelValue, KeepsDifferentIdentitiesApartThatLookAlikeOnceCleaned) {
  EXPECT_NE(IdentityLabel("rack/1"), IdentityLabel("rack-1"));
  EXPECT_NE(IdentityLabel("rack/1"), IdentityLabel("rack 1"));
  EXPECT_EQ(IdentityLabel("rack/1"), IdentityLabel("rack/1"));
}

TEST(LabelValue, CutsALongValueAndTellsItsTwinsApartByAHash) {
  const std::string a = IdentityLabel(std::string(80, 'a') + "1");
  const std::string b = IdentityLabel(std::string(80, 'a') + "2");
  EXPECT_TRUE(Valid(a)) << a;
  EXPECT_NE(a, b);
  EXPECT_LE(ReadableLabel(std::string(500, 'z')).size(), 63U);
}

TEST(LabelValue, IsValidWhateverTheTextHolds) {
  for (const char* text : {"-", "...", "\xff\xfe", "ü", "-a-", "_x_", "a\nb", "/", " ", "💥 rack"}) {
    EXPECT_TRUE(Valid(IdentityLabel(text))) << text;
    EXPECT_TRUE(Valid(ReadableLabel(text))) << text;
    EXPECT_FALSE(IdentityLabel(text).empty()) << text;
  }
}

TEST(LabelValue, MakesLowerCaseDnsNames) {
  EXPECT_EQ(DnsName("berlin"), "berlin");
  EXPECT_NE(DnsName("Berlin"), DnsName("berlin"));
  EXPECT_EQ(DnsName("Berlin").find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string::npos);
}

}  // namespace
}  // namespace heddle::crds
