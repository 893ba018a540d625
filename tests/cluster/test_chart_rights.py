"""Nothing to spare in charts/heddle/templates/rbac.yaml: each right of the programs' accounts stands in a table beside
the call that takes it, and each call of theirs stands there, too. On paper: helm and the sources, no cluster. What the
server then says of a right is asked in test_chart.py; that none is missing, of audit logs
(assert_nothing_forbidden)."""

import re
from dataclasses import dataclass
from functools import cache

from bed import REPOSITORY
from chart_text import ChartTextTestCase, named, names

PROGRAMS = ("nodeagent", "operator", "extender")
# Methods of kube::Client, and what the API server calls them. To apply an object that is not there is to create it.
VERBS = {
    "Get": "get", "List": "list", "ListAll": "list", "Watch": "watch", "Create": "create", "Patch": "patch",
    "CreateSubresource": "create", "Update": "update", "UpdateStatus": "update", "Apply": "create patch",
    "Delete": "delete"}
CALL = re.compile(rf"\b\w*client_?\.(?:{'|'.join(VERBS)})\([^,()]+")


@dataclass(frozen=True)
class Use:
    """Resources as kubectl writes them, gangs.heddle.dev/status; leases.coordination.k8s.io@NAME is that one object."""
    resources: str
    verbs: str
    file: str  # of the repository; "" = a program that is not ours
    call: str  # what stands there, on one line
    values: str = ""  # any of these has to be on; "" = granted whatever the chart's values are
    via: str = ""  # the file of kube/ that makes the requests, where `call` makes none itself


def watched(resources, file, call, values=""):
    return Use(resources, "list watch", file, call, values, "kube/reflector.cc")


def told(file, call):
    return Use("events", "create patch", file, call, via="kube/events.cc")


def elected(lease, file, call, values=""):
    """Who makes a Lease has no name for it yet, so only a change can be held to one."""
    return (Use(LEASES, "get create", file, call, values, "kube/lease.cc"),
            Use(f"{LEASES}@{lease}", "update", file, call, values, "kube/lease.cc"))


LEASES = "leases.coordination.k8s.io"
TOPOLOGIES, FABRICS, GANGS = "nodetopologies.heddle.dev", "fabrics.heddle.dev", "gangs.heddle.dev"
LOSSLESS, DEVICES = "losslesspolicies.heddle.dev", "rdmadevicepolicies.heddle.dev"
SWITCHES, COMPUTE_DOMAINS = "fabricswitches.heddle.dev", "computedomains.resource.nvidia.com"
# What makes the pods of gangs, what of it can be suspended, and what makes that.
OWNERS = ("jobs.batch statefulsets.apps jobsets.jobset.x-k8s.io pytorchjobs.kubeflow.org mpijobs.kubeflow.org "
          "leaderworkersets.leaderworkerset.x-k8s.io rayclusters.ray.io podgroups.scheduling.k8s.io")
SWITCHED = "jobs.batch jobsets.jobset.x-k8s.io pytorchjobs.kubeflow.org mpijobs.kubeflow.org rayclusters.ray.io"
OUTER = "rayjobs.ray.io trainjobs.trainer.kubeflow.org"

PUBLISHER, POD_WATCH = "nodeagent/publish/publisher.cc", "nodeagent/devices/pod_watch.cc"
OPERATOR, NODES = "operator/daemon.cc", "operator/node_topology_reconciler.cc"
PLUGINS, PLUGIN_KINDS = "operator/plugin_objects.cc", "configmaps daemonsets.apps"
CACHE, WRITES, PREEMPTION = "extender/cluster_cache.cc", "extender/gang_writes.cc", "extender/gang_preemption.cc"

