#include "cli/release.h"

#include <gmock/gmock.h>

#include <functional>

#include "kube/suspend_switch.h"
#include "tests/unit/cli/stage.h"

namespace heddle::cli {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;

const kube::Resource kReplicaSets{"apps", "v1", "replicasets", "ReplicaSet", true};
const kube::Resource kBindings{"admissionregistration.k8s.io", "v1", "mutatingadmissionpolicybindings",
                               "MutatingAdmissionPolicyBinding", false};

class ReleaseTest : public Stage {
 protected:
  ReleaseTest() {
    clock.set_auto_advance(true);
    server.Serve(kBindings);
    server.Serve(kReplicaSets);
    // What controllers do: a suspended owner's pods go, unless this test wants them to stay.
    server.Intercept([this](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
      if (pods_go_ && request.method == "PATCH" &&
          request.body.find("\"suspend\":true") != std::string::npos) {
        for (const Json& pod : server.All(kube::kPods)) {
          if (!pod["spec"].contains("nodeName")) server.Remove(kube::kPods, kube::KeyOf(pod));
        }
      }
      if (gated_again_ > 0 && request.method == "PATCH" &&
          request.body.find("\"suspend\":false") != std::string::npos) {
        --gated_again_;
        AddGated("llama-again", JobNow("llama"));
        if (one_runs_) AddRunning("llama-runs", JobNow("llama"));
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
  // As a lone pod with a GPU, and one of a gang between its gate and its node.
  Json AddPending(const std::string& name, const Json& owner) {
    Json pod = AddGated(name, owner);
    return server.Edit(kube::kPods, kube::KeyOf(pod), [](Json& one) {
      one["spec"].erase("schedulingGates");
      one["status"]["phase"] = "Pending";
    });
  }
  // What a Deployment makes; "" = its template names no scheduler.
  Json ReplicaSet(const std::string& name, const std::string& scheduler) {
    Json set = kube::NewObject(kReplicaSets, {"train", name});
    set["spec"]["template"]["spec"]["containers"] = Json::array({{{"name", "serve"}}});
    if (!scheduler.empty()) set["spec"]["template"]["spec"]["schedulerName"] = scheduler;
    return Stored(kReplicaSets, set);
  }
  static Json Workers() {
    return {{"apiVersion", "apps/v1"},
            {"kind", "StatefulSet"},
            {"metadata", {{"name", "serve"}, {"namespace", "train"}, {"uid", "workers"}}}};
  }
  void PutInGroup(const Json& pod, const std::string& group, const std::string& worker) {
    server.Edit(kube::kPods, kube::KeyOf(pod), [&](Json& one) {
      one["metadata"]["labels"] = {{"leaderworkerset.sigs.k8s.io/name", "serve"},
                                   {"leaderworkerset.sigs.k8s.io/group-index", group},
                                   {"leaderworkerset.sigs.k8s.io/worker-index", worker}};
    });
  }
  Json JobSet(const std::string& name) {
    return Stored(job_sets_, kube::NewObject(job_sets_, {"train", name}));
  }
  Json JobOf(const std::string& name, const Json& set) {
    return Edited(name, [&](Json& job) {
      job["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", job_sets_.ApiVersion()},
                                                         {"kind", "JobSet"},
                                                         {"name", kube::Name(set)},
                                                         {"uid", kube::Uid(set)},
                                                         {"controller", true}}});
    });
  }
  Json Edited(const std::string& job, const std::function<void(Json&)>& change) {
    Job(job);
    server.Edit(kube::kJobs, {"train", job}, change);
    return JobNow(job);
  }
  // As `kubectl heddle prepare` leaves it.
  Json Prepared(const std::string& name) {
    return Edited(name, [](Json& job) {
      Json& pod = job["spec"]["template"]["spec"];
      pod["containers"] = Json::array({{{"name", "main"}}});
      pod["schedulerName"] = "heddle";
      pod["schedulingGates"] = Json::array({{{"name", std::string(keys::kGangGate)}}});
    });
  }
  Json Stored(const kube::Resource& resource, const Json& object) {
    Json stored = server.Put(resource, object);
    stored["apiVersion"] = resource.ApiVersion();
    stored["kind"] = resource.kind;
    return stored;
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

  const kube::Resource job_sets_ = kube::SuspendSwitchOf("jobset.x-k8s.io/v1alpha2", "JobSet")->resource;
  const kube::Resource train_jobs_ =
      kube::SuspendSwitchOf("trainer.kubeflow.org/v1alpha1", "TrainJob")->resource;
  bool pods_go_ = true;
  bool one_runs_ = false;  // beside what is gated again
  int gated_again_ = 0;    // so often a policy that is gone still gates what a resumed Job makes
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
  EXPECT_THAT(output.out, HasSubstr("waits for Heddle again each time: is it still installed?"));
}

TEST_F(ReleaseTest, SaysSoWhereOnlyAPartIsGatedAgainAndTheRestRuns) {
  AddGated("llama-0", Job("llama"));
  gated_again_ = 1;
  one_runs_ = true;
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kFailed);
  EXPECT_THAT(output.out, HasSubstr("failed: 1 of its pods run"));
  EXPECT_EQ(server.writes().size(), 2u) << "what runs is not suspended";
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

TEST_F(ReleaseTest, TakesNoPodForOneThatRunsWhichHasEnded) {
  const Json job = Job("llama");
  for (const char* phase : {"Failed", "Succeeded"}) {
    const Json pod = AddRunning(std::string("llama-") + (*phase == 'F' ? "0" : "1"), job);
    server.Edit(kube::kPods, kube::KeyOf(pod), [&](Json& one) { one["status"]["phase"] = phase; });
  }
  AddGated("llama-2", job);
  EXPECT_THAT(Run().out, ContainsRegex("Job train/llama +1 +suspended and resumed"));
}

TEST_F(ReleaseTest, TakesNoJobForAPartOfAnotherWhoseNameItBeginsWith) {
  AddGated("train-0", Job("train"));
  AddRunning("train-2-0", Job("train-2"));
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kOk) << output.out;
  EXPECT_THAT(output.out, ContainsRegex("Job train/train +1 +suspended and resumed"));
  EXPECT_FALSE(JobNow("train-2")["spec"].contains("suspend"));
  EXPECT_TRUE(server.Find(kube::kPods, {"train", "train-2-0"}));
}

TEST_F(ReleaseTest, TellsTheJobsOfAJobSetByTheirOwnerAndNotByTheirName) {
  server.Serve(job_sets_);
  const Json set = JobSet("llama");
  AddGated("held", JobOf("llama-workers-0", set));
  AddRunning("another", JobOf("llama-2-workers-0", JobSet("llama-2")));
  AddRunning("alone", Job("llama-3"));
  EXPECT_THAT(Run({.all = true, .dry_run = true}).out,
              ContainsRegex("JobSet train/llama +1 +suspend and resume"));
  AddRunning("its-own", JobOf("called-otherwise", set));
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kRefused);
  EXPECT_THAT(output.out, ContainsRegex("JobSet train/llama +1 +left: 1 of its pods run"));
  EXPECT_THAT(server.writes(), IsEmpty());
}

TEST_F(ReleaseTest, SuspendsNothingWhereItCannotTellWhoseAPodIs) {
  server.Serve(job_sets_);
  AddGated("held", JobOf("llama-workers-0", JobSet("llama")));
  AddRunning("another", Job("other"));
  server.FailNext({.method = "GET", .path_contains = "jobs/other", .status = 403});
  const Output output = Run();
  EXPECT_NE(output.exit_code, Output::kOk);
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
  server.Serve(job_sets_);
  AddGated("llama-workers-0-0", JobOf("llama-workers-0", JobSet("llama")));
  EXPECT_THAT(Run().out, ContainsRegex("JobSet train/llama +1 +suspended and resumed"));
  EXPECT_FALSE(JobNow("llama-workers-0")["spec"].contains("suspend"));
  EXPECT_EQ(kube::BoolAt(*server.Find(job_sets_, {"train", "llama"}), {"spec", "suspend"}), false);
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
  AddPending("let-go", nullptr);
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kRefused);
  EXPECT_THAT(output.out, ContainsRegex("Pod train/lone +1 +left: nobody makes it again"));
  EXPECT_THAT(output.out, ContainsRegex("Pod train/let-go +1 +left: nobody makes it again"));
  EXPECT_EQ(server.All(kube::kPods).size(), 2u);
}

