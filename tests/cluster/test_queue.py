"""Who goes next on a real control plane: what docs/priority.md says of the queue, of what may go past its head, and of
heddle.dev/wait."""

import datetime
import itertools
import json
import subprocess
import time

import scenario
from bed import h100
from bed.testing import bound_to, indexed_job
from scenario import TEAM
from test_main_job import HeddleTestCase

EXTENDER = "system:serviceaccount:heddle-system:heddle-extender"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
CLASSES = {"urgent": "PreemptLowerPriority", "polite": "Never"}  # both of priority 1000
LACKS_ROOM = ("NotEnoughFree", "Requirement")
# The servers of the two scalable units.
FIRST, SECOND = ("node-00", "node-01", "node-02"), ("node-03", "node-04", "node-05")


def gang_job(name, pods, one_unit=False, wait="", priority="", node=""):
    """Each pod takes a whole server; `one_unit`: all of them of the same scalable unit."""
    words = {"heddle.dev/parallelism": f"tp=8,dp={pods}"}
    if one_unit:
        words["heddle.dev/require"] = "tp=nvlink,dp=su"
    if wait:
        words["heddle.dev/wait"] = wait
    spec = {}
    if priority:
        spec["priorityClassName"] = priority
    if node:
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    return indexed_job(name, pods, 8, annotations=words, **spec)