ROLES = {
    ("ClusterRole", "heddle-nodeagent"): (
        watched(TOPOLOGIES, PUBLISHER, "reflector_(client, clock, random_.Fork(), NodeTopologies()"),
        Use(f"{TOPOLOGIES}/status", "update", PUBLISHER, "client_.UpdateStatus(NodeTopologies"),
        watched("pods", POD_WATCH, "reflector_(client, clock, random, kube::kPods", "followPlans"),
        Use("pods", "list", POD_WATCH, "client_.ListAll(kube::kPods", "followPlans"),
        told("nodeagent/agent.cc", "kube::EventRecorder recorder(client")),
    ("Role", "heddle-nodeagent"): (
        # heddle-own-node holds it to the one of its node.
        Use(LEASES, "get create update", "nodeagent/agent.cc", "kube::LeaseHeartbeat>(client_",
            via="kube/lease_watch.cc"),),
    ("ClusterRole", "heddle-operator"): (
        watched("nodes", OPERATOR, "nodes_(client_, clock, random_.Fork(), kube::kNodes"),
        Use("nodes", "patch", "operator/node_label_reconciler.cc", "client_.Patch(kube::kNodes"),
        Use("nodes", "patch", PLUGINS, "labels_client_.Patch(kube::kNodes"),
        watched(TOPOLOGIES, OPERATOR, "topologies_(client_, clock, random_.Fork(), kNodeTopologies"),
        Use(TOPOLOGIES, "create", NODES, "client_.Create(kNodeTopologies"),
        Use(TOPOLOGIES, "create patch", NODES, "client_.Apply(kNodeTopologies"),
        Use(TOPOLOGIES, "patch", NODES, "client_.Patch(kNodeTopologies"),
        Use(TOPOLOGIES, "patch", "operator/policy_writes.cc", "client_.Patch(kNodeTopologies"),
        Use(TOPOLOGIES, "delete", NODES, "client_.Delete(kNodeTopologies"),
        watched(FABRICS, OPERATOR, "fabrics_(client_, clock, random_.Fork(), kFabrics"),
        Use(FABRICS, "create", "operator/fabric_reconciler.cc", "client_.Create(kFabrics"),
        Use(FABRICS, "delete", "operator/fabric_reconciler.cc", "client_.Delete(kFabrics"),
        Use(f"{FABRICS}/status", "patch", "operator/fabric_reconciler.cc", "client_.Apply(kFabrics"),
        watched(LOSSLESS, OPERATOR, "policies_(client_, clock, random_.Fork(), kLosslessPolicies"),
        watched(DEVICES, OPERATOR, "device_policies_(client_, clock, random_.Fork(), kRdmaDevicePolicies"),
        watched(SWITCHES, OPERATOR, "fabric_switches_(client_, clock, random_.Fork(), kFabricSwitches"),
        Use(f"{LOSSLESS}/status {DEVICES}/status {SWITCHES}/status", "patch", "operator/policy_writes.cc",
            "client_.Apply(kind"),
        watched(GANGS, OPERATOR, "gangs_(client_, clock, random_.Fork(), kGangs"),
        told(OPERATOR, "events_(client_, clock, random_.Fork()")),
    ("Role", "heddle-operator"): (
        Use(LEASES, "list", OPERATOR, "client_.List(kube::kLeases"),
        *elected("heddle-operator", OPERATOR, "kube::LeaseElector elector(client_"),
        Use("secrets@leaf-login", "get", "operator/secret_keys.cc", "client.Get(kSecrets", "switches"),
        Use("configmaps", "create patch", "operator/switch_reconciler.cc", "client_.Apply(kube::kConfigMaps",
            "switches"),
        Use(PLUGIN_KINDS, "list", PLUGINS, "client_.List(kind", "otherPlugins"),
        Use(PLUGIN_KINDS, "create patch", PLUGINS, "client_.Apply(kind", "otherPlugins"),
        Use(PLUGIN_KINDS, "delete", PLUGINS, "client_.Delete(kind", "otherPlugins")),
    ("ClusterRole", "heddle-extender"): (
        watched("nodes", CACHE, "nodes_(client, clock, random.Fork(), kube::kNodes"),
        watched("pods", CACHE, "pods_(client, clock, random.Fork(), kube::kPods"),
        watched(TOPOLOGIES, CACHE, "topologies_(client, clock, random.Fork(), kNodeTopologies"),
        watched(FABRICS, CACHE, "fabrics_(client, clock, random.Fork(), kFabrics"),
        Use(FABRICS, "list", CACHE, "client_.ListAll(kFabrics"),
        watched(GANGS, CACHE, "gangs_(client, clock, random.Fork(), kGangs"),
        Use(f"pods {TOPOLOGIES} {GANGS}", "list watch get", CACHE, "kube::ReadChanges(client_, resource",
            via="kube/consistent_read.cc"),
        Use(f"pods {TOPOLOGIES} {GANGS}", "get", CACHE, "client_.Get(resource"),
        Use("pods", "get", WRITES, "client_.Get(kube::kPods", "place"),
        Use("pods", "patch", WRITES, "client_.Patch(kube::kPods", "place"),
        Use("pods/eviction", "create", PREEMPTION, "client_.CreateSubresource(kube::kPods", "preemption"),
        Use("persistentvolumeclaims", "get", "extender/gang_queue.cc", "client_.Get(kClaims", "place"),
        Use("persistentvolumes", "get", "extender/gang_queue.cc", "client_.Get(kVolumes", "place"),
        watched(OWNERS, CACHE, "std::make_unique<kube::Reflector>(client_"),
        watched(OUTER, CACHE, "std::make_unique<kube::Reflector>(client_", "preemption"),
        Use(OWNERS, "list", CACHE, "client_.List(owner.resource"),
        Use(OWNERS, "get", CACHE, "client_.Get(owners_[kind].resource"),
        Use(f"{SWITCHED} {OUTER}", "get", PREEMPTION, "client_.Get(known->resource", "preemption"),
        Use(f"{SWITCHED} {OUTER}", "patch", PREEMPTION, "client_.Patch(known->resource", "preemption"),
        Use("configmaps", "get", WRITES, "client_.Get(kube::kConfigMaps", "place"),
        Use("configmaps", "create", WRITES, "client_.Create(kube::kConfigMaps", "place"),
        Use("configmaps", "update", WRITES, "client_.Update(kube::kConfigMaps", "place"),
        Use(COMPUTE_DOMAINS, "get", WRITES, "client_.Get(kComputeDomains", "computeDomains"),
        Use(COMPUTE_DOMAINS, "create", WRITES, "client_.Create(kComputeDomains", "computeDomains"),
        Use("resourceclaims.resource.k8s.io", "list", WRITES, "client_.ListAll(kResourceClaims", "computeDomains"),
        Use(GANGS, "get", WRITES, "client_.Get(kGangs"),
        Use(GANGS, "create", WRITES, "client_.Create(kGangs"),
        Use(GANGS, "delete", WRITES, "client_.Delete(kGangs"),
        Use(f"{GANGS}/status", "update", WRITES, "client_.UpdateStatus(kGangs"),
        Use("events", "list", "extender/gang_controller.cc", "client_.List(kube::kEvents"),
        told("extender/gang_controller.cc", "events_(client, clock, random.Fork()")),
    ("Role", "heddle-extender"): (
        Use(LEASES, "list", "extender/daemon.cc", "client.ListAll(kube::kLeases"),
        Use(LEASES, "get", "extender/leadership.cc", "kube::LeaseObserver observer(client_", via="kube/lease_watch.cc"),
        # --own-lease, where no scheduler of the chart is beside it.
        *elected("heddle-scheduler", "extender/leadership.cc", "kube::LeaseElector elector(client_",
                 "observe elsewhere")),
    ("Role", "heddle-scheduler"): (
        # The rest of its rights are Kubernetes' own roles, which grow with each version.
        Use(LEASES, "create", "", "kube-scheduler's own election, by client-go", "place"),
        Use(f"{LEASES}@heddle-scheduler", "get update", "", "kube-scheduler's own election, by client-go", "place")),
}
# The accounts of commands that end, and what people read: the tests that hold their roles to a list.
ELSEWHERE = {
    "heddle-uninstall": "test_what_an_uninstall_hands_back_comes_last_and_may_no_more_than_it_needs",
    "heddle-test": "test_a_test_only_reads",
    "heddle-cli": "test_the_command_in_the_cluster_is_off_and_reads_only",
    "heddle-metrics": "test_chart_monitoring.py",
    "heddle-view": "test_people_only_read",
    "heddle-fabric-view": "test_people_only_read"}