TEST_F(ReleaseTest, HandsBackALonePodThatWaitsForTheSchedulerWithoutAGate) {
  const Json set = ReplicaSet("serve-5d", "");
  AddPending("serve-5d-a", set);
  AddRunning("serve-5d-b", set);
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kOk) << output.out << output.err;
  EXPECT_THAT(output.out, ContainsRegex("Pod train/serve-5d-a +1 +deleted; its controller makes another"));
  ASSERT_EQ(server.All(kube::kPods).size(), 1u) << "what runs goes on";
  EXPECT_TRUE(server.Find(kube::kPods, {"train", "serve-5d-b"}));
}

TEST_F(ReleaseTest, HandsBackAGangThatWasLetGoAndNotYetBound) {
  const Json job = Job("llama");
  AddPending("llama-0", job);
  AddGated("llama-1", job);
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kOk) << output.out << output.err;
  EXPECT_THAT(output.out, ContainsRegex("Job train/llama +2 +suspended and resumed"));
  EXPECT_THAT(server.All(kube::kPods), IsEmpty());
}

TEST_F(ReleaseTest, LeavesAlonePodsThatAnotherSchedulerWillPlaceOrThatHaveEnded) {
  const Json set = ReplicaSet("serve-5d", "");
  const Json theirs = AddPending("theirs", set);
  server.Edit(kube::kPods, kube::KeyOf(theirs), [](Json& one) { one["spec"]["schedulerName"] = "volcano"; });
  const Json ended = AddPending("ended", set);
  server.Edit(kube::kPods, kube::KeyOf(ended), [](Json& one) { one["status"]["phase"] = "Failed"; });
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kOk);
  EXPECT_THAT(output.out, HasSubstr("No pod waits at Heddle's gate or for its scheduler"));
  EXPECT_THAT(server.writes(), IsEmpty());
}

