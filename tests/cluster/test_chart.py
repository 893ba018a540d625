"""charts/heddle on a real apiserver: what its policies do, and what its accounts may."""

import json
import re

from bed import REPOSITORY, ApiError, Heddle, path
from bed.heddle import CHART, NAMESPACE, TRAINING_NAMESPACE
from bed.process import run
from bed.testing import BedTestCase, indexed_job

GATE = "heddle.dev/gang"
GANG = {"heddle.dev/parallelism": "tp=8"}
PLAN_ANNOTATIONS = ("rank", "gpus", "nics", "gang-uid", "epoch", "node", "substitutes")


def container(name="worker", **limits):
    return {"name": name, "image": "train", "resources": {"limits": {key: str(value) for key, value in limits.items()}}}


def gpu_container(name="worker", gpus=1):
    return container(name, **{"nvidia.com/gpu": gpus})


def pod(*containers, name=None, annotations=None, **spec):
    metadata = {"annotations": dict(annotations or {})} | ({"name": name} if name else {"generateName": "probe-"})
    return {"metadata": metadata, "spec": {"containers": list(containers) or [gpu_container()]} | spec}


def gates(made):
    return [gate["name"] for gate in made["spec"].get("schedulingGates", [])]


class ChartTestCase(BedTestCase):

    @classmethod
    def set_up_bed(cls):
        cls.nodes.add_plain("node-a", "node-b")
        # No daemon of Heddle runs in these tests.
        cls.heddle = Heddle(cls.plane, binaries=REPOSITORY / "build")
        cls.heddle.install()
        cls.rest = cls.plane.rest

    def helm(self, *arguments, **keywords):
        return run([self.plane.binaries / "helm", *arguments], environment=self.plane.tool_environment(), **keywords)

    def dry_create(self, body, namespace=TRAINING_NAMESPACE, rest=None):
        return (rest or self.rest).create(path("pods", namespace), body, dryRun="All")

    def make(self, body, rest=None):
        """A pod that is deleted after the test."""
        made = (rest or self.rest).create(path("pods", TRAINING_NAMESPACE), body)
        where = path("pods", TRAINING_NAMESPACE, made["metadata"]["name"])
        self.addCleanup(self.rest.delete, where, gracePeriodSeconds=0)
        return made, where

    def assert_refused(self, sentence, call, *arguments, **keywords):
        """By a policy or by RBAC, in words that contain `sentence`."""
        with self.assertRaises(ApiError) as refused:
            call(*arguments, **keywords)
        self.assertEqual(refused.exception.status, 403, refused.exception)
        self.assertIn(sentence, refused.exception.message)


