#include "extender/child_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/extender/pod_words.h"

namespace heddle::extender {
namespace {

using kube::Json;
using kube::ObjectPtr;
using testing::ElementsAre;
using testing::IsEmpty;

const GangKey kGang{"train", "set-uid", 0};

// A Job of the JobSet, and which of its indexes it says to be completed.
Json Job(const char* completed, const char* attempt = "0", const char* owner = "JobSet") {
  Json job = test::IndexedJob(2);
  job["metadata"]["labels"] = {{jobset::kAttempt, attempt}};
  job["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", jobset::kApiVersion},
                                                     {"kind", owner},
                                                     {"name", "set"},
                                                     {"uid", "set-uid"},
                                                     {"controller", true}}});
  job["status"] = {{"active", 1}};
  if (*completed != '\0') job["status"]["completedIndexes"] = completed;
  return job;
}

TEST(ChildJobs, TellsOfTheGangWhenOneOfItsJobsSaysThatAnotherPodIsDone) {
  ChildJobs jobs;
  const ObjectPtr none = test::Share(Job("")), one = test::Share(Job("0")), both = test::Share(Job("0-1"));
  EXPECT_THAT(jobs.Changed(nullptr, none), IsEmpty());
  EXPECT_THAT(jobs.DoneOf(kGang), IsEmpty());
  EXPECT_THAT(jobs.Changed(none, one), ElementsAre(kGang));
  EXPECT_THAT(jobs.DoneOf(kGang), ElementsAre(one));
  EXPECT_THAT(jobs.Changed(one, both), ElementsAre(kGang));
  Json moved = *both;
  moved["status"]["active"] = 0;
  const ObjectPtr after = test::Share(moved);
  EXPECT_THAT(jobs.Changed(both, after), IsEmpty()) << "pods come and go, and the gang hears of each";
  EXPECT_THAT(jobs.DoneOf(kGang), ElementsAre(after));
  EXPECT_THAT(jobs.Changed(after, nullptr), ElementsAre(kGang));
  EXPECT_THAT(jobs.DoneOf(kGang), IsEmpty());
}

TEST(ChildJobs, OfOneAttemptSayNothingOfTheNext) {
  ChildJobs jobs;
  const ObjectPtr before = test::Share(Job("0-1"));
  const GangKey next{"train", "set-uid", 1};
  ASSERT_THAT(jobs.Changed(nullptr, before), ElementsAre(kGang));
  EXPECT_THAT(jobs.DoneOf(next), IsEmpty());
  // The Job of the next attempt has the same name.
  const ObjectPtr anew = test::Share(Job("0", "1"));
  EXPECT_THAT(jobs.Changed(before, anew), ElementsAre(kGang, next));
  EXPECT_THAT(jobs.DoneOf(kGang), IsEmpty());
  EXPECT_THAT(jobs.DoneOf(next), ElementsAre(anew));
}

TEST(ChildJobs, AJobThatIsBeingDeletedSaysNothingAnyMore) {
  ChildJobs jobs;
  const ObjectPtr before = test::Share(Job("0-1"));
  Json leaving = *before;
  leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  ASSERT_THAT(jobs.Changed(nullptr, before), ElementsAre(kGang));
  EXPECT_THAT(jobs.Changed(before, test::Share(leaving)), ElementsAre(kGang));
  EXPECT_THAT(jobs.DoneOf(kGang), IsEmpty());
}

TEST(ChildJobs, AreThoseOfAJobSetAlone) {
  ChildJobs jobs;
  EXPECT_THAT(jobs.Changed(nullptr, test::Share(Job("0-1", "0", "CronJob"))), IsEmpty());
  Json set = Job("0-1");
  set["kind"] = "JobSet";
  EXPECT_THAT(jobs.Changed(nullptr, test::Share(set)), IsEmpty());
  EXPECT_THAT(jobs.DoneOf(kGang), IsEmpty());
}

}  // namespace
}  // namespace heddle::extender