TEST_F(ReleaseTest, DeletesNoPodThatWasBoundSinceItWasRead) {
  AddPending("serve-5d-a", ReplicaSet("serve-5d", ""));
  server.Intercept([this](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
    if (request.method == "DELETE") {
      server.Edit(kube::kPods, {"train", "serve-5d-a"}, [](Json& one) { one["spec"]["nodeName"] = "gpu-1"; });
    }
    return std::nullopt;
  });
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kFailed) << "who tries again finds nothing held";
  EXPECT_TRUE(server.Find(kube::kPods, {"train", "serve-5d-a"}));
}

TEST_F(ReleaseTest, SuspendsNoJobThatWasBoundWhileOthersWereHandedBack) {
  AddGated("bert-0", Job("bert"));
  AddPending("llama-0", Job("llama"));
  server.Intercept([this](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
    if (request.method == "PATCH" && request.path.find("jobs/bert") != std::string::npos &&
        server.Find(kube::kPods, {"train", "bert-0"})) {
      server.Remove(kube::kPods, {"train", "bert-0"});
      server.Edit(kube::kPods, {"train", "llama-0"}, [](Json& one) { one["spec"]["nodeName"] = "gpu-1"; });
    }
    return std::nullopt;
  });
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kFailed);
  EXPECT_THAT(output.out, HasSubstr("failed: train/llama-0 of it runs since: when its work is saved"));
  EXPECT_THAT(output.out, ContainsRegex("Job train/bert +1 +suspended and resumed"));
  EXPECT_FALSE(JobNow("llama")["spec"].contains("suspend"));
  EXPECT_TRUE(server.Find(kube::kPods, {"train", "llama-0"}));
}

TEST_F(ReleaseTest, DeletesNoPodWhoseControllerMayNotMakeItAgain) {
  AddGated("step-1", {{"apiVersion", "argoproj.io/v1alpha1"},
                      {"kind", "Workflow"},
                      {"metadata", {{"name", "tune"}, {"namespace", "train"}, {"uid", "flow"}}}});
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kRefused);
  EXPECT_THAT(output.out,
              HasSubstr("left: whether Workflow tune makes it again is not known: delete the pod, or"));
  EXPECT_THAT(server.writes(), IsEmpty());
}

TEST_F(ReleaseTest, DeletesNoPodOfALeaderWorkerSetWhoseGroupRunsInPart) {
  for (const char* waits :
       {"0", "1"}) {  // the leader takes its workers with it, and by default each takes all
    const std::string runs = *waits == '0' ? "1" : "0";
    PutInGroup(AddPending(std::string("serve-0-") + waits, Workers()), "0", waits);
    PutInGroup(AddRunning("serve-0-" + runs, Workers()), "0", runs);
    const Output output = Run();
    EXPECT_EQ(output.exit_code, Output::kRefused);
    EXPECT_THAT(output.out, HasSubstr("left: pods of its group run, and would go with it: delete it when"));
    EXPECT_THAT(server.writes(), IsEmpty());
    for (const Json& pod : server.All(kube::kPods)) server.Remove(kube::kPods, kube::KeyOf(pod));
  }
}