class MutatingPolicyTest(ChartTestCase):

    def test_a_gpu_pod_is_routed_and_nothing_else(self):
        made = self.dry_create(pod())
        self.assertEqual(made["spec"]["schedulerName"], "heddle")
        self.assertEqual(gates(made), [])
        self.assertEqual(made["spec"]["containers"][0]["resources"]["limits"], {"nvidia.com/gpu": "1"})

    def test_a_gpu_of_an_init_container_routes_too(self):
        made = self.dry_create(pod(container(cpu=1), initContainers=[gpu_container("warm-up")]))
        self.assertEqual(made["spec"]["schedulerName"], "heddle")

    def test_a_pod_without_a_gpu_is_left_alone(self):
        for body in (pod(container(cpu=1)), pod(gpu_container(gpus=0)), pod({"name": "bare", "image": "train"}),
                     pod(container(cpu=1), annotations=GANG)):
            with self.subTest(body=body["spec"]):
                made = self.dry_create(body)
                self.assertEqual(made["spec"]["schedulerName"], "default-scheduler")
                self.assertEqual(gates(made), [])

    def test_a_pod_outside_the_scope_is_left_alone(self):
        made = self.dry_create(pod(annotations=GANG), namespace="default")
        self.assertEqual((made["spec"]["schedulerName"], gates(made)), ("default-scheduler", []))

    def test_a_pod_of_another_scheduler_is_left_alone(self):
        made = self.dry_create(pod(annotations=GANG, schedulerName="volcano"))
        self.assertEqual((made["spec"]["schedulerName"], gates(made)), ("volcano", []))

    def test_a_bound_pod_is_left_alone(self):
        made = self.dry_create(pod(annotations=GANG, nodeName="node-a"))
        self.assertEqual((made["spec"]["schedulerName"], gates(made)), ("default-scheduler", []))

    def test_a_gang_pod_is_gated_and_asks_for_the_fabric_once(self):
        body = pod(container("proxy", cpu=2), gpu_container("first", 4), gpu_container("second", 4), annotations=GANG,
                   schedulingGates=[{"name": "kueue.x-k8s.io/topology"}])
        body["spec"]["containers"][1]["resources"]["limits"]["memory"] = "1Gi"
        made = self.dry_create(body)
        self.assertEqual(made["spec"]["schedulerName"], "heddle")
        self.assertEqual(sorted(gates(made)), [GATE, "kueue.x-k8s.io/topology"])
        proxy, first, second = made["spec"]["containers"]
        self.assertEqual([c["name"] for c in made["spec"]["containers"]], ["proxy", "first", "second"])
        wanted = {"nvidia.com/gpu": "4", "memory": "1Gi", "heddle.dev/fabric": "1"}
        self.assertEqual(first["resources"], {"limits": wanted, "requests": wanted})
        self.assertEqual(second["resources"]["limits"], {"nvidia.com/gpu": "4"})
        self.assertEqual(proxy["resources"]["limits"], {"cpu": "2"})

    def test_a_pod_that_was_prepared_already_stays_as_it_is(self):
        limits = {"nvidia.com/gpu": "8", "heddle.dev/fabric": "1"}
        made = self.dry_create(pod(container(**limits), annotations=GANG, schedulerName="heddle",
                                   schedulingGates=[{"name": GATE}]))
        self.assertEqual(made["spec"]["containers"][0]["resources"], {"limits": limits, "requests": limits})
        self.assertEqual(gates(made), [GATE])

    def test_a_gang_pod_does_not_ask_for_the_fabric_where_no_agent_offers_it(self):
        def limits():
            return self.dry_create(pod(annotations=GANG))["spec"]["containers"][0]["resources"]["limits"]

        def restored():
            self.heddle.install()
            self.plane.wait_for(lambda: "heddle.dev/fabric" in limits(), "gang pods to ask for the fabric again")
        self.addCleanup(restored)
        self.heddle.install(agent={"devices": {"enabled": False}})
        self.plane.wait_for(lambda: limits() == {"nvidia.com/gpu": "1"}, "gang pods to ask for their GPUs alone")
        made = self.dry_create(pod(annotations=GANG))
        self.assertEqual((made["spec"]["schedulerName"], gates(made)), ("heddle", [GATE]))

    def test_the_pods_of_a_job_wait_behind_the_gate(self):
        self.rest.create(path("jobs", TRAINING_NAMESPACE), indexed_job("gang", pods=4, gpus=2, annotations=GANG))
        self.addCleanup(self.rest.delete, path("jobs", TRAINING_NAMESPACE, "gang"), propagationPolicy="Background")

        def gated():
            pods = self.plane.pods(TRAINING_NAMESPACE, "batch.kubernetes.io/job-name=gang")
            reasons = [c.get("reason") for p in pods for c in p["status"].get("conditions", [])
                       if c["type"] == "PodScheduled"]
            return reasons == ["SchedulingGated"] * 4 or reasons
        self.assertIs(self.plane.wait_for(lambda: gated() is True, "four gated pods"), True)

    def test_scope_cluster_takes_every_namespace_but_two(self):
        self.heddle.install(scope="cluster")
        self.addCleanup(self.heddle.install)
        self.plane.wait_for(lambda: self.dry_create(pod(), "default")["spec"]["schedulerName"] == "heddle",
                            "the wider scope to be in force")
        for namespace in (NAMESPACE, "kube-system"):
            self.plane.wait_for_account(namespace, "default")
            self.assertEqual(self.dry_create(pod(), namespace)["spec"]["schedulerName"], "default-scheduler")

    def test_observing_touches_no_pod(self):
        self.heddle.install(mode="observe")
        self.addCleanup(self.heddle.install)
        self.plane.wait_for(
            lambda: self.dry_create(pod(annotations=GANG))["spec"]["schedulerName"] == "default-scheduler",
            "pods to be left alone")
        self.assertEqual(gates(self.dry_create(pod(annotations=GANG))), [])

    def test_the_cluster_that_is_asked_has_the_last_word(self):
        """`auto` by the cluster's own list, and a policy that is not wanted goes by an upgrade."""
        self.heddle.install(wait=False, mutatingPolicies="never")
        self.addCleanup(self.heddle.install)
        self.plane.wait_for(
            lambda: self.dry_create(pod(annotations=GANG))["spec"]["schedulerName"] == "default-scheduler",
            "pods to be left alone")
        self.heddle.install(mutatingPolicies="always")
        self.plane.wait_for(lambda: gates(self.dry_create(pod(annotations=GANG))) == [GATE], "gang pods to be gated")

    def test_further_resources_can_be_managed(self):
        self.heddle.install(managedResources=["nvidia.com/gpu", "amd.com/gpu"])
        self.addCleanup(self.heddle.install)
        body = pod(container(**{"amd.com/gpu": 8}), annotations=GANG)
        self.plane.wait_for(lambda: gates(self.dry_create(body)) == [GATE], "the other resource to be managed")


