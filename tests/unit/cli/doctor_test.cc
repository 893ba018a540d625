#include "cli/doctor.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "base/version.h"
#include "cli/doctor_parts.h"
#include "crds/yaml.h"
#include "tests/unit/cli/golden.h"
#include "tests/unit/cli/stage.h"

namespace heddle::cli {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const base::WallTime kNow{std::chrono::sys_days{std::chrono::year(2026) / 11 / 23}};

Json Labelled(const std::string& ns, const std::string& name) {
  return {
      {"metadata",
       {{"namespace", ns},
        {"name", name},
        {"labels", {{"app.kubernetes.io/name", "heddle"}, {"app.kubernetes.io/version", base::kVersion}}}}}};
}
Json Named(const std::string& name) {
  return {{"metadata", {{"name", name}}}};
}
Json BindingOf(const std::string& policy) {
  Json binding = Labelled("", policy);
  binding["spec"] = {{"policyName", policy}, {"validationActions", Json::array({"Deny"})}};
  return binding;
}
Json Lease(const std::string& name, const std::string& holder, seconds ago, int duration = 15) {
  Json lease = Labelled("heddle-system", name);
  lease["spec"] = {{"holderIdentity", holder},
                   {"leaseDurationSeconds", duration},
                   {"renewTime", base::FormatMicroTime(kNow - ago)}};
  return lease;
}
Json Deployment(const std::string& ns, const std::string& name, const std::string& image, int ready = 2) {
  Json deployment = name.starts_with("heddle-") ? Labelled(ns, name) : Named(name);
  deployment["metadata"]["namespace"] = ns;
  deployment["spec"] = {{"replicas", 2},
                        {"template", {{"spec", {{"containers", Json::array({{{"image", image}}})}}}}}};
  deployment["status"] = {{"readyReplicas", ready}};
  return deployment;
}
Json GpuNode(const std::string& name) {
  Json node = Named(name);
  node["status"]["allocatable"] = {{"cpu", "8"}, {"nvidia.com/gpu", "8"}};
  return node;
}
Json Reporting(const std::string& name) {
  Json topology = Named(name);
  topology["status"] = {{"observedAt", base::FormatTime(kNow - hours(1))}, {"agentVersion", base::kVersion}};
  return topology;
}

// An installation as the chart makes it, on a cluster of three nodes.
DoctorReading Healthy() {
  DoctorReading reading;
  reading.ns = "heddle-system";
  reading.version = "v1.36.3";
  reading.admission = Json{{"resources", Json::array({{{"name", "mutatingadmissionpolicies"}}})}};
  Objects crds = OurCrds();
  for (Json& crd : crds)
    crd["status"]["conditions"] = Json::array({{{"type", "Established"}, {"status", "True"}}});
  reading.definitions = std::move(crds);
  Json gang = Labelled("", "heddle-gang");
  gang["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"] = Json::array(
      {{{"key", "kubernetes.io/metadata.name"}}, {{"key", "heddle.dev/scope"}, {"operator", "In"}}});
  reading.mutating = Objects{gang};
  reading.mutating_bindings = Objects{BindingOf("heddle-gang")};
  for (const char* name :
       {"heddle-own-node", "heddle-plan", "heddle-ranks", "heddle-release", "heddle-suspension"}) {
    reading.validating->push_back(Labelled("", name));
    reading.validating_bindings->push_back(BindingOf(name));
  }
  reading.accounts = Objects{Labelled("heddle-system", "heddle-operator")};
  Json team = Named("team");
  team["metadata"]["labels"] = {{"heddle.dev/scope", "enabled"}};
  reading.namespaces = Objects{Named("default"), Named("heddle-system"), team};
  reading.deployments =
      Objects{Deployment("heddle-system", "heddle-operator", "registry:5000/ai/heddle:0.1.0"),
              Deployment("heddle-system", "heddle-scheduler", "registry.k8s.io/kube-scheduler:v1.36.3")};
  Json agents = Labelled("heddle-system", "heddle-nodeagent");
  agents["status"] = {{"desiredNumberScheduled", 3}, {"currentNumberScheduled", 3}, {"numberReady", 3}};
  reading.daemon_sets = Objects{agents};
  reading.leases = Objects{Lease("heddle-scheduler", "scheduler-7d9_x", seconds(2)),
                           Lease("heddle-operator", "operator-5c_y", seconds(3))};
  for (const char* name : {"gpu-1", "gpu-2", "gpu-3"}) {
    reading.nodes->push_back(GpuNode(name));
    reading.topologies->push_back(Reporting(name));
    reading.leases->push_back(Lease(std::string("heddle-node-") + name, name, seconds(40), 240));
  }
  reading.nodes->push_back(Named("cpu-1"));
  reading.pods =
      std::vector<DevicePod>{{"team", "llama-0", "heddle"}, {"default", "notebook", "default-scheduler"}};
  for (const NeededRight& needed : NeededRights()) reading.rights.push_back({needed, true});
  reading.now = kNow;
  return reading;
}

template <class T>
base::Result<T> Forbidden(const std::string& what) {
  return base::Fail(base::Code::kForbidden, what + " is forbidden: User \"ml\" cannot list it");
}

Findings NotOk(const DoctorReading& reading) {
  Findings findings = Diagnose(reading);
  std::erase_if(findings, [](const Finding& one) { return one.verdict == Verdict::kOk; });
  return findings;
}
// The one thing that is not ok.
Finding TheOne(const DoctorReading& reading) {
  const Findings findings = NotOk(reading);
  EXPECT_EQ(findings.size(), 1U) << DoctorText(findings, {});
  return findings.empty() ? Finding{} : findings.front();
}
void Remove(base::Result<Objects>& objects, const std::string& name) {
  std::erase_if(*objects, [&name](const Json& one) { return kube::Name(one) == name; });
}
// Of the rights those that these values alone bring.
void Deny(DoctorReading& reading, const std::set<Option>& options) {
  for (Right& one : reading.rights) {
    if (options.contains(one.needed.option)) one.allowed = false;
  }
}
std::string TextOf(const std::string& path) {
  std::ifstream file(std::string(HEDDLE_SOURCE_DIR) + "/" + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Doctor, SaysOfAHealthyInstallationThatAllIsWell) {
  const Findings findings = Diagnose(Healthy());
  EXPECT_THAT(findings, Each(Field(&Finding::verdict, Verdict::kOk)));
  EXPECT_THAT(findings, Each(Field(&Finding::remedy, "")));
  ExpectGolden("doctor.txt", DoctorText(findings, {}));
}

// A pod of Heddle's own that is not ready, with one container in this state.
Json OwnPod(const std::string& name, const std::string& component, const Json& state) {
  Json pod = Labelled("heddle-system", name);
  pod["metadata"]["labels"]["app.kubernetes.io/component"] = component;
  pod["status"]["conditions"] = Json::array({{{"type", "Ready"}, {"status", "False"}}});
  pod["status"]["containerStatuses"] =
      Json::array({{{"name", component}, {"ready", false}, {"state", state}}});
  return pod;
}
Json Waiting(const std::string& reason, const std::string& message) {
  return {{"waiting", {{"reason", reason}, {"message", message}}}};
}

TEST(Doctor, QuotesWhyTheDaemonsPodsAreNotReady) {
  DoctorReading reading = Healthy();
  reading.deployments->front()["status"]["readyReplicas"] = 0;
  const std::string start = "0 of 2 pods of Deployment heddle-operator are ready";
  EXPECT_EQ(TheOne(reading).what, start);
  for (const char* name : {"op-1", "op-2"})
    reading.own_pods->push_back(OwnPod(name, "operator", Waiting("ImagePullBackOff", "pull access denied")));
  reading.own_pods->push_back(OwnPod("op-0", "operator", Waiting("ContainerCreating", "")));
  reading.own_pods->push_back(OwnPod("agent", "nodeagent", Waiting("ErrImagePull", "another's")));
  EXPECT_EQ(TheOne(reading).what,
            start + ": op-1 and op-2: container operator: ImagePullBackOff: pull access denied");

  Json crashing = OwnPod("op-3", "operator", Waiting("CrashLoopBackOff", "back-off 5m0s"));
  crashing["status"]["containerStatuses"][0]["lastState"]["terminated"] = {{"exitCode", 1},
                                                                           {"reason", "Error"}};
  reading.own_pods = Objects{crashing};
  EXPECT_THAT(TheOne(reading).what, HasSubstr("CrashLoopBackOff: back-off 5m0s (it ended with 1 Error)"));

  Json pending = OwnPod("op-4", "operator", Json::object());
  pending["status"] = {
      {"conditions", Json::array({{{"type", "PodScheduled"},
                                   {"status", "False"},
                                   {"reason", "Unschedulable"},
                                   {"message", "0/3 nodes are available: 3 untolerated taint"}}})}};
  reading.own_pods = Objects{pending};
  EXPECT_THAT(TheOne(reading).what, HasSubstr("op-4: Unschedulable: 0/3 nodes are available: 3 untolerated"));

  reading.own_pods = Objects{OwnPod("op-5", "operator", {{"running", Json::object()}})};
  EXPECT_THAT(TheOne(reading).what, HasSubstr("op-5: container operator runs and is not ready"));
}

TEST(Doctor, QuotesWhatKeepsPodsFromBeingMade) {
  DoctorReading reading = Healthy();
  Json& agents = reading.daemon_sets->front();
  agents["metadata"]["uid"] = "ds-uid";
  agents["status"] = {{"desiredNumberScheduled", 3}, {"currentNumberScheduled", 0}, {"numberReady", 0}};
  EXPECT_EQ(TheOne(reading).what, "0 of 3 agents are ready, and none can be made");
  const auto event = [](const char* uid, const char* at, const std::string& message) {
    return Json{{"involvedObject", {{"uid", uid}}}, {"lastTimestamp", at}, {"message", message}};
  };
  reading.failed_creates = Objects{
      event("ds-uid", "2026-11-23T00:00:02Z", "violates PodSecurity \"baseline:latest\": host namespaces"),
      event("ds-uid", "2026-11-23T00:00:01Z", "older"), event("other", "2026-11-23T00:00:03Z", "not ours")};
  const Finding agent = TheOne(reading);
  EXPECT_EQ(agent.verdict, Verdict::kProblem);
  EXPECT_EQ(agent.what,
            "0 of 3 agents are ready, and none can be made: violates PodSecurity \"baseline:latest\": host "
            "namespaces");
  EXPECT_THAT(agent.remedy, HasSubstr("kubectl label namespace heddle-system --overwrite "
                                      "pod-security.kubernetes.io/enforce=privileged; "))
      << "kubectl changes no label that is there already without it";

  reading = Healthy();
  Json& deployment = reading.deployments->back();
  deployment["status"] = {
      {"conditions", Json::array({{{"type", "ReplicaFailure"},
                                   {"status", "True"},
                                   {"message", "exceeded quota: " + std::string(900, 'q')}}})}};
  const std::string what = TheOne(reading).what;
  EXPECT_THAT(what, HasSubstr("heddle-scheduler are ready: exceeded quota: qqq"));
  EXPECT_LT(what.size(), 300u);
}

// Anybody may write what stands in an object's status.
TEST(Doctor, TakesAnythingForAPodOfItsOwn) {
  DoctorReading reading = Healthy();
  reading.deployments->front()["status"]["readyReplicas"] = 0;
  Json odd = OwnPod("op", "operator", Json::array());
  odd["status"]["containerStatuses"] = Json::array({1, "two", nullptr, {{"state", 3}}});
  odd["status"]["conditions"] = "none";
  reading.own_pods = Objects{odd, Json::object(), Json(3), Json()};
  reading.failed_creates = Objects{Json(), Json("x")};
  EXPECT_THAT(TheOne(reading).what, HasSubstr("0 of 2 pods"));
  reading.own_pods = Forbidden<Objects>("pods");
  reading.failed_creates = Forbidden<Objects>("events");
  EXPECT_EQ(TheOne(reading).what, "0 of 2 pods of Deployment heddle-operator are ready");
}

TEST(Doctor, NamesEachThingThatIsBrokenAndWhatToDo) {
  DoctorReading reading = Healthy();
  reading.version = "v1.34.1-eks-abc";
  reading.deployments->back() =
      Deployment("heddle-system", "heddle-scheduler", "registry.k8s.io/kube-scheduler:v1.34.1");
  reading.definitions
      ->front()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
      .erase("assumptions");
  Remove(reading.definitions, "gangs.heddle.dev");
  reading.mutating_bindings->clear();
  Remove(reading.validating_bindings, "heddle-plan");
  reading.accounts->push_back(Labelled("other", "heddle-operator"));
  reading.deployments->front()["status"]["readyReplicas"] = 1;
  reading.deployments->back()["status"].clear();
  reading.deployments->push_back(
      Deployment("kube-system", "autoscaler", "registry.k8s.io/autoscaling/cluster-autoscaler:v1.36.0"));
  reading.deployments->push_back(Deployment("kueue-system", "kueue-controller-manager", "kueue:v0.18"));
  *reading.leases->begin() = Lease("heddle-scheduler", "scheduler-7d9_x", seconds(600));
  Remove(reading.leases, "heddle-operator");
  Remove(reading.leases, "heddle-node-gpu-2");
  Remove(reading.topologies, "gpu-3");
  reading.daemon_sets->front()["status"]["numberReady"] = 2;
  reading.own_pods->push_back(OwnPod("heddle-nodeagent-7xk2p", "nodeagent",
                                     Waiting("ImagePullBackOff", "Back-off pulling image \"heddle:0.1.0\"")));
  reading.topologies->front()["status"]["agentVersion"] = "0.0.9";
  for (Right& one : reading.rights) {
    if (one.needed.component == "operator" && one.needed.Title() == "list nodes") one.allowed = false;
  }
  reading.pods->push_back({"team", "by-name", "default-scheduler", true});
  reading.pods->push_back({"team", "other", "volcano"});
  reading.pods->push_back({"team", "sneaky", "default-scheduler"});
  reading.pods->push_back({"team",
                           "roce",
                           "heddle",
                           false,
                           {"container main asks for heddle.dev/rdma and may not pin memory: add IPC_LOCK"}});
  const Findings findings = Diagnose(reading);
  ExpectGolden("doctor_broken.txt", DoctorText(findings, {}));
  ExpectGolden("doctor_broken_80.txt", DoctorText(findings, {.width = 80}));
  ExpectFits([&findings](const Style& style) { return DoctorText(findings, style); });
  for (const Finding& one : findings) EXPECT_EQ(one.remedy.empty(), one.verdict == Verdict::kOk) << one.what;
}

TEST(Doctor, NamesAgentsThatMayNotReadTheirMachine) {
  const auto with = [](const char* status, const std::string& message) {
    DoctorReading reading = Healthy();
    (*reading.topologies)[1]["status"]["conditions"] = Json::array({{{"type", "DiscoveryComplete"},
                                                                     {"status", status},
                                                                     {"reason", "ProbesFailed"},
                                                                     {"message", message}}});
    return reading;
  };
  for (const char* message : {"/dev/infiniband/umad0: Permission denied", "lldpd: Operation not permitted",
                              "permission is denied: give the agent's container the driver's device nodes",
                              "no permission for /dev/infiniband/umad0"}) {
    const Finding finding = TheOne(with("False", message));
    EXPECT_EQ(finding.check, "agents") << message;
    EXPECT_EQ(finding.verdict, Verdict::kWarning);
    EXPECT_EQ(finding.what, "1 of 3 nodes: the agent was not permitted to read some of its machine: gpu-2");
    EXPECT_THAT(finding.remedy, HasSubstr("kubectl describe nt gpu-2"));
    EXPECT_THAT(finding.remedy, HasSubstr("agent.access"));
  }
  EXPECT_THAT(NotOk(with("False", "mlx5_3: Input/output error")), IsEmpty()) << "status has it";
  EXPECT_THAT(NotOk(with("True", "asked with all permissions")), IsEmpty());
}

TEST(Doctor, KnowsWhichServersItWorksWith) {
  const auto verdict = [](const std::string& version) {
    DoctorReading reading = Healthy();
    reading.version = version;
    Findings findings;
    CheckServer(reading, InstallationOf(reading), findings);
    return findings.at(0).verdict;
  };
  EXPECT_EQ(verdict("v1.32.9"), Verdict::kProblem);
  EXPECT_EQ(verdict("v1.33.0"), Verdict::kWarning);
  EXPECT_EQ(verdict("v1.35.2+k3s1"), Verdict::kWarning);
  EXPECT_EQ(verdict("v1.36.0-gke.100"), Verdict::kOk);
  EXPECT_EQ(verdict("v1.40.0"), Verdict::kOk);
  for (const char* odd : {"", "v2.0.0", "v1.", "v1.x", "latest"})
    EXPECT_EQ(verdict(odd), Verdict::kUnknown) << odd;
}

TEST(Doctor, SaysPrepareWhereNoMutatingPolicyIsServed) {
  DoctorReading reading = Healthy();
  reading.version = "v1.35.0";
  reading.admission = Json{{"resources", Json::array()}};
  reading.mutating = base::Fail(base::Code::kUnimplemented, "no such resource");
  reading.mutating_bindings = reading.mutating;
  const Findings findings = NotOk(reading);
  EXPECT_THAT(findings,
              Contains(AllOf(Field(&Finding::check, "gating"), Field(&Finding::verdict, Verdict::kWarning),
                             Field(&Finding::remedy, HasSubstr("kubectl heddle prepare")))));
  EXPECT_THAT(findings, Not(Contains(Field(&Finding::verdict, Verdict::kProblem))))
      << DoctorText(findings, {});
}

TEST(Doctor, NamesPodsThatNobodyPreparedWhereNoMutatingPolicyIsServed) {
  DoctorReading reading = Healthy();
  reading.version = "v1.35.0";
  reading.admission = Json{{"resources", Json::array()}};
  reading.mutating = base::Fail(base::Code::kUnimplemented, "no such resource");
  reading.mutating_bindings = reading.mutating;
  reading.pods->push_back({"team", "past-0", "default-scheduler"});
  // No policy names the scope, so it is what people labelled.
  EXPECT_THAT(NotOk(reading),
              Contains(AllOf(Field(&Finding::what, HasSubstr("went to default-scheduler: team/past-0")),
                             Field(&Finding::remedy, HasSubstr("kubectl heddle prepare")))));
  reading.namespaces->pop_back();
  EXPECT_THAT(NotOk(reading), Not(Contains(Field(&Finding::check, "bypass"))));
  EXPECT_THAT(NotOk(reading), Not(Contains(Field(&Finding::check, "scope"))));
}

// What the chart leaves in the cluster where its value mutatingPolicies is never.
void MarkAsNeverMutating(DoctorReading& reading) {
  for (Json& one : *reading.validating) {
    if (kube::Name(one) != "heddle-plan") continue;
    one["metadata"]["annotations"] = {{"heddle.dev/mutating-policies", "never"}};
  }
}
DoctorReading NeverMutating() {
  DoctorReading reading = Healthy();
  Remove(reading.mutating, "heddle-gang");
  reading.mutating_bindings->clear();
  MarkAsNeverMutating(reading);
  return reading;
}
Finding FindingOf(const DoctorReading& reading, const std::string& check) {
  for (const Finding& one : Diagnose(reading)) {
    if (one.check == check) return one;
  }
  ADD_FAILURE() << "nothing is said of " << check;
  return {};
}
Finding GatingOf(const DoctorReading& reading) {
  return FindingOf(reading, "gating");
}

TEST(Doctor, TakesAGatingPolicyThatTheInstallerLeftOutForAChoice) {
  DoctorReading reading = NeverMutating();
  EXPECT_THAT(NotOk(reading), IsEmpty());
  EXPECT_THAT(GatingOf(reading).what,
              AllOf(HasSubstr("mutatingPolicies=never"), HasSubstr("`kubectl heddle prepare`"),
                    HasSubstr("new pods with GPUs go past Heddle")));
  // Neither is it a fault where the cluster serves none.
  reading.version = "v1.35.0";
  reading.admission = Json{{"resources", Json::array()}};
  reading.mutating = base::Fail(base::Code::kUnimplemented, "no such resource");
  reading.mutating_bindings = reading.mutating;
  EXPECT_THAT(NotOk(reading), Each(Field(&Finding::check, "versions"))) << "of the scheduler, which is newer";
}

TEST(Doctor, NamesPodsThatNobodyPreparedWhereTheInstallerLeftTheGatingPolicyOut) {
  DoctorReading reading = NeverMutating();
  reading.pods->push_back({"team", "past-0", "default-scheduler"});
  const Finding finding = TheOne(reading);
  EXPECT_EQ(finding.verdict, Verdict::kWarning);
  EXPECT_THAT(finding.what, HasSubstr("went to default-scheduler: team/past-0"));
  EXPECT_THAT(finding.remedy, HasSubstr("kubectl heddle prepare"));
}

TEST(Doctor, BelievesWhatIsInForceMoreThanWhatTheInstallerChose) {
  // Who applies manifests without pruning keeps the policy that an earlier one had.
  DoctorReading reading = Healthy();
  MarkAsNeverMutating(reading);
  EXPECT_EQ(GatingOf(reading).what, "pods with GPUs are gated and routed by heddle-gang");
  reading.mutating = Forbidden<Objects>("mutatingadmissionpolicies");
  EXPECT_EQ(GatingOf(reading).verdict, Verdict::kUnknown);
  // And without the chart's word a policy that is gone is a problem.
  reading = NeverMutating();
  for (const char* other : {"auto", "always", ""}) {
    for (Json& one : *reading.validating)
      one["metadata"]["annotations"] = {{"heddle.dev/mutating-policies", other}};
    EXPECT_EQ(GatingOf(reading).verdict, Verdict::kProblem) << other;
  }
}

TEST(Doctor, ReadsTheMarkThatTheChartMakes) {
  EXPECT_THAT(TextOf("charts/heddle/templates/guard-policies.yaml"),
              HasSubstr("  name: heddle-plan\n"
                        "  labels: {{- include \"heddle.labels\" . | nindent 4 }}\n"
                        "  {{- if eq .Values.mutatingPolicies \"never\" }}\n"));
  EXPECT_THAT(TextOf("charts/heddle/templates/guard-policies.yaml"),
              HasSubstr("  annotations: {heddle.dev/mutating-policies: never}\n"));
}

// What the chart makes where computeDomains.enabled is true, and the guard alone where pods are not to be changed.
void EnableComputeDomains(DoctorReading& reading, bool mutates = true) {
  reading.validating->push_back(Labelled("", "heddle-compute-domains"));
  reading.validating_bindings->push_back(BindingOf("heddle-compute-domains"));
  if (!mutates) return;
  reading.mutating->push_back(Labelled("", "heddle-compute-domain"));
  reading.mutating_bindings->push_back(BindingOf("heddle-compute-domain"));
}

TEST(Doctor, LooksForThePolicyThatGivesPodsTheirClaimsOfComputeDomains) {
  EXPECT_THAT(Diagnose(Healthy()), Not(Contains(Field(&Finding::check, "compute-domains")))) << "not enabled";
  DoctorReading reading = Healthy();
  EnableComputeDomains(reading);
  EXPECT_THAT(NotOk(reading), IsEmpty());
  EXPECT_EQ(FindingOf(reading, "compute-domains").what,
            "gangs that ask for a ComputeDomain get its claims by heddle-compute-domain");

  Remove(reading.mutating_bindings, "heddle-compute-domain");
  Finding finding = TheOne(reading);
  EXPECT_EQ(finding.check, "compute-domains");
  EXPECT_EQ(finding.verdict, Verdict::kProblem);
  EXPECT_THAT(finding.what, HasSubstr("MutatingAdmissionPolicyBinding heddle-compute-domain is not there"));
  reading.mutating_bindings = Forbidden<Objects>("mutatingadmissionpolicybindings");
  EXPECT_EQ(FindingOf(reading, "compute-domains").verdict, Verdict::kUnknown);

  reading = Healthy();
  EnableComputeDomains(reading, false);
  finding = TheOne(reading);
  EXPECT_EQ(finding.check, "compute-domains");
  EXPECT_EQ(finding.verdict, Verdict::kProblem);
  EXPECT_THAT(finding.what, AllOf(HasSubstr("MutatingAdmissionPolicy heddle-compute-domain is not there"),
                                  HasSubstr("wait with the reason NoComputeDomain")));
  EXPECT_THAT(finding.remedy, HasSubstr("helm upgrade"));
  reading.mutating = Forbidden<Objects>("mutatingadmissionpolicies");
  EXPECT_EQ(FindingOf(reading, "compute-domains").verdict, Verdict::kUnknown);
  reading.admission = Forbidden<Json>("admissionregistration.k8s.io");
  EXPECT_EQ(FindingOf(reading, "compute-domains").verdict, Verdict::kUnknown);
}

TEST(Doctor, SaysWhatComputeDomainsComeToWhereTheInstallerLeftMutatingPoliciesOut) {
  DoctorReading reading = NeverMutating();
  EnableComputeDomains(reading, false);
  const Finding finding = TheOne(reading);
  EXPECT_EQ(finding.check, "compute-domains");
  EXPECT_EQ(finding.verdict, Verdict::kWarning);
  EXPECT_THAT(finding.what,
              AllOf(HasSubstr("computeDomains.enabled=true does nothing where mutatingPolicies=never"),
                    HasSubstr("no pod gets the claim"), HasSubstr("wait with the reason NoComputeDomain")));
  EXPECT_THAT(finding.remedy,
              AllOf(testing::StartsWith(
                        "helm upgrade with mutatingPolicies=auto, by which new pods with GPUs are gated"),
                    HasSubstr("take heddle.dev/compute-domain out of Jobs"),
                    HasSubstr("computeDomains.enabled=false")));
  // One that an earlier manifest left behind does its work all the same.
  EnableComputeDomains(reading);
  EXPECT_EQ(FindingOf(reading, "compute-domains").verdict, Verdict::kOk);
  // And heddle-gang that was left behind makes no claims.
  reading = Healthy();
  MarkAsNeverMutating(reading);
  EnableComputeDomains(reading, false);
  EXPECT_THAT(TheOne(reading).what, HasSubstr("mutatingPolicies=never"));
}

TEST(Doctor, SaysWhatComputeDomainsComeToWhereNoMutatingPolicyIsServed) {
  for (const bool never : {false, true}) {
    DoctorReading reading = never ? NeverMutating() : Healthy();
    EnableComputeDomains(reading, false);
    reading.admission = Json{{"resources", Json::array()}};
    reading.mutating = base::Fail(base::Code::kUnimplemented, "no such resource");
    reading.mutating_bindings = reading.mutating;
    const Finding finding = FindingOf(reading, "compute-domains");
    EXPECT_EQ(finding.verdict, Verdict::kWarning);
    EXPECT_THAT(finding.what, HasSubstr("no pod gets the claim"));
    EXPECT_THAT(finding.remedy, testing::StartsWith("Kubernetes 1.36, and helm upgrade"));
    EXPECT_EQ(finding.remedy.find("mutatingPolicies=auto") != std::string::npos, never);
  }
}

TEST(Doctor, MissesTheGuardOfComputeDomainsWherePodsGetClaims) {
  DoctorReading reading = Healthy();
  EnableComputeDomains(reading);
  Remove(reading.validating, "heddle-compute-domains");
  const Finding finding = TheOne(reading);
  EXPECT_EQ(finding.check, "guards");
  EXPECT_EQ(finding.what, "the ValidatingAdmissionPolicy heddle-compute-domains is not there");
}

// By the guard doctor knows that computeDomains.enabled is true, whatever mutatingPolicies is.
TEST(Doctor, ReadsAGuardOfComputeDomainsThatTheChartMakesWithoutMutatingPolicies) {
  EXPECT_THAT(
      TextOf("charts/heddle/templates/compute-domain-policies.yaml"),
      AllOf(HasSubstr("{{- if include \"heddle.mutates\" . }}\n"),
            HasSubstr("  policyName: heddle-compute-domain\n---\n{{- end }}\n"),
            HasSubstr("kind: ValidatingAdmissionPolicy\nmetadata:\n  name: heddle-compute-domains\n")));
}

TEST(Doctor, KnowsAnInstallationThatOnlyObserves) {
  DoctorReading reading = Healthy();
  Remove(reading.mutating, "heddle-gang");
  reading.mutating_bindings->clear();
  reading.deployments->back()["metadata"]["name"] = "heddle-observer";
  Deny(reading, {Option::kPlacing, Option::kPreemption, Option::kComputeDomains});
  EXPECT_THAT(NotOk(reading), IsEmpty());
  EXPECT_THAT(DoctorText(Diagnose(reading), {}), HasSubstr("mode=observe: no pod is gated"));
  // Where daemons run elsewhere only what the extender may do tells it from a policy that somebody deleted.
  Remove(reading.deployments, "heddle-observer");
  EXPECT_THAT(NotOk(reading), IsEmpty());
  for (Right& one : reading.rights) one.allowed = true;
  EXPECT_THAT(TheOne(reading).what, HasSubstr("heddle-gang is not there"));
}

TEST(Doctor, NamesPodsThatASwitchToObserveStranded) {
  DoctorReading reading = Healthy();
  Remove(reading.mutating, "heddle-gang");
  reading.mutating_bindings->clear();
  reading.deployments->back()["metadata"]["name"] = "heddle-observer";
  Deny(reading, {Option::kPlacing, Option::kPreemption, Option::kComputeDomains});
  reading.pods->push_back(
      {.ns = "team", .name = "gated-1", .scheduler = "heddle", .gated = true, .unbound = true});
  reading.pods->push_back({.ns = "other",
                           .name = "gated-0",
                           .scheduler = "heddle",
                           .gpus = false,
                           .gated = true,
                           .unbound = true});
  reading.pods->push_back({.ns = "team", .name = "single", .scheduler = "heddle", .unbound = true});
  // Of another scheduler's pods none is ours to speak of.
  reading.pods->push_back({.ns = "team", .name = "theirs", .scheduler = "volcano", .unbound = true});
  EXPECT_THAT(
      NotOk(reading),
      ElementsAre(Finding{"stranded", Verdict::kProblem,
                          "2 pods wait at Heddle's gate, which nobody opens (mode=observe): other/gated-0 "
                          "and team/gated-1",
                          "kubectl heddle release --all"},
                  Finding{"stranded", Verdict::kProblem,
                          "1 pod waits for the scheduler heddle, which is away (mode=observe): team/single",
                          "kubectl heddle release --all"}));
}

TEST(Doctor, NamesPodsThatWaitForASchedulerThatNobodyRuns) {
  DoctorReading reading = Healthy();
  reading.pods->push_back(
      {.ns = "team", .name = "gated", .scheduler = "heddle", .gated = true, .unbound = true});
  EXPECT_THAT(NotOk(reading), IsEmpty()) << "they wait their turn";
  const auto stranded = [&reading] {
    for (const Finding& one : Diagnose(reading)) {
      if (one.check == "stranded") return one;
    }
    return Finding{};
  };
  *reading.leases->begin() = Lease("heddle-scheduler", "scheduler-7d9_x", seconds(600));
  EXPECT_EQ(stranded().what,
            "1 pod waits at Heddle's gate, which nobody opens (heddle-scheduler was renewed 10m ago by "
            "scheduler-7d9_x, and is over): team/gated");
  EXPECT_THAT(stranded().remedy,
              HasSubstr("start the scheduler again (see lease); or where Heddle is to go"));
  Remove(reading.leases, "heddle-scheduler");
  EXPECT_THAT(stranded().what, HasSubstr("(nobody has ever held heddle-scheduler)"));
  // Uninstalled: nothing would gate them again.
  Remove(reading.mutating, "heddle-gang");
  Remove(reading.mutating_bindings, "heddle-gang");
  EXPECT_EQ(stranded().remedy, "kubectl heddle release --all");
  reading.mutating_bindings = Forbidden<Objects>("mutatingadmissionpolicybindings");
  EXPECT_THAT(stranded().remedy, HasSubstr("start the scheduler again")) << "they may be in force";
  reading.leases = Forbidden<Objects>("leases");
  EXPECT_EQ(stranded(), Finding{}) << "nobody knows, and the check of Leases says so";
}

TEST(Doctor, FindsNoFaultWithDaemonsThatRunElsewhere) {
  DoctorReading reading = Healthy();
  reading.deployments->clear();
  reading.daemon_sets->clear();
  EXPECT_THAT(NotOk(reading), IsEmpty());
}

TEST(Doctor, TellsAPolicyThatIsGoneFromOneThatDeniesNothing) {
  DoctorReading reading = Healthy();
  Remove(reading.validating, "heddle-own-node");
  EXPECT_THAT(TheOne(reading).what, HasSubstr("ValidatingAdmissionPolicy heddle-own-node is not there"));
  reading = Healthy();
  Remove(reading.mutating, "heddle-gang");
  const Finding gating = TheOne(reading);
  EXPECT_THAT(gating.what, HasSubstr("MutatingAdmissionPolicy heddle-gang is not there"));
  EXPECT_THAT(gating.remedy, HasSubstr("mutatingPolicies is never; until it is there prepare each Job"));
  reading = Healthy();
  reading.validating_bindings->back()["spec"]["validationActions"] = Json::array({"Warn", "Audit"});
  EXPECT_THAT(TheOne(reading).what, HasSubstr("heddle-suspension denies nothing"));
}

TEST(Doctor, LooksForAScope) {
  DoctorReading reading = Healthy();
  reading.namespaces->pop_back();
  const Finding finding = TheOne(reading);
  EXPECT_EQ(finding.verdict, Verdict::kWarning);
  EXPECT_THAT(finding.remedy, HasSubstr("kubectl label namespace NAME heddle.dev/scope=enabled"));
  // With scope=cluster there is no such label, and a pod of any namespace is one that goes past.
  reading.mutating->front()["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"].erase(1);
  EXPECT_THAT(TheOne(reading).what, HasSubstr("default/notebook"));
}

TEST(Doctor, HoldsTheClustersSchemasAgainstThoseOfThisVersion) {
  ASSERT_EQ(OurCrds().size(), 6U);
  DoctorReading reading = Healthy();
  Json& spec =
      reading.definitions->front()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
  spec["properties"]["ofTomorrow"] = {{"type", "string"}};
  Finding finding = TheOne(reading);
  EXPECT_EQ(finding.verdict, Verdict::kWarning);
  EXPECT_THAT(finding.what, HasSubstr("it has spec.ofTomorrow"));
  reading = Healthy();
  reading.definitions->back()["spec"]["versions"][0]["served"] = false;
  EXPECT_THAT(TheOne(reading).what, HasSubstr("does not serve v1alpha1"));
  reading = Healthy();
  reading.definitions->back()["status"]["conditions"][0]["status"] = "False";
  EXPECT_THAT(TheOne(reading).what, HasSubstr("is not established"));
}

TEST(Doctor, ComparesFieldsAndWordsOfSchemas) {
  const Json ours =
      Json::parse(R"({"properties": {"a": {"enum": ["x", "y"]}, "b": {"items": {"properties": {"c": {}}}},
    "d": {"additionalProperties": {"properties": {"e": {}}}}}})");
  const Json theirs =
      Json::parse(R"({"properties": {"a": {"enum": ["x"]}, "b": {"items": {}}, "f": {}, "d": {}}})");
  const SchemaDifference difference = CompareSchemas(ours, theirs);
  EXPECT_THAT(difference.missing, ElementsAre("a=y", "b[].c", "d{}.e"));
  EXPECT_THAT(difference.more, ElementsAre("f"));
}