TEST_F(ReleaseTest, DeletesThePodsOfALeaderWorkerSetsGroupWhereOnlyAnotherGroupRuns) {
  PutInGroup(AddPending("serve-0", Workers()), "0", "0");
  PutInGroup(AddRunning("serve-1", Workers()), "1", "0");
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kOk) << output.out;
  EXPECT_THAT(output.out, ContainsRegex("Pod train/serve-0 +1 +deleted; its controller makes another"));
  EXPECT_TRUE(server.Find(kube::kPods, {"train", "serve-1"}));
}

TEST_F(ReleaseTest, FailsNotForWhatALaterRoundHandedBack) {
  const Json set = ReplicaSet("serve-5d", "");
  AddPending("serve-5d-a", set);
  AddPending("serve-5d-b", set);
  server.FailNext({.method = "DELETE", .path_contains = "pods/serve-5d-a", .status = 403});
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kOk) << output.out;
  EXPECT_THAT(server.All(kube::kPods), IsEmpty());
}

TEST_F(ReleaseTest, LeavesAtOnceWhatWasPrepared) {
  AddGated("llama-0", Prepared("llama"));
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kRefused);
  EXPECT_THAT(
      output.out,
      HasSubstr("left: the pod template of Job train/llama names Heddle: delete what you created, and "
                "create it from the manifest that was not prepared"));
  EXPECT_THAT(server.writes(), IsEmpty());
}

TEST_F(ReleaseTest, LeavesAJobSetOneOfWhoseJobsWasMadeFromAPreparedTemplate) {
  server.Serve(job_sets_);
  const Json set = JobSet("llama");
  Prepared("llama-workers-0");
  AddGated("a", JobOf("llama-drivers-0", set));
  Json job = JobNow("llama-workers-0");
  server.Edit(kube::kJobs, {"train", "llama-workers-0"}, [&](Json& one) {
    one["metadata"]["ownerReferences"] = JobNow("llama-drivers-0")["metadata"]["ownerReferences"];
  });
  AddGated("b", job);
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kRefused);
  EXPECT_THAT(output.out,
              ContainsRegex("JobSet train/llama +2 +left: the pod template of Job train/llama-workers-0"));
  EXPECT_THAT(server.writes(), IsEmpty());
}

TEST_F(ReleaseTest, LeavesAPodWhoseControllerMakesItForHeddleAgain) {
  AddPending("serve-5d-a", ReplicaSet("serve-5d", "heddle"));
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kRefused);
  EXPECT_THAT(output.out, HasSubstr("left: the pod template of ReplicaSet train/serve-5d names Heddle"));
  EXPECT_THAT(server.writes(), IsEmpty());
}

TEST_F(ReleaseTest, DoesNotResumeWhatMadeRoomWhereItsNewPodsWouldWait) {
  Prepared("llama");
  server.Edit(kube::kJobs, {"train", "llama"}, [](Json& one) {
    one["spec"]["suspend"] = true;
    one["metadata"]["annotations"][std::string(keys::kPreemptedBy)] = "train/urgent";
  });
  EXPECT_THAT(Run().out,
              ContainsRegex("Job train/llama +0 +left: the pod template of Job train/llama names"));
  EXPECT_THAT(server.writes(), IsEmpty());
}

TEST_F(ReleaseTest, DoesNotResumeATrainJobWhoseJobSetNamesHeddle) {
  server.Serve(job_sets_);
  server.Serve(train_jobs_);
  Json train = kube::NewObject(train_jobs_, {"train", "llama"});
  train["spec"]["suspend"] = true;
  train["metadata"]["annotations"][std::string(keys::kPreemptedBy)] = "train/urgent";
  train = Stored(train_jobs_, train);
  Json set = kube::NewObject(job_sets_, {"train", "llama"});
  set["spec"]["suspend"] = true;
  set["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", train_jobs_.ApiVersion()},
                                                     {"kind", "TrainJob"},
                                                     {"name", "llama"},
                                                     {"uid", kube::Uid(train)},
                                                     {"controller", true}}});
  Json& pod = set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"];
  pod["containers"] = Json::array({{{"name", "main"}}});
  pod["schedulerName"] = "heddle";
  Stored(job_sets_, set);
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kRefused);
  EXPECT_THAT(output.out,
              ContainsRegex("TrainJob train/llama +0 +left: the pod template of JobSet train/llama names"));
  EXPECT_THAT(server.writes(), IsEmpty());
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

TEST_F(ReleaseTest, DoesNotResumeWhatAPersonSuspendedWhilePodsOfItAreStillThere) {
  AddGated("llama-0", Edited("llama", [](Json& one) { one["spec"]["suspend"] = true; }));
  EXPECT_EQ(Run().exit_code, Output::kOk);
  EXPECT_THAT(server.writes(), IsEmpty());
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
