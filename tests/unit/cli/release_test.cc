#include "cli/release.h"

#include <gmock/gmock.h>

#include "kube/suspend_switch.h"
#include "tests/unit/cli/stage.h"

namespace heddle::cli {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;

const kube::Resource kBindings{"admissionregistration.k8s.io", "v1", "mutatingadmissionpolicybindings",
                               "MutatingAdmissionPolicyBinding", false};

class ReleaseTest : public Stage {
 protected:
  ReleaseTest() {
    clock.set_auto_advance(true);
    server.Serve(kBindings);
    // What controllers do: a suspended owner's pods go, unless this test wants them to stay.
    server.Intercept([this](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
      if (pods_go_ && request.method == "PATCH" &&
          request.body.find("\"suspend\":true") != std::string::npos) {
        for (const Json& pod : server.All(kube::kPods)) server.Remove(kube::kPods, kube::KeyOf(pod));
      }
      if (gated_again_ > 0 && request.method == "PATCH" &&
          request.body.find("\"suspend\":false") != std::string::npos) {
        --gated_again_;
        AddGated("llama-again", JobNow("llama"));
      }
      return std::nullopt;
    });
  }

  Json AddGated(const std::string& name, const Json& owner) {
    Json pod = kube::NewObject(kube::kPods, {"train", name});
    if (!owner.is_null()) {
      pod["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", owner.at("apiVersion")},
                                                         {"kind", owner.at("kind")},
                                                         {"name", kube::Name(owner)},
                                                         {"uid", kube::Uid(owner)},
                                                         {"controller", true}}});
    }
    pod["spec"]["schedulingGates"] = Json::array({{{"name", std::string(keys::kGangGate)}}});
    pod["spec"]["schedulerName"] = "heddle";
    return server.Put(kube::kPods, pod);
  }
  Json AddRunning(const std::string& name, const Json& owner) {
    Json pod = AddGated(name, owner);
    return server.Edit(kube::kPods, kube::KeyOf(pod), [](Json& one) {
      one["spec"].erase("schedulingGates");
      one["spec"]["nodeName"] = "gpu-1";
    });
  }
  Json Job(const std::string& name) {
    Json job = AddJob(name, 2, "tp=8,dp=2");
    job["apiVersion"] = "batch/v1";
    job["kind"] = "Job";
    return job;
  }
  void PutInForce() { server.Put(kBindings, kube::NewObject(kBindings, {"", "heddle-gang"})); }
  Json JobNow(const std::string& name) {
    Json job = *server.Find(kube::kJobs, {"train", name});
    job["apiVersion"] = "batch/v1";
    job["kind"] = "Job";
    return job;
  }
  Output Run(ReleaseOptions options = {.all = true}, Format format = Format::kText) {
    return RunRelease(client, clock, options, {.format = format}, {});
  }

  bool pods_go_ = true;
  int gated_again_ = 0;  // so often a policy that is gone still gates what a resumed Job makes
};

TEST_F(ReleaseTest, SuspendsAndResumesAJobWhosePodsAreAllHeld) {
  const Json job = Job("llama");
  AddGated("llama-0", job);
  AddGated("llama-1", job);
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kOk) << output.out << output.err;
  EXPECT_THAT(output.out, ContainsRegex("Job train/llama +2 +suspended and resumed"));
  EXPECT_FALSE(kube::IsSuspended(JobNow("llama")));
  EXPECT_THAT(server.All(kube::kPods), IsEmpty());
  EXPECT_EQ(server.writes().size(), 2u) << "one switch each way, and no pod deleted by us";
}

TEST_F(ReleaseTest, DoesItAgainWhereAPolicyThatHasJustGoneGatedTheNewPods) {
  AddGated("llama-0", Job("llama"));
  gated_again_ = 2;
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kOk) << output.out;
  EXPECT_EQ(server.writes().size(), 6u);
  EXPECT_THAT(server.All(kube::kPods), IsEmpty());
  EXPECT_FALSE(kube::IsSuspended(JobNow("llama")));
}

TEST_F(ReleaseTest, GivesUpWhereEverythingIsGatedAgain) {
  AddGated("llama-0", Job("llama"));
  gated_again_ = 100;
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kFailed);
  EXPECT_THAT(output.out, HasSubstr("gated again each time: is Heddle still installed?"));
}

TEST_F(ReleaseTest, SaysWhereAnOwnersPodsDoNotGo) {
  AddGated("llama-0", Job("llama"));
  pods_go_ = false;
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kFailed);
  EXPECT_THAT(output.out, HasSubstr("is suspended, but its pods are still there"));
}

TEST_F(ReleaseTest, LeavesAGangOfWhichPodsRunAndSaysWhatToDo) {
  const Json job = Job("llama");
  AddRunning("llama-0", job);
  AddGated("llama-1", job);
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kRefused);
  EXPECT_THAT(output.out, HasSubstr("left: 1 of its pods run: when their work is saved, suspend"));
  EXPECT_THAT(server.writes(), IsEmpty());
}

TEST_F(ReleaseTest, ChangesNothingWhileHeddleIsInForce) {
  PutInForce();
  AddGated("llama-0", Job("llama"));
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kRefused);
  EXPECT_THAT(output.err, HasSubstr("helm uninstall heddle"));
  EXPECT_THAT(output.out, HasSubstr("suspend and resume"));
  EXPECT_THAT(server.writes(), IsEmpty());
}

