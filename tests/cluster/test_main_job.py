"""The main job of the project on a real control plane, with kill -9 at the worst moments."""

import dataclasses
import http.client
import itertools
import json
import subprocess
from pathlib import Path

import scenario
from bed import ApiError, Heddle, Nodes, h100, nvl72, path
from bed.testing import BedTestCase, bound_to, indexed_job, options
from scenario import MAIN_JOB, STOCK, TEAM

PLAN = ("heddle.dev/rank", "heddle.dev/gpus", "heddle.dev/node", "heddle.dev/gang-uid", "heddle.dev/epoch")


class HeddleTestCase(BedTestCase):
    cluster = None

    @classmethod
    def set_up_bed(cls):
        cls.binaries = Path(options.binaries).resolve()
        cls.heddle = Heddle(cls.plane, cls.binaries)
        scenario.start_heddle(cls.heddle, cls.nodes, cls.cluster)

    def tearDown(self):
        for namespace in (TEAM, STOCK):
            for job in self.plane.rest.list(path("jobs", namespace)):
                scenario.remove(self.plane, namespace, job["metadata"]["name"])
        # Reservations go with the owner: the next test starts with every GPU free.
        self.plane.wait_for(self.all_ended, "every Gang to be ended or gone")

    def all_ended(self):
        gangs = [gang for gang in self.plane.rest.list(path("gangs", TEAM)) if not self.ended(gang)]
        if gangs:
            raise AssertionError([(gang["metadata"]["name"], gang.get("status", {}).get("summary")) for gang in gangs])
        return True

    @staticmethod
    def ended(gang):
        return (scenario.condition(gang, "Ended") or {}).get("status") == "True"

    def gang(self, name):
        return scenario.gang_of(self.plane, TEAM, name)

    def wait_gang(self, name, condition, timeout=60.0):
        def there():
            gang = self.gang(name)
            found = scenario.condition(gang, condition) if gang else None
            if not found or found["status"] != "True":
                raise AssertionError(gang.get("status") if gang else "no Gang")
            return gang
        return self.heddle.wait_for(there, f"the Gang of {name} to be {condition}", timeout)

    def wait_refused(self, name, reason, timeout=60.0):
        def refused():
            gang = self.gang(name)
            status = (gang or {}).get("status") or {}
            if status.get("reason") != reason:
                raise AssertionError(status or "no Gang")
            return status["message"]
        return self.heddle.wait_for(refused, f"the Gang of {name} to be refused with {reason}", timeout)

    def submit(self, body, namespace=TEAM):
        return self.plane.rest.create(path("jobs", namespace), body)

    @staticmethod
    def ask(port, method, where, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.request(method, where, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def assert_no_gpu_twice(self):
        taken = {}
        for pod in self.plane.pods(TEAM):
            gpus = pod["metadata"].get("annotations", {}).get("heddle.dev/gpus", "")
            for gpu in gpus.split(",") if gpus else []:
                slot = (bound_to(pod) or pod["metadata"]["annotations"]["heddle.dev/node"], gpu)
                self.assertNotIn(slot, taken, f"{pod['metadata']['name']} and {taken.get(slot)} share a GPU")
                taken[slot] = pod["metadata"]["name"]
        return len(taken)

    def assert_not_failed(self, name, namespace=TEAM):
        job = self.plane.rest.get(path("jobs", namespace, name))
        self.assertFalse(job["status"].get("failed"), "a pod of the Job was counted as failed")
        self.assertIsNone(scenario.condition(job, "Failed"))


class MainJob(HeddleTestCase):
    cluster = h100()
    numbers = itertools.count(1)

    def setUp(self):
        # A name of its own for each test: the Job controller keeps what it expects of a Job by name, and one that comes
        # right after another of the same name may be left without pods for five minutes.
        self.job = dataclasses.replace(MAIN_JOB, name=f"{MAIN_JOB.name}-{next(self.numbers)}")

    def place_main_job(self):
        scenario.submit(self.plane, TEAM, self.job)
        scenario.wait_bound(self.plane, TEAM, self.job.pods, self.job.name)
        return scenario.explain(self.plane, self.binaries, TEAM, self.job)

    def assert_well_placed(self, explained):
        self.assertEqual((explained["tpGroupsInDomain"], explained["tpGroups"]), (16, 16))
        self.assertEqual(explained["leafCrossings"]["dp"], 0)
        self.assertEqual(explained["railMisaligned"], 0)
        self.assertEqual(self.assert_no_gpu_twice(), self.job.total)
        self.assert_not_failed(self.job.name)

    def test_tensor_groups_share_a_domain_and_data_parallel_rings_cross_no_leaf(self):
        explained = self.place_main_job()
        self.assert_well_placed(explained)
        self.assertFalse(explained["assumedGpus"])
        gang = self.wait_gang(self.job.name, "Running")
        placed = gang["status"]["placement"]
        for pod in self.plane.pods(TEAM):
            annotations = pod["metadata"]["annotations"]
            for key in PLAN:
                self.assertIn(key, annotations)
            index = int(annotations["batch.kubernetes.io/job-completion-index"])
            self.assertEqual(bound_to(pod), placed["nodeNames"][placed["nodes"][index]])

    def test_the_stock_scheduler_places_the_same_job_worse(self):
        scenario.hold_gpus(self.plane, self.cluster, "su-0", 6)
        try:
            stock = scenario.place(self.plane, self.binaries, STOCK, self.job, annotated=False)
            scenario.remove(self.plane, STOCK, self.job.name)
            explained = self.place_main_job()
            self.assert_well_placed(explained)
            self.assertLess(explained["stepMicros"], stock["stepMicros"])
            self.assertGreater(stock["leafCrossings"]["dp"], 0)
        finally:
            for job in self.plane.rest.list(path("jobs", scenario.OTHERS)):
                scenario.remove(self.plane, scenario.OTHERS, job["metadata"]["name"])

    def test_the_plan_is_committed_before_any_pod_moves_and_survives_kill_9_in_between(self):
        with self.releases_refused("true"):
            scenario.submit(self.plane, TEAM, self.job)
            planned = self.wait_gang(self.job.name, "Planned")["status"]["placement"]
            self.heddle.kill9("extender")
            pods = self.plane.pods(TEAM)
            self.assertTrue(all(not bound_to(pod) and pod["spec"].get("schedulingGates") for pod in pods))
        self.heddle.start_daemon("extender")
        scenario.wait_bound(self.plane, TEAM, self.job.pods, self.job.name)
        self.assert_well_placed(scenario.explain(self.plane, self.binaries, TEAM, self.job))
        self.assertEqual(self.gang(self.job.name)["status"]["placement"]["nodes"], planned["nodes"])

    def test_kill_9_in_the_middle_of_releasing_leaves_a_gang_that_completes(self):
        index = "int(object.metadata.labels['batch.kubernetes.io/job-completion-index'])"
        with self.releases_refused(f"{index} >= 16"):
            scenario.submit(self.plane, TEAM, self.job)
            self.heddle.wait_for(lambda: sum(1 for pod in self.plane.pods(TEAM) if bound_to(pod)) == 16,
                                 "the first 16 pods to be bound", 60)
            self.heddle.kill9("extender")
        self.heddle.start_daemon("extender")
        scenario.wait_bound(self.plane, TEAM, self.job.pods, self.job.name)
        self.assert_well_placed(scenario.explain(self.plane, self.binaries, TEAM, self.job))

    def test_kill_9_of_the_operator_and_of_an_agent_harms_no_gang(self):
        agent = f"agent:{self.cluster.nodes[3].name}"
        self.heddle.kill9("operator")
        self.heddle.kill9(agent)
        try:
            self.assert_well_placed(self.place_main_job())
        finally:
            self.heddle.start_daemon("operator")
            self.heddle.start_daemon(agent)

    def test_a_remade_pod_gets_its_ranks_slot_at_once(self):
        body = self.job.manifest(backoff_limit=3)
        self.submit(body)
        scenario.wait_bound(self.plane, TEAM, self.job.pods, self.job.name)
        victim = next(pod for pod in self.plane.pods(TEAM)
                      if pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == "7")
        self.plane.rest.delete(path("pods", TEAM, victim["metadata"]["name"]), gracePeriodSeconds=0)

        def remade():
            return next((pod for pod in self.plane.pods(TEAM)
                         if pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == "7"
                         and pod["metadata"]["uid"] != victim["metadata"]["uid"] and bound_to(pod)), None)
        pod = self.heddle.wait_for(remade, "rank 7's new pod to be bound", 90)
        self.assertEqual(bound_to(pod), bound_to(victim))
        self.assertEqual(pod["metadata"]["annotations"]["heddle.dev/gpus"],
                         victim["metadata"]["annotations"]["heddle.dev/gpus"])

    def test_a_suspended_job_gives_its_gpus_back(self):
        self.submit(self.job.manifest())
        scenario.wait_bound(self.plane, TEAM, self.job.pods, self.job.name)
        self.plane.rest.patch(path("jobs", TEAM, self.job.name), {"spec": {"suspend": True}})
        self.heddle.wait_for(self.all_ended, "the suspended Job's Gang to be ended", 60)

    def test_the_apiserver_may_restart_in_the_middle(self):
        scenario.submit(self.plane, TEAM, self.job)
        self.plane.restart("apiserver")
        scenario.wait_bound(self.plane, TEAM, self.job.pods, self.job.name, timeout=180)
        self.assert_well_placed(scenario.explain(self.plane, self.binaries, TEAM, self.job))

    def test_bad_annotations_are_refused_with_what_to_write_instead(self):
        cases = {
            "not-a-number": ("tp=eight,dp=16", "tp"),
            "unknown-word": ("tp=8,zz=2,dp=8", "zz"),
            "does-not-multiply": ("tp=8,dp=3", "24"),
        }
        for name, (parallelism, word) in cases.items():
            self.submit(indexed_job(name, 4, 8, annotations={"heddle.dev/parallelism": parallelism}))
        for name, (_, word) in cases.items():
            with self.subTest(name):
                def refused():
                    status = (self.gang(name) or {}).get("status") or {}
                    return status.get("reason") and word in status.get("message", "")
                self.heddle.wait_for(refused, f"{name} to be refused with a sentence that has {word!r}", 60)
                self.assertTrue(all(not bound_to(pod) for pod in scenario.pods_of(self.plane, TEAM, name)))
                self.assert_not_failed(name)

    def test_what_cannot_be_placed_says_so_and_nothing_is_bound_by_half(self):
        anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}}]}}
        parallelism = {"heddle.dev/parallelism": "tp=8,dp=4"}
        partial = indexed_job("partial", 4, 8, annotations=parallelism)
        partial["spec"]["parallelism"] = 2
        self.submit(indexed_job("too-wide", 4, 8, annotations={"heddle.dev/parallelism": "tp=32"}))
        self.submit(indexed_job("affine", 4, 8, annotations=parallelism, affinity=anti))
        self.submit(partial)
        for name, word in {"too-wide": "NVLink domain", "affine": "podAntiAffinity", "partial": "parallelism"}.items():
            with self.subTest(name):
                def refused():
                    status = (self.gang(name) or {}).get("status") or {}
                    if word not in status.get("message", ""):
                        raise AssertionError(status)
                    return True
                self.heddle.wait_for(refused, f"{name} to be refused naming {word}", 60)
                self.assertTrue(all(not bound_to(pod) for pod in scenario.pods_of(self.plane, TEAM, name)))

    def test_kubectl_answers_the_first_questions(self):
        nodes = self.plane.kubectl("get", "nt").splitlines()
        self.assertEqual(len(nodes), 1 + len(self.cluster.nodes))
        self.assertIn("8/8", nodes[1])
        self.assertIn("InfiniBand", nodes[1])
        self.assertIn("InfiniBand", self.plane.kubectl("get", "fabrics"))

    def test_other_schedulers_can_use_the_labels(self):
        for node in self.plane.rest.list(path("nodes")):
            labels = node["metadata"]["labels"]
            self.assertIn("heddle.dev/su", labels)
            self.assertIn("heddle.dev/nvlink-domain", labels)

    def test_a_gpu_pod_of_no_gang_keeps_whole_servers_whole(self):
        self.submit(indexed_job("notebooks", 8, 1))
        pods = scenario.wait_bound(self.plane, TEAM, 8, "notebooks")
        self.assertEqual({pod["spec"]["schedulerName"] for pod in pods}, {"heddle"})
        self.assertEqual(len({bound_to(pod) for pod in pods}), 1, "eight pods of one GPU broke several servers")

    def test_a_node_that_disagrees_with_its_topology_is_left_out_and_comes_back(self):
        node = self.cluster.nodes[-1].name
        self.nodes.set_allocatable(node, **{"nvidia.com/gpu": "7"})
        try:
            self.submit(indexed_job("everything", 32, 8, annotations={"heddle.dev/parallelism": "tp=8,dp=32"}))

            def named():
                message = ((self.gang("everything") or {}).get("status") or {}).get("message", "")
                if "GpuCountMismatch" not in message:
                    raise AssertionError(message or "no message")
                return True
            self.heddle.wait_for(named, "the refusal to name GpuCountMismatch", 60)
            told = subprocess.run([self.binaries / "kubectl-heddle", "status", "-o", "json"], capture_output=True, text=True,
                                  check=False, timeout=60, env=self.plane.tool_environment())
            self.assertEqual(told.returncode, 3, told.stderr)
            self.assertEqual([item["names"] for item in json.loads(told.stdout)["items"]
                              if item["reason"] == "GpuCountMismatch"], [[node]])
        finally:
            self.nodes.set_allocatable(node, **{"nvidia.com/gpu": "8"})
        scenario.wait_bound(self.plane, TEAM, 32, "everything")
        self.assertEqual(self.assert_no_gpu_twice(), 256)

    def test_garbage_at_every_verb_gets_a_sentence_and_the_extender_goes_on(self):
        bodies = {"no json": (b"\xff\x00{{{", 400), "not an object": (b"[1,2]", 400), "5 MB": (b"[" + b"1," * 2500000 + b"1]", 413),
                  "empty": (b"", 400)}
        for verb in ("filter", "prioritize", "preempt"):
            for name, (body, expected) in bodies.items():
                with self.subTest(verb=verb, body=name):
                    status, text = self.post(f"/{verb}", body)
                    self.assertEqual(status, expected, text)
                    self.assertGreater(len(text.split()), 4, text)
        self.assertEqual(self.post("/nowhere", b"{}")[0], 404)
        self.assertTrue(self.heddle.daemon("extender").running())

    def test_daemons_say_that_they_are_ready_and_what_they_count(self):
        for port, metric in ((self.heddle.operator_port, "heddle_operator_"), (self.heddle.extender_port, "heddle_extender_")):
            for where in ("/healthz", "/readyz"):
                self.assertEqual(self.ask(port, "GET", where), (200, "ok\n"))
            status, text = self.ask(port, "GET", "/metrics")
            self.assertEqual(status, 200)
            self.assertIn(metric, text)
            self.assertEqual(self.ask(port, "GET", "/elsewhere")[0], 404)

    def post(self, where, body):
        return self.ask(self.heddle.extender_port, "POST", where, body)

    def test_every_daemon_works_under_its_own_account_and_nothing_is_forbidden(self):
        self.place_main_job()
        # JobSet is optional: asking for it where it is not installed is not a fault.
        self.assert_nothing_forbidden("nodeagent", "operator", "extender", "scheduler", but=("jobsets",))

    def releases_refused(self, expression):
        return RefusedReleases(self.plane, expression)


