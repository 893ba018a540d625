#include "crds/pod_annotations.h"

#include <gmock/gmock.h>

#include "crds/keys.h"

namespace heddle::crds {
namespace {

TEST(UnknownAnnotation, NamesWhatMayBeMeantAndAllThatThereAre) {
  EXPECT_EQ(
      UnknownAnnotation("heddle.dev/paralelism"),
      "the annotation heddle.dev/paralelism is none of Heddle's; is heddle.dev/parallelism meant? It knows "
      "parallelism, model, require, prefer, wait, on-degraded, compute-domain, checkpoint, gang-size, "
      "gang-rank");
  for (const char* odd : {"heddle.dev/", "heddle.dev/colour-of-the-rack"})
    EXPECT_THAT(UnknownAnnotation(odd).value_or("none"),
                testing::StartsWith(std::string("the annotation ") + odd + " is none of Heddle's; it knows"));
  EXPECT_EQ(UnknownAnnotation(keys::kGangName),
            "heddle.dev/gang-name is a label of the pod, not an annotation");
}

TEST(UnknownAnnotation, IsNoneOfHeddlesOwnAndOfOthers) {
  for (const std::string_view name :
       {keys::kParallelism, keys::kModel, keys::kRequire, keys::kPrefer, keys::kWait, keys::kOnDegraded,
        keys::kComputeDomain, keys::kCheckpoint, keys::kGangSize, keys::kGangRank, keys::kRank, keys::kGpus,
        keys::kNics, keys::kGangUid, keys::kEpoch, keys::kNode, keys::kSubstitutes})
    EXPECT_EQ(UnknownAnnotation(name), std::nullopt) << name;
  for (const char* name : {"", "parallelism", "kueue.x-k8s.io/heddle.dev/modle", "heddle.devil/modle"})
    EXPECT_EQ(UnknownAnnotation(name), std::nullopt) << name;
}

}  // namespace
}  // namespace heddle::crds