# Values, and what they turn on of the table's.
SETTINGS = (
    ({}, "place preemption"),
    ({"mode": "observe"}, "observe"),
    ({"mode": "observe", "computeDomains": {"enabled": True}}, "observe"),
    ({"extender": {"preemption": {"enabled": False}}}, "place"),
    ({"components": {"run": False}}, "place preemption elsewhere"),
    ({"computeDomains": {"enabled": True}}, "place preemption computeDomains"),
    ({"agent": {"devices": {"followPlans": True}}}, "place preemption followPlans"),
    ({"otherPlugins": {"rdmaShared": {"image": "a/b:1"}}}, "place preemption otherPlugins"),
    ({"otherPlugins": {"sriov": {"image": "a/c:1"}}}, "place preemption otherPlugins"),
    ({"operator": {"switches": {"secrets": ["leaf-login"], "render": True}}}, "place preemption switches"))


@cache
def source(file):
    """Without line breaks, so that a call is found however it is laid out."""
    return re.sub(r"\s+", " ", (REPOSITORY / file).read_text()).replace("( ", "(")


def verbs_of(calls):
    return {verb for call in calls for verb in VERBS[re.search(r"\.(\w+)\(", call)[1]].split()}


def granted(role):
    """{(resource, verb)}, resources written as in the table."""
    found = set()
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                name, slash, sub = resource.partition("/")
                title = name + (f".{group}" if group else "") + slash + sub
                found |= {(title + (f"@{one}" if one else ""), verb) for one in rule.get("resourceNames", [""])
                          for verb in rule["verbs"]}
    return found


