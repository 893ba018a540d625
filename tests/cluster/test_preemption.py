"""Priority on a real control plane: gangs give way as gangs, nobody's Job fails for it, and single pods of gangs are safe."""

import scenario
from bed import ApiError, h100, path
from bed.testing import bound_to, indexed_job
from scenario import TEAM
from test_main_job import HeddleTestCase

PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
POLICIES = "/apis/admissionregistration.k8s.io/v1"
STATEFUL = f"/apis/apps/v1/namespaces/{TEAM}/statefulsets"
BUDGETS = f"/apis/policy/v1/namespaces/{TEAM}/poddisruptionbudgets"
CLASSES = {"low": (-100, "PreemptLowerPriority"), "urgent": (1000, "PreemptLowerPriority"), "polite": (1000, "Never")}


def gang_job(name, pods, priority="", annotations=None, backoff_limit=0, labels=None):
    spec = {"priorityClassName": priority} if priority else {}
    words = {"heddle.dev/parallelism": f"tp=8,dp={pods}"} | dict(annotations or {})
    job = indexed_job(name, pods, 8, annotations=words, backoff_limit=backoff_limit, **spec)
    job["metadata"]["labels"] = dict(labels or {})
    return job


class PreemptionTest(HeddleTestCase):
    cluster = h100(units=2, nodes_per_unit=2)
    names = iter(range(1, 1000))

    @classmethod
    def set_up_bed(cls):
        super().set_up_bed()
        for name, (value, policy) in CLASSES.items():
            cls.plane.rest.create(PRIORITIES, {"metadata": {"name": name}, "value": value, "preemptionPolicy": policy})

    def setUp(self):
        # Names of its own for each test: see test_main_job.py.
        number = next(self.names)
        self.low, self.high = f"low-{number}", f"high-{number}"

    def tearDown(self):
        for name in [one["metadata"]["name"] for one in self.plane.rest.list(STATEFUL)]:
            self.plane.rest.delete(f"{STATEFUL}/{name}")
        for pod in self.plane.pods(TEAM):
            if not pod["metadata"].get("ownerReferences"):
                self.plane.rest.delete(path("pods", TEAM, pod["metadata"]["name"]), gracePeriodSeconds=0)
        super().tearDown()

    def job(self, name):
        return self.plane.rest.get(path("jobs", TEAM, name))

    def run_low(self, **keywords):
        """A Job over the whole cluster that a single failed pod would fail."""
        self.submit(gang_job(self.low, 4, "low", **keywords))
        scenario.wait_bound(self.plane, TEAM, 4, self.low)
        self.wait_gang(self.low, "Running")

    def wait_message(self, name, words):
        def said():
            message = ((self.gang(name) or {}).get("status") or {}).get("message", "")
            if words not in message:
                raise AssertionError(message or "no message")
            return message
        return self.heddle.wait_for(said, f"the Gang of {name} to say {words!r}", 60)

    def assert_untouched(self, name):
        job = self.job(name)
        self.assertFalse(job["spec"].get("suspend"))
        self.assertNotIn("heddle.dev/preempted-by", job["metadata"].get("annotations", {}))
        self.assertEqual(sum(1 for pod in scenario.pods_of(self.plane, TEAM, name) if bound_to(pod)), 4)
        self.assert_not_failed(name)

    def wait_suspended(self, name):
        """The Job was suspended and resumed since: the Job controller says both."""
        def resumed():
            found = scenario.condition(self.job(name), "Suspended")
            if not found or found["status"] != "False" or self.job(name)["spec"].get("suspend"):
                raise AssertionError(found)
            return True
        self.heddle.wait_for(resumed, f"{name} to be suspended and resumed", 60)

    def assert_high_runs_and_low_comes_back(self):
        scenario.wait_bound(self.plane, TEAM, 2, self.high)
        self.wait_suspended(self.low)
        self.wait_refused(self.low, "NotEnoughFree")
        self.assertTrue(all(not bound_to(pod) for pod in scenario.pods_of(self.plane, TEAM, self.low)))
        self.assert_not_failed(self.low)
        self.assertNotIn("heddle.dev/preempted-by", self.job(self.low)["metadata"].get("annotations", {}))
        self.assert_no_gpu_twice()
        scenario.remove(self.plane, TEAM, self.high)
        scenario.wait_bound(self.plane, TEAM, 4, self.low)
        self.assert_not_failed(self.low)
        self.assertEqual({pod["status"]["containerStatuses"][0]["restartCount"]
                          for pod in scenario.pods_of(self.plane, TEAM, self.low) if pod["status"].get("containerStatuses")}
                         - {0}, set())

    def test_a_lower_gang_is_suspended_whole_never_fails_and_comes_back_after_the_higher_one(self):
        self.run_low()
        before = self.job(self.low)["metadata"]["uid"]
        self.submit(gang_job(self.high, 2, "urgent"))
        self.assert_high_runs_and_low_comes_back()
        self.assertEqual(self.job(self.low)["metadata"]["uid"], before)

        def told():
            reasons = {(event["involvedObject"]["name"], event["reason"]) for event in self.plane.rest.list(path("events", TEAM))}
            wanted = {(self.low, "Preempted"), (self.low, "Resumed"), (self.high, "Preempting")}
            if not wanted <= reasons:
                raise AssertionError(wanted - reasons)
            return True
        self.heddle.wait_for(told, "events on both Jobs", 30)

    def test_equal_priority_preempts_nobody(self):
        self.run_low()
        self.submit(gang_job(self.high, 2, "low"))
        self.wait_message(self.high, "holds 32 GPUs")
        self.assert_untouched(self.low)

    def test_one_that_says_preemption_policy_never_preempts_nobody(self):
        self.run_low()
        self.submit(gang_job(self.high, 2, "polite"))
        self.wait_message(self.high, "holds 32 GPUs")
        self.assert_untouched(self.low)

    def test_a_job_that_kueue_queues_is_left_to_kueue(self):
        self.run_low(labels={"kueue.x-k8s.io/queue-name": "team"})
        self.submit(gang_job(self.high, 2, "urgent"))
        self.wait_message(self.high, "is queued by Kueue, and preemption there is Kueue's")
        self.assert_untouched(self.low)

    def test_kill_9_between_the_decision_and_the_suspension_loses_nothing(self):
        self.run_low()
        with SuspensionsRefused(self.plane):
            self.submit(gang_job(self.high, 2, "urgent"))
            self.wait_gang(self.low, "Preempted")
            self.assertFalse(self.job(self.low)["spec"].get("suspend"))
            self.heddle.kill9("extender")
        self.assert_untouched(self.low)
        self.heddle.start_daemon("extender")
        self.assert_high_runs_and_low_comes_back()

    def test_kill_9_while_the_victim_is_suspended_brings_it_back_all_the_same(self):
        self.run_low()
        for pod in scenario.pods_of(self.plane, TEAM, self.low):
            self.plane.rest.patch(path("pods", TEAM, pod["metadata"]["name"]),
                                  {"metadata": {"annotations": {"bed.heddle.dev/end": "never"}}})
        self.submit(gang_job(self.high, 2, "urgent"))

        def leaving():
            pods = scenario.pods_of(self.plane, TEAM, self.low)
            if not self.job(self.low)["spec"].get("suspend") or not all(p["metadata"].get("deletionTimestamp") for p in pods):
                raise AssertionError([pod["metadata"].get("deletionTimestamp") for pod in pods])
            return pods
        pods = self.heddle.wait_for(leaving, "the victim to be suspended and its pods to terminate", 60)
        self.assertIn("heddle.dev/preempted-by", self.job(self.low)["metadata"]["annotations"])
        self.heddle.kill9("extender")
        self.heddle.start_daemon("extender")
        self.wait_message(self.high, "leaving")
        for pod in pods:
            self.plane.rest.delete(path("pods", TEAM, pod["metadata"]["name"]), gracePeriodSeconds=0)
        self.assert_high_runs_and_low_comes_back()

    def test_a_stateful_set_is_evicted_whole_and_waits_behind(self):
        job = gang_job("", 4, "low")
        template = job["spec"]["template"]
        template["metadata"]["labels"] = {"app": self.low}
        template["spec"].pop("restartPolicy")
        self.plane.rest.create(STATEFUL, {
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": self.low},
            "spec": {"replicas": 4, "serviceName": self.low, "podManagementPolicy": "Parallel",
                     "selector": {"matchLabels": {"app": self.low}}, "template": template}})
        self.wait_gang(self.low, "Running")
        self.submit(gang_job(self.high, 2, "urgent"))
        scenario.wait_bound(self.plane, TEAM, 2, self.high)
        self.wait_refused(self.low, "NotEnoughFree")
        self.assert_no_gpu_twice()
        scenario.remove(self.plane, TEAM, self.high)
        self.wait_gang(self.low, "Running")

    def lone(self, name, priority, labels=None):
        pod = indexed_job("", 1, 8, priorityClassName=priority)["spec"]["template"]["spec"]
        self.plane.rest.create(path("pods", TEAM), {"metadata": {"name": name, "labels": dict(labels or {})}, "spec": pod})

    def wait_pods_bound(self, *names):
        def bound():
            missing = [name for name in names if not bound_to(self.plane.rest.find(path("pods", TEAM, name)) or {"spec": {}})]
            if missing:
                raise AssertionError(missing)
            return True
        self.heddle.wait_for(bound, f"{', '.join(names)} to be bound", 90)

    def test_a_gang_has_lone_pods_evicted_but_not_against_a_disruption_budget(self):
        for index in range(4):
            self.lone(f"{self.low}-{index}", "low", {"app": self.low})
        self.wait_pods_bound(*(f"{self.low}-{index}" for index in range(4)))
        self.plane.rest.create(BUDGETS, {"metadata": {"name": self.low}, "spec": {
            "minAvailable": 4, "selector": {"matchLabels": {"app": self.low}}}})

        def counted():
            return self.plane.rest.get(f"{BUDGETS}/{self.low}").get("status", {}).get("currentHealthy") == 4
        self.heddle.wait_for(counted, "the budget to be counted", 60)
        self.submit(gang_job(self.high, 2, "urgent"))

        def refused():
            return self.plane.audit(user="system:serviceaccount:heddle-system:heddle-extender", verb="create",
                                    resource="pods/eviction", code=429)
        self.heddle.wait_for(refused, "an eviction to be refused", 60)
        self.assertEqual(len(self.plane.pods(TEAM, f"app={self.low}")), 4)
        self.plane.rest.delete(f"{BUDGETS}/{self.low}")
        scenario.wait_bound(self.plane, TEAM, 2, self.high)
        self.assertEqual(len(self.plane.pods(TEAM, f"app={self.low}")), 2)

    def test_a_lone_pod_has_lone_pods_evicted_and_never_one_of_a_gang(self):
        self.submit(gang_job(self.low, 2, "low"))
        scenario.wait_bound(self.plane, TEAM, 2, self.low)
        self.lone(f"{self.low}-a", "low")
        self.lone(f"{self.low}-b", "low")
        self.wait_pods_bound(f"{self.low}-a", f"{self.low}-b")
        self.wait_gang(self.low, "Running")
        gang = {pod["metadata"]["uid"] for pod in scenario.pods_of(self.plane, TEAM, self.low)}
        for index in range(2):
            self.lone(f"{self.high}-{index}", "urgent")
        self.wait_pods_bound(f"{self.high}-0", f"{self.high}-1")
        left = {pod["metadata"]["name"] for pod in self.plane.pods(TEAM)}
        self.assertNotIn(f"{self.low}-a", left)
        self.assertNotIn(f"{self.low}-b", left)
        # Only the gang is left to take from.
        self.lone(f"{self.high}-2", "urgent")

        def tried():
            found = scenario.condition(self.plane.rest.get(path("pods", TEAM, f"{self.high}-2")), "PodScheduled")
            if not found or "preemption" not in found.get("message", ""):
                raise AssertionError(found)
            return True
        self.heddle.wait_for(tried, "the scheduler to have tried preemption", 60)
        self.assertEqual({pod["metadata"]["uid"] for pod in scenario.pods_of(self.plane, TEAM, self.low) if bound_to(pod)}, gang)
        self.assert_not_failed(self.low)

    def test_a_degraded_gang_that_asks_for_it_is_restarted_whole_in_another_unit(self):
        annotations = {"heddle.dev/require": "tp=nvlink,dp=su", "heddle.dev/on-degraded": "restart"}
        self.submit(gang_job(self.low, 2, "low", annotations, backoff_limit=1))
        pods = scenario.wait_bound(self.plane, TEAM, 2, self.low)
        self.wait_gang(self.low, "Running")
        lost = bound_to(pods[0])
        units = {node.name: node.unit for node in self.cluster.nodes}
        self.plane.rest.patch(path("nodes", name=lost), {"spec": {"unschedulable": True}})
        try:
            self.plane.rest.delete(path("pods", TEAM, pods[0]["metadata"]["name"]), gracePeriodSeconds=0)

            def moved():
                now = scenario.pods_of(self.plane, TEAM, self.low)
                where = {units.get(bound_to(pod), "nowhere") for pod in now}
                if len(now) != 2 or where & {units[lost], "nowhere"}:
                    raise AssertionError(where)
                return True
            self.heddle.wait_for(moved, "the whole gang to run in the other unit", 90)
            self.assertIn("heddle.dev/restarted-at", self.job(self.low)["metadata"]["annotations"])
            # The pod that the test deleted may count, and no other.
            self.assertLessEqual(self.job(self.low)["status"].get("failed", 0), 1)
            self.assertIsNone(scenario.condition(self.job(self.low), "Failed"))
            events = {event["reason"] for event in self.plane.rest.list(path("events", TEAM))
                      if event["involvedObject"]["name"] == self.low}
            self.assertIn("Restarting", events)
        finally:
            self.plane.rest.patch(path("nodes", name=lost), {"spec": {"unschedulable": False}})

    def test_the_extender_may_suspend_a_job_and_change_nothing_else_of_it(self):
        self.submit(gang_job(self.low, 4, "low"))
        extender = self.plane.account_rest("heddle-system", "heddle-extender")
        where = path("jobs", TEAM, self.low) + "?dryRun=All"
        extender.patch(where, {"spec": {"suspend": True}, "metadata": {"annotations": {"heddle.dev/preempted-by": "a/b"}}})
        for change, sentence in (({"spec": {"backoffLimit": 7}}, "suspends and resumes jobs, and changes nothing else"),
                                 ({"metadata": {"annotations": {"a": "b"}}}, "no other annotation"),
                                 ({"metadata": {"labels": {"a": "b"}}}, "does not change labels")):
            with self.assertRaises(ApiError) as refused:
                extender.patch(where, change)
            self.assertIn(sentence, refused.exception.message)

    def test_nothing_is_forbidden(self):
        self.run_low()
        self.submit(gang_job(self.high, 2, "urgent"))
        scenario.wait_bound(self.plane, TEAM, 2, self.high)
        # What this test class forbids itself.
        self.assert_nothing_forbidden("extender", but=("jobs",))