TEST(Doctor, WarnsOfAnInstallationInAnotherNamespace) {
  DoctorReading reading = Healthy();
  reading.accounts = Objects{Labelled("fabric", "heddle-operator")};
  EXPECT_THAT(NotOk(reading), Contains(Field(&Finding::remedy, "install it in heddle-system")));
  reading.accounts->clear();
  EXPECT_THAT(NotOk(reading), Contains(Field(&Finding::remedy, HasSubstr("helm install heddle"))));
}

TEST(Doctor, ReadsVersionsFromImagesToo) {
  DoctorReading reading = Healthy();
  const auto with_image = [&](const std::string& image) {
    reading.deployments->front() = Deployment("heddle-system", "heddle-operator", image);
    return NotOk(reading);
  };
  EXPECT_THAT(with_image("reg:5000/heddle"), IsEmpty());
  EXPECT_THAT(with_image("reg:5000/heddle:0.1.0@sha256:abc"), IsEmpty());
  EXPECT_THAT(with_image("reg:5000/heddle:0.1.0-20261127"), IsEmpty()) << "built anew under a tag of its own";
  EXPECT_THAT(with_image("reg:5000/heddle:0.1.01").at(0).what, HasSubstr("image 0.1.01: heddle-operator"));
  EXPECT_THAT(with_image("reg:5000/mirror/other:9"), IsEmpty()) << "people name images as they like";
  EXPECT_THAT(with_image("heddle:0.2.0").at(0).what,
              HasSubstr("image 0.2.0: heddle-operator; this program is 0.1.0"));
}