class RefusedReleases:
    """While it stands, the apiserver refuses to open the gate of every gang pod for which `expression` holds.

    Kills between two writes are made exact by refusing the second one for a while.
    """

    NAME = "test-releases-refused"
    BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"

    def __init__(self, plane, expression):
        self.plane, self.expression = plane, expression

    def policy(self):
        """What the apiserver goes on taking, and of which resource."""
        gated = "has({0}.spec.schedulingGates) && {0}.spec.schedulingGates.exists(g, g.name == 'heddle.dev/gang')"
        return (f"!({gated.format('oldObject')}) || ({gated.format('object')}) || !({self.expression})",
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods"]})

    def __enter__(self):
        rule, resource = self.policy()
        self.plane.rest.create(path("validatingadmissionpolicies"), {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": self.NAME},
            "spec": {"failurePolicy": "Fail", "validations": [{"expression": rule, "message": "the test refuses"}],
                     "matchConstraints": {"resourceRules": [resource]}}})
        self.plane.rest.create(self.BINDINGS, {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": self.NAME}, "spec": {"policyName": self.NAME, "validationActions": ["Deny"]}})
        self._wait_in_force()
        return self

    def _wait_in_force(self):
        """A policy works a moment after it was made: opening the gate of a probe shows when."""
        probe = indexed_job("probe", 1, 0)["spec"]["template"]["spec"]
        probe["schedulingGates"] = [{"name": "heddle.dev/gang"}]
        body = {"metadata": {"name": "gate-probe", "labels": {"batch.kubernetes.io/job-completion-index": "999"}},
                "spec": probe}
        self.plane.rest.create(path("pods", STOCK), body)

        # As the extender: for anybody else the chart's own policy refuses already.
        extender = self.plane.account_rest("heddle-system", "heddle-extender")

        def refused():
            try:
                extender.patch(path("pods", STOCK, "gate-probe") + "?dryRun=All", {"spec": {"schedulingGates": None}})
            except ApiError as problem:
                return "the test refuses" in problem.message
            return False
        try:
            self.plane.wait_for(refused, "the test's policy to be in force", 30)
        finally:
            self.plane.rest.delete(path("pods", STOCK, "gate-probe"), gracePeriodSeconds=0)

    def __exit__(self, *_):
        self.plane.rest.delete(f"{self.BINDINGS}/{self.NAME}")
        self.plane.rest.delete(path("validatingadmissionpolicies", name=self.NAME))


class NvlinkRacks(HeddleTestCase):
    cluster = nvl72()

    def test_a_tensor_group_of_16_spans_four_trays_of_one_rack(self):
        explained = scenario.place(self.plane, self.binaries, TEAM, scenario.RACK_JOB)
        self.assertEqual((explained["tpGroupsInDomain"], explained["tpGroups"]), (8, 8))
        self.assert_no_gpu_twice()

    def test_a_job_smaller_than_a_node_gets_the_same_gpu_indexes_everywhere(self):
        scenario.place(self.plane, self.binaries, TEAM, scenario.SMALL_JOB)
        self.assert_no_gpu_twice()

    def test_one_that_no_rack_can_hold_waits_with_its_reason(self):
        scenario.submit(self.plane, TEAM, scenario.IMPOSSIBLE_JOB)
        sentence = self.wait_refused(scenario.IMPOSSIBLE_JOB.name, "TooLargeForDomain")
        self.assertIn("72", sentence)


class BinariesTeach(BedTestCase):
    """No cluster needed: what a person meets who types --help or the wrong thing."""

    @classmethod
    def setUpClass(cls):
        pass

    def test_every_binary_has_help_and_refuses_unknown_flags_with_exit_code_2(self):
        for name in ("heddle-nodeagent", "heddle-operator", "heddle-extender", "kubectl-heddle"):
            with self.subTest(name):
                program = str(Path(options.binaries).resolve() / name)
                helped = subprocess.run([program, "--help"], capture_output=True, text=True, check=False, timeout=20)
                self.assertEqual(helped.returncode, 0)
                self.assertIn("--kubeconfig" if name != "kubectl-heddle" else "explain", helped.stdout)
                said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=20)
                self.assertEqual(said.returncode, 0)
                self.assertRegex(said.stdout, rf"^{name} \d+\.\d+\.\d+\n$")
                command = [program, "explain", "job/any"] if name == "kubectl-heddle" else [program]
                wrong = subprocess.run([*command, "--no-such-flag"], capture_output=True, text=True, check=False, timeout=20)
                self.assertEqual(wrong.returncode, 2)
                self.assertIn("--no-such-flag", wrong.stderr)