class SuspensionsRefused:
    """While it stands, the apiserver refuses the extender to suspend a Job."""

    NAME = "test-suspensions-refused"

    def __init__(self, plane):
        self.plane = plane

    def __enter__(self):
        rule = "!(has(object.spec.suspend) && object.spec.suspend && !(has(oldObject.spec.suspend) && oldObject.spec.suspend))"
        self.plane.rest.create(f"{POLICIES}/validatingadmissionpolicies", {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": self.NAME},
            "spec": {"failurePolicy": "Fail", "validations": [{"expression": rule, "message": "the test refuses"}],
                     "matchConstraints": {"resourceRules": [{
                         "apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["jobs"]}]}}})
        self.plane.rest.create(f"{POLICIES}/validatingadmissionpolicybindings", {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": self.NAME}, "spec": {"policyName": self.NAME, "validationActions": ["Deny"]}})
        probe = path("jobs", TEAM, self.plane.rest.list(path("jobs", TEAM))[0]["metadata"]["name"]) + "?dryRun=All"

        def refused():
            try:
                self.plane.rest.patch(probe, {"spec": {"suspend": True}})
            except ApiError as problem:
                return "the test refuses" in problem.message
            return False
        self.plane.wait_for(refused, "the test's policy to be in force", 30)

    def __exit__(self, *_):
        self.plane.rest.delete(f"{POLICIES}/validatingadmissionpolicybindings/{self.NAME}")
        self.plane.rest.delete(f"{POLICIES}/validatingadmissionpolicies/{self.NAME}")