TEST(Doctor, TakesAChartWhoseVersionSaysWhatItWasBuiltOfForThatVersion) {
  DoctorReading reading = Healthy();
  const auto with_label = [&](const std::string& version) {
    reading.deployments->front() = Deployment("heddle-system", "heddle-operator", "heddle:" + version);
    reading.deployments->front()["metadata"]["labels"]["app.kubernetes.io/version"] = version;
    return NotOk(reading);
  };
  EXPECT_THAT(with_label("0.1.0-cbe3e8d0c3ef"), IsEmpty());
  EXPECT_THAT(with_label("0.1.01").at(0).what, HasSubstr("0.1.01: heddle-operator; this program is 0.1.0"));
}

TEST(Doctor, WarnsOfAKubeSchedulerThatTheClusterHasLeftBehind) {
  DoctorReading reading = Healthy();
  const auto with = [&](const std::string& server, const std::string& image) {
    reading.version = server;
    reading.deployments->back() = Deployment("heddle-system", "heddle-scheduler", image);
    return NotOk(reading);
  };
  EXPECT_THAT(with("v1.37.0-gke.1", "registry.k8s.io/kube-scheduler:v1.37.4"), IsEmpty()) << "one minor";
  const Findings left = with("v1.37.0", "registry.k8s.io/kube-scheduler:v1.36.3");
  ASSERT_EQ(left.size(), 1U) << DoctorText(left, {});
  EXPECT_EQ(left[0].check, "versions");
  EXPECT_EQ(left[0].verdict, Verdict::kWarning);
  EXPECT_EQ(left[0].what, "kube-scheduler in heddle-scheduler is v1.36.3, and the API server v1.37.0");
  EXPECT_THAT(left[0].remedy, HasSubstr("helm upgrade heddle charts/heddle -n heddle-system "
                                        "--reset-then-reuse-values --wait"));
  EXPECT_EQ(with("v1.36.3", "reg:5000/kube-scheduler:v1.37.0@sha256:abc").size(), 1U)
      << "nor newer than the server";
  EXPECT_THAT(with("v1.37.0", "reg:5000/kube-scheduler:ours"), IsEmpty())
      << "people name images as they like";
  // Of another name, by the container's.
  (void)with("v1.37.0", "reg:5000/mirror/scheduling:v1.36.3");
  reading.deployments->back()["spec"]["template"]["spec"]["containers"][0]["name"] = "scheduler";
  EXPECT_EQ(NotOk(reading).size(), 1U);
  reading.version = Forbidden<std::string>("version");
  EXPECT_THAT(NotOk(reading), Not(Contains(Field(&Finding::check, "versions"))));
}