class PlanGuardTest(ChartTestCase):

    def setUp(self):
        self.extender = self.plane.account_rest(NAMESPACE, "heddle-extender")

    @staticmethod
    def release(made):
        """As the extender releases: tests on uid and gate, the gate removed, the plan noted."""
        index = gates(made).index(GATE)
        annotations = {"heddle.dev/rank": "0", "heddle.dev/gpus": "0,1", "heddle.dev/epoch": "1"}
        return [
            {"op": "test", "path": "/metadata/uid", "value": made["metadata"]["uid"]},
            {"op": "test", "path": f"/spec/schedulingGates/{index}/name", "value": GATE},
            {"op": "remove", "path": f"/spec/schedulingGates/{index}"},
            {"op": "add", "path": "/spec/affinity", "value": {"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-a"]}]}]}}}},
        ] + [{"op": "add", "path": "/metadata/annotations/" + key.replace("/", "~1"), "value": value}
             for key, value in annotations.items()]

    def test_the_extender_releases_a_pod(self):
        made, where = self.make(pod(annotations=GANG))
        released = self.extender.patch(where, self.release(made), "json")
        self.assertEqual(gates(released), [])
        self.assertEqual(released["metadata"]["annotations"]["heddle.dev/gpus"], "0,1")

    def test_nobody_else_removes_the_gate(self):
        made, where = self.make(pod(annotations=GANG))
        index = gates(made).index(GATE)
        removal = [{"op": "remove", "path": f"/spec/schedulingGates/{index}"}]
        sentence = "only heddle-extender removes the gate heddle.dev/gang"
        self.assert_refused(sentence, self.rest.patch, where, removal, "json")
        scheduler = self.rest.as_user("system:serviceaccount:heddle-system:heddle-scheduler", ["system:masters"])
        self.assert_refused(sentence, scheduler.patch, where, removal, "json")

    def test_others_remove_their_own_gates(self):
        made, where = self.make(pod(annotations=GANG, schedulingGates=[{"name": "kueue.x-k8s.io/topology"}]))
        index = gates(made).index("kueue.x-k8s.io/topology")
        after = self.rest.patch(where, [{"op": "remove", "path": f"/spec/schedulingGates/{index}"}], "json")
        self.assertEqual(gates(after), [GATE])

    def test_nobody_else_writes_the_plan(self):
        made, where = self.make(pod(annotations=GANG))
        self.extender.patch(where, {"metadata": {"annotations": {"heddle.dev/rank": "3"}}})
        for word in PLAN_ANNOTATIONS:
            key = f"heddle.dev/{word}"
            forged = {"metadata": {"annotations": {key: "7"}}}
            with self.subTest(key=key):
                self.assert_refused(f"only heddle-extender writes {key}", self.rest.patch, where, forged)
                self.assert_refused(f"only heddle-extender writes {key}", self.rest.patch, where + "/status", forged)
                self.assert_refused(f"only heddle-extender writes {key}", self.dry_create, pod(annotations={key: "7"}))
        self.assert_refused("only heddle-extender writes heddle.dev/rank", self.rest.patch, where,
                            {"metadata": {"annotations": {"heddle.dev/rank": None}}})

    def test_a_binding_carries_no_plan_either(self):
        made, where = self.make(pod(container(cpu=1), schedulerName="nobody"))
        binding = {"apiVersion": "v1", "kind": "Binding",
                   "metadata": {"name": made["metadata"]["name"], "annotations": {"heddle.dev/gpus": "0"}},
                   "target": {"kind": "Node", "name": "node-a"}}
        for to in (where + "/binding", f"/api/v1/namespaces/{TRAINING_NAMESPACE}/bindings"):
            self.assert_refused("only heddle-extender writes heddle.dev/gpus", self.rest.create, to, binding)
        del binding["metadata"]["annotations"]
        self.rest.create(where + "/binding", binding)

    def test_other_annotations_and_updates_are_free(self):
        made, where = self.make(pod(annotations=GANG))
        self.extender.patch(where, {"metadata": {"annotations": {"heddle.dev/rank": "3"}}})
        after = self.rest.patch(where, {"metadata": {"annotations": {"team": "blue", "heddle.dev/wait": "5m"}}})
        self.assertEqual(after["metadata"]["annotations"]["team"], "blue")
        self.rest.patch(where + "/status", {"status": {"message": "seen"}})

    def test_a_job_with_a_forged_template_makes_no_pods(self):
        forged = GANG | {"heddle.dev/gpus": "0"}
        self.rest.create(path("jobs", TRAINING_NAMESPACE), indexed_job("forged", pods=1, gpus=1, annotations=forged))
        self.addCleanup(self.rest.delete, path("jobs", TRAINING_NAMESPACE, "forged"), propagationPolicy="Background")

        def refused():
            return [event["message"] for event in self.rest.list(path("events", TRAINING_NAMESPACE))
                    if event["involvedObject"]["name"] == "forged" and event["reason"] == "FailedCreate"]
        self.assertIn("only heddle-extender writes heddle.dev/gpus",
                      self.plane.wait_for(refused, "the Job's FailedCreate event")[0])


