#include "crds/policy_edition.h"

#include <gtest/gtest.h>

#include "crds/node_devices.h"
#include "crds/node_lossless.h"

namespace heddle::crds {
namespace {

TEST(PolicyEditions, AreThoseOfTheFirstPolicyOfAnEntry) {
  LosslessWish wish;
  wish.policies = {"roce", "storage"};
  wish.generation = 3;
  wish.policy_uid = "2f0e6a3c";
  EXPECT_EQ(EditionOf(wish), (PolicyEdition{"roce", 3, "2f0e6a3c"}));
  EXPECT_EQ(EditionOf(DeviceWish{}), PolicyEdition{}) << "an entry of nobody's policy";
}

TEST(PolicyEditions, AreOthersOfAPolicyThatWasMadeAnew) {
  const PolicyEdition told{"roce", 1, "2f0e6a3c"};
  EXPECT_NE(told, (PolicyEdition{"roce", 1, "5a7d2f0a"})) << "it counts its generations from 1 again";
  EXPECT_NE(told, (PolicyEdition{"roce", 1, ""})) << "who says no UID does not say which of both";
  EXPECT_NE(told, (PolicyEdition{"roce", 2, "2f0e6a3c"}));
  EXPECT_NE(told, (PolicyEdition{"other", 1, "2f0e6a3c"}));
}

}  // namespace
}  // namespace heddle::crds