TEST(Doctor, GoesOnWhereSomethingMayNotBeReadAndSaysWhichRightIsMissing) {
  DoctorReading reading = Healthy();
  reading.definitions = Forbidden<Objects>("customresourcedefinitions");
  reading.mutating_bindings = Forbidden<Objects>("mutatingadmissionpolicybindings");
  reading.validating = Forbidden<Objects>("validatingadmissionpolicies");
  reading.accounts = Forbidden<Objects>("serviceaccounts");
  reading.namespaces = Forbidden<Objects>("namespaces");
  reading.nodes = Forbidden<Objects>("nodes");
  reading.deployments = Forbidden<Objects>("deployments");
  reading.daemon_sets = Forbidden<Objects>("daemonsets");
  reading.leases = Forbidden<Objects>("leases");
  reading.rights = {{NeededRights().front(), Forbidden<bool>("subjectaccessreviews")}};
  const Findings findings = NotOk(reading);
  EXPECT_THAT(findings, Each(Field(&Finding::verdict, Verdict::kUnknown)));
  EXPECT_GE(findings.size(), 10U);
  const std::string text = DoctorText(Diagnose(reading), {});
  for (const char* right : {"customresourcedefinitions", "mutatingadmissionpolicybindings",
                            "validatingadmissionpolicies", "serviceaccounts", "namespaces", "nodes",
                            "deployments", "daemonsets", "leases", "subjectaccessreviews"})
    EXPECT_THAT(text, HasSubstr(std::string(right) + " is forbidden"));
  EXPECT_THAT(text, HasSubstr("Kubernetes v1.36.3"));
}