class OwnNodeTest(ChartTestCase):

    @classmethod
    def set_up_bed(cls):
        super().set_up_bed()
        for node in ("node-a", "node-b"):
            cls.rest.create(path("nodetopologies"), {
                "apiVersion": "heddle.dev/v1alpha1", "kind": "NodeTopology", "metadata": {"name": node}})
        cls.agent = cls.plane.account_rest(NAMESPACE, "heddle-nodeagent", node="node-a")

    STATUS = {"status": {"agentVersion": "0.1.0"}}

    def topology(self, name):
        return self.rest.get(path("nodetopologies", name=name))

    def mighty(self):
        """The agent of node-a, where somebody bound its account to more than our ClusterRole."""
        return self.rest.as_user(f"system:serviceaccount:{NAMESPACE}:heddle-nodeagent", ["system:masters"],
                                 {"authentication.kubernetes.io/node-name": "node-a"})

    def test_an_agent_writes_the_status_of_its_own_node(self):
        where = path("nodetopologies", name="node-a", sub="status")
        written = self.agent.replace(where, self.topology("node-a") | self.STATUS)
        self.assertEqual(written["status"]["agentVersion"], "0.1.0")

    def test_an_agent_does_not_write_a_peers(self):
        sentence = "the agent of node node-a writes the status of the NodeTopology node-a only"
        where = path("nodetopologies", name="node-b", sub="status")
        self.assert_refused(sentence, self.agent.replace, where, self.topology("node-b") | self.STATUS)
        self.assert_refused(sentence, self.agent.replace, where, self.topology("node-b"))

    def test_an_agent_without_a_node_writes_nothing(self):
        nobody = self.plane.account_rest(NAMESPACE, "heddle-nodeagent")
        self.assert_refused("bound to no node", nobody.replace, path("nodetopologies", name="node-a", sub="status"),
                            self.topology("node-a") | self.STATUS)

    def test_the_policy_holds_even_with_more_rights(self):
        mighty = self.mighty()
        own = path("nodetopologies", name="node-a", sub="status")
        mighty.patch(own, self.STATUS)
        applied = {"apiVersion": "heddle.dev/v1alpha1", "kind": "NodeTopology", "metadata": {"name": "node-a"},
                   "status": {"agentVersion": "0.2.0"}}
        mighty.patch(own, applied, "apply", fieldManager="heddle-nodeagent", force=True)
        self.assert_refused("writes the status", mighty.patch, path("nodetopologies", name="node-b", sub="status"),
                            self.STATUS)
        self.assert_refused("writes the status", mighty.patch, path("nodetopologies", name="node-a"),
                            {"metadata": {"labels": {"mine": "yes"}}})
        self.assert_refused("writes the status", mighty.delete, path("nodetopologies", name="node-a"))
        self.assert_refused("writes the Lease", mighty.create, path("leases", "default"),
                            {"metadata": {"name": "heddle-node-node-a"}})

    def test_an_agent_writes_its_own_lease_only(self):
        leases = path("leases", NAMESPACE)
        mine = self.agent.create(leases, {"metadata": {"name": "heddle-node-node-a"}})
        self.agent.replace(f"{leases}/heddle-node-node-a", mine | {"spec": {"holderIdentity": "node-a"}})
        sentence = "writes the Lease heddle-system/heddle-node-node-a only"
        for body in ({"name": "heddle-node-node-b"}, {"name": "heddle-scheduler"}, {"generateName": "heddle-node-"}):
            with self.subTest(body=body):
                self.assert_refused(sentence, self.agent.create, leases, {"metadata": body})
        theirs = self.rest.create(leases, {"metadata": {"name": "heddle-node-node-b"}})
        self.assert_refused(sentence, self.agent.replace, f"{leases}/heddle-node-node-b",
                            theirs | {"spec": {"holderIdentity": "node-a"}})

    def test_an_agent_tells_of_its_own_node_only(self):
        def event(kind, name, key="involvedObject"):
            about = {"kind": kind, "name": name, "uid": name, "apiVersion": "v1"}
            return {"metadata": {"generateName": "heddle-"}, key: about, "reason": "RailDown", "type": "Warning"}
        events = path("events", "default")
        made = self.agent.create(events, event("Node", "node-a"))
        self.agent.patch(path("events", "default", made["metadata"]["name"]), {"count": 2})
        self.agent.create(events, event("NodeTopology", "node-a"))
        sentence = "the agent of node node-a writes events about the Node node-a only"
        for wrong in (event("Node", "node-b"), event("Pod", "node-a")):
            with self.subTest(about=wrong["involvedObject"]):
                self.assert_refused(sentence, self.agent.create, events, wrong)
        # Nor is what somebody else said made into a word about its own node.
        for theirs in (event("Node", "node-b"), event("Pod", "node-a")):
            name = self.rest.create(events, theirs)["metadata"]["name"]
            mine = event("Node", "node-a")["involvedObject"]
            for patch in ({"involvedObject": mine}, {"involvedObject": mine, "message": "all is well"}, {"count": 2}):
                with self.subTest(about=theirs["involvedObject"], patch=patch):
                    self.assert_refused(sentence, self.agent.patch, path("events", "default", name), patch)
            self.assertEqual(theirs["involvedObject"], self.rest.get(path("events", "default", name))["involvedObject"])
        # It has no right on events by the name of their newer group; who had would be held to the same.
        newer = event("Node", "node-b", "regarding") | {
            "action": "Looked", "eventTime": "2026-01-02T03:04:05.000000Z", "reportingController": "heddle.dev/agent",
            "reportingInstance": "node-a"}
        where = "/apis/events.k8s.io/v1/namespaces/default/events"
        self.assert_refused('cannot create resource "events" in API group "events.k8s.io"', self.agent.create, where, newer)
        self.assert_refused(sentence, self.mighty().create, where, newer)

    def test_others_are_not_held_to_it(self):
        operator = self.plane.account_rest(NAMESPACE, "heddle-operator")
        operator.patch(path("nodetopologies", name="node-b"), {"metadata": {"labels": {"seen": "yes"}}})