def at(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class QueueTest(HeddleTestCase):
    cluster = h100(units=2, nodes_per_unit=3)
    numbers = itertools.count(1)

    @classmethod
    def set_up_bed(cls):
        super().set_up_bed()
        for name, policy in CLASSES.items():
            cls.plane.rest.create(PRIORITIES, {"metadata": {"name": name}, "value": 1000, "preemptionPolicy": policy})

    def setUp(self):
        # Names of its own for each test: see test_main_job.py.
        self.number = next(self.numbers)

    def named(self, *words):
        return [f"{word}-{self.number}" for word in words]

    def run_gang(self, body):
        name = body["metadata"]["name"]
        self.submit(body)
        scenario.wait_bound(self.plane, TEAM, body["spec"]["completions"], name)
        self.wait_gang(name, "Running")

    def hold(self, *nodes):
        """A gang of one pod on each of them; it is named after its node."""
        for node in nodes:
            self.run_gang(gang_job(f"{node}-{self.number}", 1, node=node))

    def let_go(self, node):
        scenario.remove(self.plane, TEAM, f"{node}-{self.number}")

    def submit_to_wait(self, body):
        """Until it was refused for lack of room. Returns what it was told."""
        name = body["metadata"]["name"]
        self.submit(body)
        status = self.heddle.wait_for(lambda: self.refusal(name), f"{name} to be refused for lack of room", 60)
        # Arrivals are told apart by the second: who is submitted next comes later.
        self.wait_age(name, 1)
        return status["message"]

    def refusal(self, name):
        status = (self.gang(name) or {}).get("status") or {}
        if status.get("reason") not in LACKS_ROOM:
            raise AssertionError(status or "no Gang")
        return status

    def arrival(self, name):
        return at(self.gang(name)["metadata"]["creationTimestamp"])

    def wait_age(self, name, seconds):
        old_enough = self.arrival(name) + seconds
        self.heddle.wait_for(lambda: time.time() >= old_enough, f"{name} to be {seconds} s old", seconds + 30)

    def nodes_of(self, name):
        return {bound_to(pod) for pod in scenario.pods_of(self.plane, TEAM, name)}

    def wait_on(self, name, nodes):
        scenario.wait_bound(self.plane, TEAM, len(nodes), name)
        self.assertEqual(self.nodes_of(name), set(nodes))

    def assert_waits(self, *names):
        for name in names:
            self.refusal(name)
            self.assertEqual(self.nodes_of(name), {""}, name)

    def explain(self, name):
        done = subprocess.run(
            [str(self.binaries / "kubectl-heddle"), "explain", f"job/{name}", "-n", TEAM, "-o", "json"],
            capture_output=True, text=True, check=False, timeout=60,
            env={"KUBECONFIG": str(self.plane.kubeconfig), "HOME": str(self.plane.folder)})
        self.assertEqual(done.returncode, 3, done.stderr)
        return json.loads(done.stdout)

    def test_the_head_keeps_its_nodes_and_who_fits_beside_them_goes_past(self):
        head, late, small = self.named("head", "late", "small")
        self.hold(FIRST[0], *SECOND[:2])
        self.submit_to_wait(gang_job(head, 3, one_unit=True))
        # Two free servers of the first unit would do, but they are what the head lacks one of.
        told = self.submit_to_wait(gang_job(late, 2, one_unit=True))
        self.assertIn("there is room for it, which is kept for gangs ahead of it in the queue", told)
        self.submit(gang_job(small, 1))
        self.wait_on(small, SECOND[2:])
        self.assert_waits(head, late)

        said = self.explain(late)
        self.assertEqual((said["waiting"]["position"], said["waiting"]["queued"]), (2, 2))
        self.assertEqual(said["waiting"]["ahead"], [f"{TEAM}/{head}"])
        self.assertEqual([remedy["kind"] for remedy in said["wouldHelp"]], ["RoomNow"])

        self.let_go(FIRST[0])
        self.wait_on(head, FIRST)
        self.assert_waits(late)
        self.let_go(SECOND[0])
        self.let_go(SECOND[1])
        self.wait_on(late, SECOND[:2])
        self.assert_no_gpu_twice()

    def test_priority_goes_first_and_then_who_came_first(self):
        everything, first, second, polite = self.named("everything", "first", "second", "polite")
        self.run_gang(gang_job(everything, 6))
        for body in (gang_job(first, 4), gang_job(second, 4), gang_job(polite, 4, priority="polite")):
            self.submit_to_wait(body)
        waiting = self.explain(second)["waiting"]
        self.assertEqual((waiting["position"], waiting["queued"]), (3, 3))
        self.assertEqual(waiting["ahead"], [f"{TEAM}/{polite} (priority 1000)", f"{TEAM}/{first}"])
        # There is room for one of them at a time.
        ends = everything
        for name, behind in ((polite, (first, second)), (first, (second,)), (second, ())):
            scenario.remove(self.plane, TEAM, ends)
            scenario.wait_bound(self.plane, TEAM, 4, name)
            self.assert_waits(*behind)
            ends = name

    def test_one_that_says_wait_lets_others_have_the_nodes_that_it_needs(self):
        patient, late = self.named("patient", "late")
        self.hold(FIRST[0], *SECOND[:2])
        self.submit_to_wait(gang_job(patient, 3, one_unit=True, wait="1h"))
        self.submit(gang_job(late, 2, one_unit=True))
        self.wait_on(late, FIRST[1:])
        self.assert_waits(patient)

    def test_it_keeps_its_nodes_once_that_time_is_over(self):
        patient, late = self.named("patient", "late")
        self.hold(FIRST[0], *SECOND[:2])
        self.submit_to_wait(gang_job(patient, 3, one_unit=True, wait="3s"))
        self.wait_age(patient, 3)
        self.submit_to_wait(gang_job(late, 2, one_unit=True))
        self.let_go(FIRST[0])
        self.wait_on(patient, FIRST)
        self.assert_waits(late)

    def test_nobody_is_stopped_for_it_before_that_time_is_over(self):
        low, high = self.named("low", "high")
        self.run_gang(gang_job(low, 6))
        self.submit(gang_job(high, 3, wait="5s", priority="urgent"))
        scenario.wait_bound(self.plane, TEAM, 3, high)
        stopped = self.plane.audit(user=EXTENDER, verb="patch", resource="jobs", name=low)
        self.assertTrue(stopped, "the extender has suspended nobody")
        self.assertGreaterEqual(at(stopped[0]["time"]), self.arrival(high) + 5)
        self.assert_not_failed(low)