TEST(Doctor, SurvivesWhateverStandsInObjects) {
  const Objects odd{
      Json(),
      Json(7),
      Json("x"),
      Json::array({Json()}),
      Json::object(),
      Json::parse(R"({"metadata": {"name": 1, "namespace": [], "labels": "x"}, "spec": 3, "status": null})"),
      Json::parse(
          R"({"metadata": {"name": "heddle-operator", "namespace": "heddle-system", "labels": {"app.kubernetes.io/name": "heddle",
                      "app.kubernetes.io/version": 3}}, "spec": {"replicas": "many", "policyName": [], "renewTime": 5, "holderIdentity": "x", "versions": [null, {"name": "v1alpha1"}],
                      "matchConstraints": {"namespaceSelector": {"matchExpressions": [null, 3]}},
                      "template": {"spec": {"containers": [null, {"image": 5}, {"image": ":"}, {"image": "heddle:"}]}}}, "status": {"readyReplicas": {}, "allocatable": [], "conditions": 4}})"),
      Json::parse(
          R"({"metadata": {"name": "heddle-gang"}, "spec": {"matchConstraints": {"namespaceSelector": {"matchExpressions": [null, {"key": 4}]}}}})")};
  DoctorReading reading = Healthy();
  for (base::Result<Objects>* kind :
       {&reading.definitions, &reading.mutating, &reading.mutating_bindings, &reading.validating,
        &reading.validating_bindings, &reading.accounts, &reading.namespaces, &reading.nodes,
        &reading.deployments, &reading.daemon_sets, &reading.leases, &reading.topologies})
    *kind = odd;
  reading.admission = Json(3);
  reading.pods = std::vector<DevicePod>{{}};
  reading.rights.clear();
  EXPECT_THAT(Diagnose(reading), Contains(Field(&Finding::verdict, Verdict::kProblem)));
  Json deep = Json::object();
  for (int i = 0; i < 1000; ++i) deep = Json{{"properties", {{"x", std::move(deep)}}}};
  EXPECT_FALSE(CompareSchemas(deep, Json()).missing.empty());
}