def yaml_documents(plane, rendered):
    """What helm rendered, as objects: kubectl reads YAML, and Python alone does not."""
    text = plane.kubectl("create", "--dry-run=client", "-o", "json", "-f", "-", stdin=rendered).strip()
    found = []
    while text:
        one, end = json.JSONDecoder().raw_decode(text)
        found += one["items"] if one["kind"] == "List" else [one]
        text = text[end:].lstrip()
    return found


class InstallTest(ChartTestCase):

    def test_lint_is_clean(self):
        said = self.helm("lint", "--strict", CHART).stdout
        self.assertNotIn("[WARNING]", said)
        self.assertNotIn("[ERROR]", said)

    def test_unknown_and_wrong_values_are_refused(self):
        for wrong in ("typo=1", "mode=off", "scope=node", "extender.port=0", "extender.spares=-1", "computeDomains.enabled=maybe",
                      "agent.prot=1", "agent.port=0"):
            with self.subTest(wrong=wrong):
                done = self.helm("template", "heddle", CHART, "--set", wrong, check=False)
                self.assertNotEqual(done.returncode, 0, done.stdout[:200])
                self.assertIn("values don't meet the specifications of the schema", done.stderr)

    def test_spares_are_kept_only_where_somebody_asked_for_them(self):
        # Who observes says what would be placed with them.
        for mode in ("place", "observe"):
            for spares, wanted in ((0, False), (2, True)):
                rendered = self.helm("template", "heddle", CHART, "--set", f"extender.spares={spares}", "--set",
                                     f"mode={mode}").stdout
                self.assertEqual(f"- --spares={spares}\n" in rendered, wanted, mode)

    def test_images_are_looked_for_where_the_values_say(self):
        upstream, ours = "registry.k8s.io/kube-scheduler:v1.36.3", "heddle:0.1.0"
        for values, version, wanted in (
                ((), "v1.36.3", {upstream, ours}),
                # What vendors call their clusters is no tag of upstream's, and a + is in no tag at all.
                ((), "v1.36.3+k3s1", {upstream, ours}),
                ((), "v1.36.3-gke.1201000", {upstream, ours}),
                # What comes before a release has images of its own, and there is none of the release yet.
                ((), "v1.37.0-rc.1+k3s1", {"registry.k8s.io/kube-scheduler:v1.37.0-rc.1", ours}),
                ((), "v1.37.0-alpha.2.45+0a1b2c", {"registry.k8s.io/kube-scheduler:v1.37.0-alpha.2", ours}),
                (("image.registry=reg.example/ai/",), "v1.36.3",
                 {"reg.example/ai/kube-scheduler:v1.36.3", "reg.example/ai/heddle:0.1.0"}),
                (("image.registry=reg.example", "image.tag=next", "scheduler.image.registry=mirror.example",
                  "scheduler.image.tag=v1.36.1-eks"), "v1.36.3",
                 {"mirror.example/kube-scheduler:v1.36.1-eks", "reg.example/heddle:next"})):
            with self.subTest(values=values, version=version):
                setting = [word for value in values for word in ("--set", value)]
                rendered = self.helm("template", "heddle", CHART, "--kube-version", version, *setting).stdout
                self.assertEqual(set(re.findall(r'image: "(.*)"', rendered)), wanted)

    def test_only_the_agents_are_root(self):
        rendered = yaml_documents(self.plane, self.helm("template", "heddle", CHART, "--namespace", NAMESPACE).stdout)
        pods = {one["metadata"]["name"]: one["spec"]["template"]["spec"]["securityContext"] for one in rendered
                if one["kind"] in ("Deployment", "DaemonSet")}
        self.assertEqual({name: (pod["runAsUser"], pod.get("runAsNonRoot", False)) for name, pod in pods.items()}, {
            "heddle-nodeagent": (0, False), "heddle-operator": (65532, True), "heddle-scheduler": (65532, True)})

    def test_the_chart_carries_the_crds_of_the_tree(self):
        sources = sorted((REPOSITORY / "crds").glob("*.yaml"))
        self.assertTrue(sources)
        for source in sources:
            # The server fills defaults in alike on both sides; a dry run of the source shows what it would be.
            wanted = json.loads(self.plane.kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server",
                                                   "--field-manager=helm", "-o", "json", "-f", source))
            with self.subTest(crd=wanted["metadata"]["name"]):
                there = self.rest.get(path("customresourcedefinitions", name=wanted["metadata"]["name"]))
                self.assertEqual(there["spec"], wanted["spec"])
                self.assertEqual(there["metadata"]["annotations"]["helm.sh/resource-policy"], "keep")

    def test_the_packaged_chart_is_whole(self):
        folder = self.plane.folder / "package"
        self.helm("package", CHART, "--destination", folder)
        archive = next(folder.glob("heddle-*.tgz"))
        names = run(["tar", "-tzf", archive]).stdout
        for crd in ("nodetopologies", "fabrics", "gangs", "losslesspolicies", "rdmadevicepolicies", "fabricswitches"):
            self.assertIn(f"heddle/files/crds/{crd}.yaml", names)
        self.assertNotIn(".h\n", names)
        self.assertEqual(self.helm("template", "heddle", archive).stdout, self.helm("template", "heddle", CHART).stdout)

    def test_the_workloads_are_valid(self):
        # What hooks make is made one after the other: test_chart_in_a_cluster.py.
        rendered = self.helm("template", "heddle", CHART, "--no-hooks", "--namespace", NAMESPACE, "--set", "cli.enabled=true",
                             "--api-versions", "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy").stdout
        said = self.plane.kubectl("apply", "--server-side", "--dry-run=server", "--force-conflicts", "-f", "-",
                                  stdin=rendered)
        for workload in ("deployment.apps/heddle-operator", "deployment.apps/heddle-scheduler", "deployment.apps/heddle-cli",
                         "daemonset.apps/heddle-nodeagent", "secret/heddle-scheduler-token"):
            self.assertIn(workload, said)

    def test_who_only_observes_runs_no_scheduler_and_may_touch_no_pod(self):
        rendered = self.helm("template", "heddle", CHART, "--no-hooks", "--namespace", NAMESPACE, "--set", "mode=observe", "--api-versions",
                             "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy").stdout
        said = self.plane.kubectl("apply", "--server-side", "--dry-run=server", "--force-conflicts", "-f", "-",
                                  stdin=rendered)
        self.assertIn("deployment.apps/heddle-observer", said)
        self.assertNotIn("deployment.apps/heddle-scheduler", said)
        self.assertNotIn("mutatingadmissionpolicy", said)
        role = next(one for one in yaml_documents(self.plane, rendered)
                    if one["kind"] == "ClusterRole" and one["metadata"]["name"] == "heddle-extender")
        rights = [(resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]]
        self.assertEqual([right for right in rights if right[1] not in ("get", "list", "watch")
                          and right[0] not in ("gangs", "gangs/status", "events")], [])

    def test_without_preemption_nothing_can_be_stopped(self):
        def rendered(*arguments):
            return yaml_documents(self.plane, self.helm("template", "heddle", CHART, "--namespace", NAMESPACE, *arguments).stdout)

        def part(documents, kind, name):
            return next(one for one in documents if (one["kind"], one["metadata"]["name"]) == (kind, name))
        off = rendered("--set", "extender.preemption.enabled=false")
        rights = [(resource, verb) for rule in part(off, "ClusterRole", "heddle-extender")["rules"]
                  for resource in rule["resources"] for verb in rule["verbs"]]
        self.assertEqual({right for right in rights if right[1] not in ("get", "list", "watch")}, {
            ("pods", "patch"), ("configmaps", "create"), ("configmaps", "update"), ("gangs", "create"), ("gangs", "delete"),
            ("gangs/status", "update"), ("events", "create"), ("events", "patch")})
        command = part(off, "Deployment", "heddle-scheduler")["spec"]["template"]["spec"]["containers"][1]["command"]
        self.assertIn("--preemption=off", command)
        config = json.loads(part(off, "ConfigMap", "heddle-scheduler")["data"]["config.json"])
        self.assertEqual(config["profiles"][0]["plugins"]["postFilter"], {"disabled": [{"name": "DefaultPreemption"}]})
        self.assertNotIn("preemptVerb", config["extenders"][0])
        on = json.loads(part(rendered(), "ConfigMap", "heddle-scheduler")["data"]["config.json"])
        self.assertNotIn("postFilter", on["profiles"][0]["plugins"])
        self.assertEqual(on["extenders"][0]["preemptVerb"], "preempt")

    def test_compute_domains_bring_their_rights_only_where_they_are_enabled(self):
        def rights(*arguments):
            rendered = yaml_documents(self.plane, self.helm("template", "heddle", CHART, "--namespace", NAMESPACE, *arguments).stdout)
            role = next(one for one in rendered if (one["kind"], one["metadata"]["name"]) == ("ClusterRole", "heddle-extender"))
            return {(resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]
                    if resource in ("computedomains", "resourceclaims")}
        self.assertEqual(rights(), set())
        self.assertEqual(rights("--set", "computeDomains.enabled=true"), {
            ("computedomains", "get"), ("computedomains", "create"), ("resourceclaims", "list")})
        self.assertEqual(rights("--set", "computeDomains.enabled=true", "--set", "mode=observe"), set())

    def test_the_operator_reads_the_secrets_of_switches_that_the_values_name_and_writes_maps_only_to_render(self):
        def rules(*arguments):
            rendered = yaml_documents(self.plane, self.helm("template", "heddle", CHART, "--namespace", NAMESPACE, *arguments).stdout)
            role = next(one for one in rendered if (one["kind"], one["metadata"]["name"]) == ("Role", "heddle-operator"))
            return [rule for rule in role["rules"] if rule["resources"] in (["secrets"], ["configmaps"])]
        self.assertEqual(rules(), [])
        self.assertEqual(rules("--set", "operator.switches.secrets={leaf-login,leaf-ca}", "--set", "operator.switches.render=true"), [
            {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["leaf-login", "leaf-ca"], "verbs": ["get"]},
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "patch"]}])

    def test_the_scheduler_takes_the_chart_s_configuration(self):
        self.heddle.start_scheduler()
        self.assertTrue(self.plane.audit(user=f"system:serviceaccount:{NAMESPACE}:heddle-scheduler", verb="create",
                                         resource="leases", name="heddle-scheduler", code=201))
        self.assertEqual(self.heddle.stop_daemon("scheduler"), 0)
        log = (self.plane.logs / "scheduler.log").read_text()
        self.assertNotIn("forbidden", log.lower())

    def test_accounts_may_what_they_need_and_no_more(self):
        # Which rights there are stands whole in test_chart_rights.py. Here the server says what they come to, with those of
        # all roles and bindings; and the daemons run elsewhere, so that an extender may hold the Lease of the scheduler.
        ours, leases = "heddle.dev", "coordination.k8s.io"
        table = {
            "nodeagent": (
                [("update", ours, "nodetopologies/status"), ("watch", ours, "nodetopologies"),
                 ("create", "", "events"), ("patch", "", "events"), ("create", leases, "leases"), ("update", leases, "leases")],
                [("patch", ours, "nodetopologies/status"), ("patch", ours, "nodetopologies"),
                 ("create", ours, "nodetopologies"), ("patch", "", "nodes"),
                 ("get", "", "nodes"), ("list", "", "nodes"), ("delete", "", "events"), ("list", "", "events"),
                 ("create", "events.k8s.io", "events"), ("list", "", "pods"), ("delete", leases, "leases"),
                 ("list", leases, "leases"), ("get", ours, "gangs"), ("get", ours, "fabricswitches")]),
            "operator": (
                [("create", ours, "nodetopologies"), ("patch", ours, "nodetopologies"),
                 ("delete", ours, "nodetopologies"),
                 ("patch", ours, "fabrics/status"), ("patch", "", "nodes"), ("create", "", "events"),
                 ("watch", ours, "losslesspolicies"), ("patch", ours, "losslesspolicies/status"),
                 ("watch", ours, "rdmadevicepolicies"), ("patch", ours, "rdmadevicepolicies/status"),
                 ("watch", ours, "fabricswitches"), ("patch", ours, "fabricswitches/status"), ("watch", ours, "gangs"),
                 ("create", ours, "fabrics"), ("delete", ours, "fabrics"), ("update", leases, "leases@heddle-operator")],
                [("update", leases, "leases@heddle-scheduler"), ("update", ours, "nodetopologies"),
                 ("update", ours, "fabrics"), ("patch", ours, "fabrics"), ("update", ours, "fabrics/status"),
                 ("patch", ours, "nodetopologies/status"), ("delete", "", "nodes"), ("list", "", "pods"),
                 ("patch", ours, "losslesspolicies"), ("patch", ours, "rdmadevicepolicies"),
                 # Not a switch's Secret either, unless the values name it.
                 ("patch", ours, "fabricswitches"), ("get", "", "secrets"), ("create", "", "configmaps"),
                 ("patch", ours, "gangs")]),
            "extender": (
                [("patch", "", "pods"), ("get", "", "persistentvolumeclaims"), ("get", "", "persistentvolumes"),
                 ("watch", "batch", "jobs"), ("patch", "batch", "jobs"), ("patch", "trainer.kubeflow.org", "trainjobs"),
                 ("patch", "ray.io", "rayjobs"), ("create", "", "pods/eviction"),
                 ("watch", "jobset.x-k8s.io", "jobsets"), ("watch", "apps", "statefulsets"),
                 ("watch", "kubeflow.org", "pytorchjobs"), ("watch", "kubeflow.org", "mpijobs"), ("create", ours, "gangs"), ("update", ours, "gangs/status"),
                 ("watch", ours, "fabrics"), ("create", "", "events"), ("list", "", "events"),
                 ("update", leases, "leases@heddle-scheduler")],
                [("update", leases, "leases@heddle-operator"), ("create", "", "pods"), ("create", "", "pods/binding"), ("patch", "", "nodes"),
                 ("list", "", "namespaces"), ("create", "events.k8s.io", "events"), ("update", ours, "gangs"),
                 ("patch", ours, "gangs"), ("patch", ours, "gangs/status"),
                 ("delete", "", "pods"), ("patch", "", "pods/status"), ("list", "", "persistentvolumeclaims"),
                 ("patch", ours, "nodetopologies"), ("get", ours, "fabricswitches"), ("delete", "batch", "jobs"),
                 ("update", "batch", "jobs"),
                 ("patch", "batch", "jobs/status"), ("patch", "apps", "statefulsets"), ("patch", "batch", "cronjobs")]),
            "scheduler": (
                [("create", "", "pods/binding"), ("create", leases, "leases")],
                [("patch", ours, "gangs"), ("patch", ours, "nodetopologies"), ("patch", "", "nodes")]),
        }
        nobody = [("list", "", "secrets"), ("get", "", "secrets"), ("create", "", "serviceaccounts/token"),
                  ("patch", "rbac.authorization.k8s.io", "clusterroles"), ("*", "*", "*")]
        for component, (allowed, denied) in table.items():
            for wanted, questions in ((True, allowed), (False, denied + nobody)):
                for verb, group, resource in questions:
                    with self.subTest(component=component, verb=verb, resource=resource):
                        self.assertEqual(self.may(component, verb, group, resource), wanted)

    def test_the_command_in_the_cluster_reads_all_that_it_shows_and_changes_nothing(self):
        # Its rights alone: the pod that uses them needs a kubelet.
        rendered = yaml_documents(self.plane, self.helm("template", "heddle", CHART, "--namespace", NAMESPACE, "--set",
                                                        "cli.enabled=true", "--show-only", "templates/cli.yaml").stdout)
        roles = [one for one in rendered if one["kind"] != "Deployment"]
        self.assertEqual(len(roles), 5)
        self.plane.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": roles}))
        for one in roles:
            where = [one["kind"].lower(), one["metadata"]["name"], "-n", NAMESPACE]
            self.addCleanup(self.plane.kubectl, "delete", *where)
        ours = "heddle.dev"
        allowed = [("list", ours, "nodetopologies"), ("list", ours, "gangs"), ("list", ours, "fabricswitches"),
                   ("list", "", "pods"), ("list", "", "nodes"), ("list", "", "events"), ("get", "batch", "jobs"),
                   ("list", "apps", "daemonsets"), ("list", "coordination.k8s.io", "leases"),
                   ("list", "apiextensions.k8s.io", "customresourcedefinitions"),
                   ("create", "authorization.k8s.io", "subjectaccessreviews")]
        denied = [("patch", "", "pods"), ("create", "", "pods/exec"), ("list", "", "secrets"), ("get", "", "configmaps"),
                  ("patch", ours, "gangs"), ("patch", "", "nodes"), ("patch", "batch", "jobs"), ("delete", "", "pods"),
                  ("create", "", "serviceaccounts/token"), ("update", "coordination.k8s.io", "leases"), ("*", "*", "*")]
        self.plane.wait_for(lambda: self.may("cli", "list", "", "pods"), "the roles to be in force")
        for wanted, questions in ((True, allowed), (False, denied)):
            for verb, group, resource in questions:
                with self.subTest(verb=verb, resource=resource):
                    self.assertEqual(self.may("cli", verb, group, resource), wanted)

    def may(self, component, verb, group, resource):
        resource, _, object_name = resource.partition("@")
        name, _, sub = resource.partition("/")
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
            "user": f"system:serviceaccount:{NAMESPACE}:heddle-{component}",
            "groups": ["system:authenticated", "system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}"],
            "resourceAttributes": {"verb": verb, "group": group, "resource": name, "subresource": sub, "name": object_name,
                                   "namespace": NAMESPACE}}}
        return self.rest.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"]


class UninstallTest(ChartTestCase):

    def test_crds_and_what_they_hold_outlive_an_uninstall(self):
        self.rest.create(path("nodetopologies"), {
            "apiVersion": "heddle.dev/v1alpha1", "kind": "NodeTopology", "metadata": {"name": "node-a"}})
        self.heddle.uninstall()
        self.assertEqual(len(self.rest.list(path("nodetopologies"))), 1)
        self.assertEqual(self.rest.list(path("mutatingadmissionpolicies")), [])
        self.heddle.install()