TEST_F(ReleaseTest, ShowsOnADryRunWhatItWouldDo) {
  AddGated("llama-0", Job("llama"));
  const Output output = Run({.all = true, .dry_run = true});
  EXPECT_EQ(output.exit_code, Output::kOk);
  EXPECT_THAT(output.out, HasSubstr("TO DO"));
  EXPECT_THAT(server.writes(), IsEmpty());
}

TEST_F(ReleaseTest, SwitchesTheOutermostOwnerThatHasASwitch) {
  const kube::Resource job_sets = kube::SuspendSwitches()[1].resource;
  ASSERT_EQ(job_sets.kind, "JobSet");
  server.Serve(job_sets);
  Json set = server.Put(job_sets, kube::NewObject(job_sets, {"train", "llama"}));
  Json job = Job("llama-workers-0");
  job = server.Edit(kube::kJobs, kube::KeyOf(job), [&](Json& one) {
    one["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", job_sets.ApiVersion()},
                                                       {"kind", "JobSet"},
                                                       {"name", "llama"},
                                                       {"uid", kube::Uid(set)},
                                                       {"controller", true}}});
  });
  job["apiVersion"] = "batch/v1";
  job["kind"] = "Job";
  AddGated("llama-workers-0-0", job);
  EXPECT_THAT(Run().out, ContainsRegex("JobSet train/llama +1 +suspended and resumed"));
  EXPECT_FALSE(JobNow("llama-workers-0")["spec"].contains("suspend"));
  EXPECT_EQ(kube::BoolAt(*server.Find(job_sets, {"train", "llama"}), {"spec", "suspend"}), false);
}

TEST_F(ReleaseTest, DeletesAPodThatItsControllerMakesAgain) {
  AddGated("serve-0", {{"apiVersion", "apps/v1"},
                       {"kind", "StatefulSet"},
                       {"metadata", {{"name", "serve"}, {"namespace", "train"}, {"uid", "set"}}}});
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kOk) << output.out;
  EXPECT_THAT(output.out, HasSubstr("deleted; its controller makes another"));
  EXPECT_THAT(server.All(kube::kPods), IsEmpty());
}

TEST_F(ReleaseTest, LeavesAPodThatNobodyMakesAgain) {
  AddGated("lone", nullptr);
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kRefused);
  EXPECT_THAT(output.out, HasSubstr("nobody makes it again"));
  EXPECT_EQ(server.All(kube::kPods).size(), 1u);
}

TEST_F(ReleaseTest, ResumesWhatMadeRoomForOthers) {
  const Json job = Job("llama");
  server.Edit(kube::kJobs, kube::KeyOf(job), [](Json& one) {
    one["spec"]["suspend"] = true;
    one["metadata"]["annotations"][std::string(keys::kPreemptedBy)] = "train/urgent";
  });
  EXPECT_THAT(Run().out, ContainsRegex("Job train/llama +0 +resumed"));
  EXPECT_FALSE(kube::IsSuspended(JobNow("llama")));
  EXPECT_FALSE(kube::Annotation(JobNow("llama"), keys::kPreemptedBy));
}

TEST_F(ReleaseTest, ResumesWhatAnEarlierOneLeftSuspended) {
  AddGated("llama-0", Job("llama"));
  pods_go_ = false;  // so the first one ends between the two steps, as by a deadline
  EXPECT_EQ(Run().exit_code, Output::kFailed);
  ASSERT_TRUE(kube::IsSuspended(JobNow("llama")));
  server.Remove(kube::kPods, {"train", "llama-0"});
  const Output again = Run();
  EXPECT_EQ(again.exit_code, Output::kOk) << again.out;
  EXPECT_THAT(again.out, ContainsRegex("Job train/llama +0 +resumed"));
  EXPECT_FALSE(kube::IsSuspended(JobNow("llama")));
  EXPECT_FALSE(kube::Annotation(JobNow("llama"), keys::kPreemptedBy));
}

TEST_F(ReleaseTest, LeavesAloneWhatAPersonSuspended) {
  const Json job = Job("llama");
  server.Edit(kube::kJobs, kube::KeyOf(job), [](Json& one) { one["spec"]["suspend"] = true; });
  EXPECT_THAT(Run().out, HasSubstr("No pod waits at Heddle's gate"));
  EXPECT_TRUE(kube::IsSuspended(JobNow("llama")));
}

TEST_F(ReleaseTest, SaysWhatFailsAndGoesOnWithTheRest) {
  AddGated("bert-0", Job("bert"));
  AddGated("llama-0", Job("llama"));
  server.FailNext({.method = "PATCH", .path_contains = "jobs/bert", .status = 403});
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kFailed);
  EXPECT_THAT(output.out, HasSubstr("failed: suspend Job train/bert"));
  EXPECT_THAT(output.out, ContainsRegex("Job train/llama +1 +suspended and resumed"));
}

TEST_F(ReleaseTest, IsAlsoForScripts) {
  AddGated("llama-0", Job("llama"));
  const Json said = Json::parse(Run({.all = true}, Format::kJson).out);
  ASSERT_EQ(said["items"].size(), 1u);
  EXPECT_EQ(said["items"][0]["name"], "llama");
  EXPECT_EQ(said["items"][0]["pods"], 1);
  EXPECT_EQ(said["items"][0]["done"], true);
}

TEST_F(ReleaseTest, AsksForAllBeforeItTouchesEverything) {
  const Output output = Run({});
  EXPECT_EQ(output.exit_code, Output::kUsage);
  EXPECT_THAT(output.err, HasSubstr("--all"));
  EXPECT_THAT(server.requests(), IsEmpty());
}

}  // namespace
}  // namespace heddle::cli