TEST(Doctor, IsOfTheVersionOfTheChart) {
  EXPECT_THAT(TextOf("charts/heddle/Chart.yaml"),
              HasSubstr("appVersion: " + std::string(base::kVersion) + "\n"));
}

TEST(Doctor, NeedsOfAnAccountOnlyWhatTheValuesThatItSeesTakeOfIt) {
  DoctorReading reading = Healthy();
  Deny(reading, {Option::kObserving, Option::kComputeDomains, Option::kFollowedPlans, Option::kOtherPlugins});
  EXPECT_THAT(NotOk(reading), IsEmpty());

  EnableComputeDomains(reading);
  EXPECT_THAT(TheOne(reading).what,
              HasSubstr("heddle-extender may not get computedomains.resource.nvidia.com"));
  Remove(reading.validating, "heddle-compute-domains");
  Remove(reading.mutating, "heddle-compute-domain");

  Json& agents = reading.daemon_sets->front();
  agents["spec"]["template"]["spec"]["containers"] =
      Json::array({{{"command", {"heddle-nodeagent", "--listen=:9559", "--follow-plans"}}}});
  EXPECT_EQ(TheOne(reading).what, "the account heddle-nodeagent may not list pods");
  agents.erase("spec");

  Json& container = reading.deployments->front()["spec"]["template"]["spec"]["containers"][0];
  container["command"] = Json::array({"heddle-operator", "--sriov-image=registry.test/sriov:v1"});
  EXPECT_THAT(TheOne(reading).what, HasSubstr("heddle-operator may not list configmaps"));
  container.erase("command");
  EXPECT_THAT(NotOk(reading), IsEmpty());

  Deny(reading, {Option::kPreemption});
  EXPECT_THAT(TheOne(reading).what, HasSubstr("heddle-extender may not patch jobs.batch"));
  Remove(reading.validating, "heddle-suspension");
  EXPECT_THAT(NotOk(reading), IsEmpty());
}

// What stands between {{ and }} is helm's. Without it every value that brings a right does so at once.
std::string WithoutTemplates(std::string text) {
  for (std::size_t from = text.find("{{"); from != std::string::npos; from = text.find("{{", from)) {
    const std::size_t end = text.find("}}", from);
    if (end == std::string::npos) return text;
    text.erase(from, end + 2 - from);
  }
  return text;
}