def used(uses, on):
    return {(resource, verb) for use in uses if not use.values or set(use.values.split()) & set(on.split())
            for resource in use.resources.split() for verb in use.verbs.split()}


class NothingToSpareTest(ChartTextTestCase):

    def test_the_chart_grants_what_the_table_says_and_nothing_else(self):
        for values, on in SETTINGS:
            objects = self.objects(values)
            for (kind, name), uses in ROLES.items():
                with self.subTest(values=values, role=f"{kind} {name}"):
                    wanted = used(uses, on)
                    # A role of nothing is none.
                    there = granted(named(objects, kind, name)) if wanted or name in names(objects, kind) else set()
                    self.assertEqual(sorted(there - wanted), [], "no call takes it: out of rbac.yaml, or name the call")
                    self.assertEqual(sorted(wanted - there), [], "a call takes it, and rbac.yaml does not grant it")

    def test_the_table_names_calls_that_are_there_and_ask_for_those_verbs(self):
        for (kind, name), uses in ROLES.items():
            for use in filter(lambda one: one.file, uses):
                with self.subTest(role=f"{kind} {name}", resources=use.resources, verbs=use.verbs):
                    self.assertIn(use.call, source(use.file))
                    makes = verbs_of(CALL.findall(source(use.via)) if use.via else [use.call])
                    self.assertLessEqual(set(use.verbs.split()), makes)

    def test_every_call_of_the_programs_is_in_the_table(self):
        known = {(use.file, use.call) for uses in ROLES.values() for use in uses}
        found = {(str(file.relative_to(REPOSITORY)), call) for program in PROGRAMS
                 for pattern in ("*.cc", "*.h") for file in sorted((REPOSITORY / program).rglob(pattern))
                 for call in CALL.findall(source(file.relative_to(REPOSITORY)))}
        self.assertGreater(len(found), 30)
        self.assertEqual(sorted(found - known), [], "say here which right it takes")

    def test_the_kinds_that_make_pods_are_those_of_the_code(self):
        kind = r'"([a-z.0-9-]+)", "\w+", "(\w+)", "\w+"'
        owners = source("extender/owner_kinds.cc")
        self.assertIn("kube::kJobs", owners)
        listed = re.findall(rf"CustomResource\({kind}, true\)", owners) + re.findall(rf"\{{\{{{kind}, true\}}", owners)
        self.assertEqual({f"{plural}.{group}" for group, plural in listed} | {"jobs.batch"}, set(OWNERS.split()))
        switches = re.findall(rf"custom\({kind}\), \w+, (\w+)\}}", source("kube/suspend_switch.cc"))
        made = {makes: {f"{plural}.{group}" for group, plural, said in switches if said == makes}
                for makes in ("false", "true")}
        self.assertEqual(made["false"] | {"jobs.batch"}, set(SWITCHED.split()))
        self.assertEqual(made["true"], set(OUTER.split()))

    def test_a_policy_says_which_config_maps_the_operator_writes_wherever_it_may_write_any(self):
        """By the names that its code gives, and so none of the chart's own."""
        plugins = source("operator/other_plugins.cc")
        self.assertIn('fmt::format("heddle-{}-{}", FactsOf', plugins)
        given = [f"heddle-{plugin}-" for plugin in re.findall(r'return \{"([a-z-]+)", "/', plugins)]
        given += re.findall(r'kMapPrefix = "([a-z-]+)";', source("operator/switch_reconciler.cc"))
        self.assertEqual(len(given), 3)
        for values, _ in SETTINGS:
            with self.subTest(values=values):
                objects = self.objects(values)
                rights = granted(named(objects, "Role", "heddle-operator"))
                writes = "configmaps" in {resource for resource, _ in rights}
                for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"):
                    self.assertEqual("heddle-operator-maps" in names(objects, kind), writes, kind)
                if not writes:
                    continue
                policy = named(objects, "ValidatingAdmissionPolicy", "heddle-operator-maps")["spec"]
                of_it = re.compile(re.search(r"matches\('(.+)'\)", policy["validations"][0]["expression"])[1])
                self.assertEqual([name for name in given if not of_it.match(name + "x")], [])
                self.assertEqual([name for name in names(objects, "ConfigMap") if of_it.match(name)], [])
                operations = policy["matchConstraints"]["resourceRules"][0]["operations"]
                self.assertEqual(operations, ["CREATE", "UPDATE", "DELETE"])

    def test_no_other_role_is_made_than_those_that_are_held_to_a_list(self):
        monitored = {"podMonitors": {"enabled": True, "scheduler": True}}
        roles = names(self.objects({"cli": {"enabled": True}, "monitoring": monitored}), "ClusterRole", "Role")
        self.assertEqual(roles, {name for _, name in ROLES} | set(ELSEWHERE))

    def test_who_observes_has_no_account_that_may_bind_or_delete_a_pod(self):
        """No scheduler runs, so what it would have is not made: its account, bindings, Lease and configuration."""
        for run in (True, False):
            with self.subTest(run=run):
                place = self.objects({"components": {"run": run}})
                observe = self.objects({"components": {"run": run}, "mode": "observe"})
                everywhere = {"ServiceAccount", "Role", "RoleBinding", "ClusterRoleBinding", "ConfigMap"}
                of_it = {(one["kind"], one["metadata"]["name"]) for one in place
                         if one["metadata"]["name"].startswith("heddle-scheduler")}
                self.assertLessEqual(everywhere, {kind for kind, _ in of_it})
                self.assertEqual(of_it & {(one["kind"], one["metadata"]["name"]) for one in observe}, set())
                self.assertFalse([one["metadata"]["name"] for one in observe for subject in one.get("subjects", [])
                                  if subject["name"] == "heddle-scheduler"])
                self.assertFalse([one["metadata"]["name"] for one in observe
                                  if one.get("roleRef", {}).get("name", "").startswith("system:")])
                flows = [subject["serviceAccount"]["name"] for one in observe if one["kind"] == "FlowSchema"
                         for rule in one["spec"]["rules"] for subject in rule["subjects"]]
                self.assertIn("heddle-extender", flows)
                self.assertNotIn("heddle-scheduler", flows)

    def test_policies_of_who_observes_only_refuse_and_the_page_names_them(self):
        objects = self.objects({"mode": "observe", "computeDomains": {"enabled": True}})
        self.assertEqual(names(objects, "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"), set())
        stay = names(objects, "ValidatingAdmissionPolicy")
        self.assertEqual(stay, {"heddle-plan", "heddle-ranks", "heddle-own-node"})
        page = (REPOSITORY / "docs" / "observe.md").read_text()
        self.assertEqual({name for name in stay if f"`{name}`" not in page}, set())

    def test_people_only_read(self):
        objects = self.objects()
        for name in ("heddle-view", "heddle-fabric-view"):
            verbs = {verb for _, verb in granted(named(objects, "ClusterRole", name))}
            self.assertEqual(verbs, {"get", "list", "watch"}, name)