// One for each name of the rule, or one without a name where it has none.
void AddRights(const Json& role, const Json& rule, const std::string& resource,
               std::vector<NeededRight>& rights) {
  const std::size_t slash = resource.find('/');
  Json names = kube::ArrayAt(rule, {"resourceNames"});
  if (names.empty()) names.push_back("");
  for (const Json& group : kube::ArrayAt(rule, {"apiGroups"})) {
    for (const Json& verb : kube::ArrayAt(rule, {"verbs"})) {
      for (const Json& name : names) {
        NeededRight right;
        right.component = kube::Name(role).substr(std::string("heddle-").size());
        right.verb = verb.get<std::string>();
        right.group = group.get<std::string>();
        right.resource = resource.substr(0, slash);
        if (slash != std::string::npos) right.subresource = resource.substr(slash + 1);
        right.name = name.get<std::string>();
        right.namespaced = kube::StringAt(role, {"kind"}) == "Role";
        rights.push_back(std::move(right));
      }
    }
  }
}

// All that the chart's roles say of the programs' accounts.
std::vector<NeededRight> GrantedRights() {
  std::vector<NeededRight> rights;
  const std::string text = WithoutTemplates(TextOf("charts/heddle/templates/rbac.yaml"));
  const std::string apart = "\n---\n";
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find(apart, from), text.size());
    const std::string document = text.substr(from, end - from);
    from = end + apart.size();
    if (document.find("\nkind: Role\n") == std::string::npos &&
        document.find("\nkind: ClusterRole\n") == std::string::npos)
      continue;
    const auto role = crds::FromYaml(document);
    if (!role) {
      ADD_FAILURE() << role.error().message << " in " << document;
      continue;
    }
    for (const Json& rule : kube::ArrayAt(*role, {"rules"})) {
      for (const Json& resource : kube::ArrayAt(rule, {"resources"}))
        AddRights(*role, rule, resource.get<std::string>(), rights);
    }
  }
  return rights;
}

bool IsOfOneKind(const NeededRight& one, const NeededRight& other) {
  return one.component == other.component && one.group == other.group && one.resource == other.resource &&
         one.subresource == other.subresource;
}
// What is granted in all namespaces, or for all names, is so in one and for one.
bool Covers(const NeededRight& granted, const NeededRight& needed) {
  return IsOfOneKind(granted, needed) && granted.verb == needed.verb &&
         (granted.name.empty() || granted.name == needed.name) && (!granted.namespaced || needed.namespaced);
}

TEST(Doctor, AsksForRightsThatTheChartGrants) {
  const std::vector<NeededRight> granted = GrantedRights();
  ASSERT_GT(granted.size(), 50u);
  for (const NeededRight& needed : NeededRights()) {
    // The rest of a scheduler's are in Kubernetes' own role of a kube-scheduler.
    if (needed.component == "scheduler" && needed.resource != "leases") continue;
    EXPECT_TRUE(std::any_of(granted.begin(), granted.end(),
                            [&needed](const NeededRight& one) { return Covers(one, needed); }))
        << needed.component << " may not " << needed.Title();
  }
}

TEST(Doctor, AsksForEveryWriteThatTheChartGrantsAndForEachKind) {
  const std::vector<NeededRight>& needed = NeededRights();
  for (const NeededRight& granted : GrantedRights()) {
    // Which Secrets there are the values say, and nobody asks for those that they do not.
    if (granted.resource == "secrets") continue;
    const bool reads = granted.verb == "get" || granted.verb == "list" || granted.verb == "watch";
    const bool asked = std::any_of(needed.begin(), needed.end(), [&granted, reads](const NeededRight& one) {
      return reads ? IsOfOneKind(granted, one) : Covers(granted, one);
    });
    EXPECT_TRUE(asked) << granted.component << " may " << granted.Title() << ", and doctor never asks";
  }
}

class DoctorStage : public Stage {
 protected:
  DoctorStage() {
    server.Intercept([this](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
      if (request.path == "/version") return Answer(R"({"gitVersion": "v1.36.3"})");
      if (request.path == "/apis/admissionregistration.k8s.io/v1") return Answer(R"({"resources": []})");
      if (request.plural != "subjectaccessreviews") return std::nullopt;
      reviews_.push_back(request.json());
      return Answer(R"({"status": {"allowed": true}})");
    });
  }
  static kube::HttpResponse Answer(const std::string& body) {
    kube::HttpResponse response;
    response.status = 200;
    response.body = body;
    return response;
  }
  Output Run(Format format = Format::kText) { return RunDoctor(client, clock, {.format = format}, {}); }
  std::vector<Json> reviews_;
};

TEST_F(DoctorStage, AsksAClusterAndSaysThatHeddleIsNotInstalled) {
  for (const kube::Resource& kind : {kube::Resource{"apps", "v1", "deployments", "Deployment", true},
                                     kube::Resource{"", "v1", "serviceaccounts", "ServiceAccount", true}})
    server.Serve(kind);
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kRefused) << output.err;
  EXPECT_THAT(output.out, AllOf(HasSubstr("Heddle's chart is not installed"),
                                HasSubstr("nobody has ever held heddle-scheduler")));
  // Of an installation of which nothing is seen.
  const auto asked = std::count_if(NeededRights().begin(), NeededRights().end(), [](const NeededRight& one) {
    return one.option == Option::kAny || one.option == Option::kPlacing;
  });
  ASSERT_EQ(reviews_.size(), std::size_t(asked));
  EXPECT_EQ(reviews_.front()["spec"]["user"], "system:serviceaccount:heddle-system:heddle-nodeagent");
  EXPECT_EQ(reviews_.front()["spec"]["resourceAttributes"]["resource"], "nodetopologies");
  const Json json = Json::parse(Run(Format::kJson).out);
  EXPECT_GT(json["problems"], 0);
  EXPECT_EQ(json["items"][0]["check"], "server");
}

TEST_F(DoctorStage, FindsWhoWentPastHeddleAndWhoPutAPodOnANodeByHand) {
  const kube::Resource policies{"admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies",
                                "MutatingAdmissionPolicy", false};
  server.Serve(policies);
  server.Put(policies, Named("heddle-gang"));
  AddPod("past", 0, "node-00", 8);
  AddPod("hand", 0, "node-01", 8);
  AddPod("ours", 0, "node-02", 8);
  AddPod("cpu", 0, "node-02", 0);
  server.Edit(kube::kPods, {"train", "ours-0"}, [](Json& pod) { pod["spec"]["schedulerName"] = "heddle"; });
  server.Edit(kube::kPods, {"train", "hand-0"}, [](Json& pod) {
    pod["metadata"]["managedFields"] =
        Json::array({{{"fieldsV1", {{"f:spec", {{"f:nodeName", Json::object()}}}}}}});
  });
  const std::string text = Run().out;
  EXPECT_THAT(text, HasSubstr("1 pod with GPUs in Heddle's scope went to default-scheduler: train/past-0"));
  EXPECT_THAT(text, HasSubstr("1 pod with GPUs was put on a node by hand (spec.nodeName): train/hand-0"));
  EXPECT_THAT(text, Not(HasSubstr("cpu-0")));
}

TEST_F(DoctorStage, NamesAgentsThatMayNotReadTheirMachine) {
  crds::NodeTopology node;
  node.name = "gpu-2";
  node.status.observed_at = base::WallTime(std::chrono::seconds(1'800'000'000));
  node.status.hash = "0123456789abcdef";
  Json object = crds::ToJson(node);
  object["status"]["conditions"] = Json::array({{{"type", "Ready"}, {"status", "True"}, {"reason", "Ready"}},
                                                {{"type", "DiscoveryComplete"},
                                                 {"status", "False"},
                                                 {"reason", "ProbesFailed"},
                                                 {"message", "/dev/infiniband/umad0: Permission denied"}}});
  server.Put(ResourceOf(keys::kNodeTopology), object);
  EXPECT_THAT(Run().out, HasSubstr("the agent was not permitted to read some of its machine: gpu-2"));
}

TEST_F(DoctorStage, FindsPodsThatWaitForNobodyWithGpusOrWithout) {
  for (const char* name : {"gated", "launcher", "routed", "theirs"})
    AddPod(name, 0, "", std::string(name) == "launcher" ? 0 : 8);
  const auto edit = [this](const std::string& name, const std::function<void(Json&)>& change) {
    server.Edit(kube::kPods, {"train", name + "-0"}, change);
  };
  for (const char* name : {"gated", "launcher"}) {
    edit(name, [](Json& pod) {
      pod["spec"]["schedulerName"] = "heddle";
      pod["spec"]["schedulingGates"] =
          Json::array({nullptr, {{"name", "other"}}, {{"name", "heddle.dev/gang"}}});
    });
  }
  edit("routed", [](Json& pod) { pod["spec"]["schedulerName"] = "heddle"; });
  const std::string text = Run().out;
  EXPECT_THAT(text, HasSubstr("2 pods wait at Heddle's gate, which nobody opens (nobody has ever held "
                              "heddle-scheduler): train/gated-0 and train/launcher-0"));
  EXPECT_THAT(text, HasSubstr("1 pod waits for the scheduler heddle, which is away"));
  EXPECT_THAT(text, Not(HasSubstr("away (nobody has ever held heddle-scheduler): train/theirs-0")));
}

// Nodes whose NICs speak RoCE, InfiniBand and both, told of a resource as the operator makes it of an RdmaDevicePolicy.
class DoctorOfRdmaPods : public DoctorStage {
 protected:
  DoctorOfRdmaPods() {
    AddNode("roce", {{"mlx5_0", topology::Transport::kRoce}}, "acme.com/nics", "mlx5_0:1");
    AddNode("ib", {{"mlx5_0", topology::Transport::kInfiniBand}}, "acme.com/nics", "mlx5_0:1");
    // Compute by InfiniBand, storage by RoCE, and the resource is of the storage NICs.
    AddNode("mixed", {{"mlx5_0", topology::Transport::kInfiniBand}, {"mlx5_9", topology::Transport::kRoce}},
            "acme.com/storage", "mlx5_9:1");
  }
  void AddNode(const std::string& name,
               const std::vector<std::pair<std::string, topology::Transport>>& transports,
               const std::string& resource, const std::string& port) {
    crds::NodeTopology node;
    node.name = name;
    for (const auto& [nic_name, transport] : transports) {
      topology::Nic nic;
      nic.name = nic_name;
      nic.transport = transport;
      nic.role = nic_name == "mlx5_9" ? topology::NicRole::kStorage : topology::NicRole::kCompute;
      nic.ports.emplace_back();
      node.status.node.nics.push_back(nic);
    }
    node.status.observed_at = base::WallTime(std::chrono::seconds(1'800'000'000));
    node.status.hash = "0123456789abcdef";
    crds::DeviceWish wish;
    wish.resource = resource;
    wish.policies = {"nics"};
    wish.mode = crds::DeviceMode::kNics;
    wish.plugin = crds::DevicePlugin::kRdmaShared;
    wish.ports = {port};
    node.spec.devices = {wish};
    server.Put(ResourceOf(keys::kNodeTopology), crds::ToJson(node));
  }
  // A pod without GPUs that asks for a resource.
  void AddRdmaPod(const std::string& name, const std::string& node, const std::string& resource,
                  const std::function<void(Json&)>& change = {}) {
    AddPod(name, 0, node, 0);
    server.Edit(kube::kPods, {"train", name + "-0"}, [&](Json& pod) {
      pod["spec"]["containers"][0]["resources"]["limits"] = {{resource, "1"}};
      if (change) change(pod);
    });
  }
  std::vector<std::string> RdmaFindings() {
    std::vector<std::string> findings;
    const Json json = Json::parse(Run(Format::kJson).out);
    for (const Json& item : json.at("items")) {
      if (item.at("check") == "rdma" && item.at("verdict") != "ok") findings.push_back(item.at("what"));
    }
    return findings;
  }
};

TEST_F(DoctorOfRdmaPods, NamesEveryPodOfARoceNodeThatLacksAnInterfaceOrMayNotPin) {
  AddRdmaPod("bare", "roce", "acme.com/nics");
  AddRdmaPod("known", "roce", "rdma/hca_shared");  // another plugin's, told by its name
  AddRdmaPod("pinned", "roce", "acme.com/nics", [](Json& pod) {
    pod["spec"]["containers"][0]["securityContext"]["capabilities"]["add"] = Json::array({"IPC_LOCK"});
  });
  AddRdmaPod("first", "roce", "acme.com/nics", [](Json& pod) {
    pod["spec"]["hostNetwork"] = true;
    pod["spec"]["initContainers"] = pod["spec"]["containers"];
    pod["spec"]["containers"][0].erase("resources");
  });
  AddRdmaPod("whole", "roce", "acme.com/nics", [](Json& pod) {
    pod["spec"]["hostNetwork"] = true;
    pod["spec"]["containers"][0]["securityContext"]["privileged"] = true;
  });
  EXPECT_THAT(RdmaFindings(),
              testing::UnorderedElementsAre("3 pods: train/bare-0, train/first-0 and train/known-0: "
                                            "container main may not pin memory, which RDMA "
                                            "needs",
                                            "3 pods: train/bare-0, train/known-0 and train/pinned-0: it has "
                                            "no network interface of the NICs, and "
                                            "without one RoCE has no address"));
}

TEST_F(DoctorOfRdmaPods, LooksAtTheTransportOfThePodsOwnDevices) {
  AddRdmaPod("ib", "ib", "acme.com/nics");
  AddRdmaPod("ib-known", "ib", "rdma/hca_shared");
  AddRdmaPod("compute", "mixed", "rdma/hca_shared");
  AddRdmaPod("waits", "", "acme.com/nics");
  AddRdmaPod("fabric", "roce", "heddle.dev/fabric");
  AddRdmaPod("cpu", "roce", "example.com/fpga");
  AddRdmaPod("ended", "roce", "acme.com/nics", [](Json& pod) { pod["status"]["phase"] = "Succeeded"; });
  EXPECT_THAT(RdmaFindings(), IsEmpty());
  AddRdmaPod("storage", "mixed", "acme.com/storage");
  const auto findings = RdmaFindings();
  ASSERT_EQ(findings.size(), 2u);
  for (const std::string& finding : findings) EXPECT_THAT(finding, HasSubstr("1 pod: train/storage-0: "));
}

// A pod without GPUs goes past nobody.
TEST_F(DoctorOfRdmaPods, ArePassedOverWhereOnlyGpusCount) {
  AddRdmaPod("bare", "roce", "acme.com/nics");
  const kube::Resource policies{"admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies",
                                "MutatingAdmissionPolicy", false};
  server.Serve(policies);
  server.Put(policies, Named("heddle-gang"));
  EXPECT_THAT(Run().out, HasSubstr("no pod with GPUs goes past Heddle in its scope; 0 go through it"));
}

TEST_F(DoctorStage, StopsAskingForRightsOnceItMayNot) {
  int asked = 0;
  server.Intercept([&asked](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
    if (request.path == "/version") return Answer(R"({"gitVersion": "v1.36.3"})");
    if (request.plural != "subjectaccessreviews") return std::nullopt;
    ++asked;
    return test::StatusResponse(403, "", "you may not");
  });
  EXPECT_THAT(Run().out, HasSubstr("create subjectaccessreviews"));
  EXPECT_EQ(asked, 1);
}

TEST_F(DoctorStage, FailsWhereThereIsNoCluster) {
  server.Intercept([](const test::ApiRequest&) { return std::nullopt; });
  server.FailNext({.path_contains = "/version", .status = 0});
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kFailed);
  EXPECT_THAT(output.err, HasSubstr("Is the cluster up"));
}

}  // namespace
}  // namespace heddle::cli
