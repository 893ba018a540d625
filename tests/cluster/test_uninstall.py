"""What is left of gangs when Heddle is uninstalled, and that `kubectl heddle release` hands it back."""

import subprocess

import scenario
from bed import h100, path
from bed.testing import bound_to, deployment, indexed_job
from scenario import TEAM
from test_main_job import HeddleTestCase

GATE = "heddle.dev/gang"


def gates(pod):
    return [gate["name"] for gate in pod["spec"].get("schedulingGates", [])]


class UninstallTest(HeddleTestCase):
    cluster = h100(units=1, nodes_per_unit=4)

    def release(self, *arguments):
        return subprocess.run(
            [self.heddle.binaries / "kubectl-heddle", "release", *arguments], capture_output=True, text=True, check=False,
            timeout=120, env={"KUBECONFIG": str(self.plane.kubeconfig), "HOME": str(self.plane.folder)})

    def held(self, name):
        return [pod for pod in scenario.pods_of(self.plane, TEAM, name) if gates(pod) == [GATE]]

    def schedulers(self, name):
        return [pod["spec"]["schedulerName"] for pod in self.plane.pods(TEAM, f"app={name}")]

    def test_after_an_uninstall_what_runs_goes_on_and_what_waits_is_handed_back(self):
        self.submit(indexed_job("runs", 2, 8, annotations={"heddle.dev/parallelism": "tp=8,dp=2"}))
        scenario.wait_bound(self.plane, TEAM, 2, "runs")
        before = {pod["metadata"]["uid"]: bound_to(pod) for pod in scenario.pods_of(self.plane, TEAM, "runs")}
        # Two pods that the cluster's own scheduler can place; that tp never fits is Heddle's reason alone.
        self.submit(indexed_job("waits", 2, 8, annotations={"heddle.dev/parallelism": "tp=16",
                                                            "heddle.dev/require": "tp=nvlink"}))
        self.heddle.wait_for(lambda: len(self.held("waits")) == 2, "two pods at the gate")

        # A lone pod has no gate, and waits for the scheduler: no server has so many GPUs.
        self.plane.rest.create(path("deployments", TEAM), deployment("serve", 64))
        self.addCleanup(self.plane.rest.delete, path("deployments", TEAM, "serve"), propagationPolicy="Background")
        self.heddle.wait_for(lambda: self.schedulers("serve") == ["heddle"], "the pod of the Deployment")

        refused = self.release("--all")
        self.assertEqual(refused.returncode, 3, refused.stdout + refused.stderr)
        self.assertIn("helm uninstall heddle", refused.stderr)
        self.assertEqual(len(self.held("waits")), 2)

        self.heddle.uninstall()
        for daemon in list(self.heddle.daemons):
            self.heddle.stop_daemon(daemon)
        probe = indexed_job("", 1, 8, annotations={"heddle.dev/parallelism": "tp=8"})["spec"]["template"]
        probe |= {"metadata": probe["metadata"] | {"generateName": "probe-"}}
        self.plane.wait_for(lambda: not gates(self.plane.rest.create(path("pods", TEAM) + "?dryRun=All", probe)),
                            "the policy heddle-gang to be out of force")

        shown = self.release("--all", "--dry-run")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn(f"Job {TEAM}/waits", shown.stdout)
        done = self.release("--all")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("suspended and resumed", done.stdout)
        self.assertRegex(done.stdout, rf"Pod {TEAM}/serve-\S+ +1 +deleted; its controller makes another")
        self.plane.wait_for(lambda: self.schedulers("serve") == ["default-scheduler"], "a pod for the cluster's own scheduler")
        self.plane.wait_for(
            lambda: sum(bool(bound_to(pod)) for pod in scenario.pods_of(self.plane, TEAM, "waits")) == 2,
            "the cluster's own scheduler to place them", 60)
        self.assertIsNone(scenario.condition(self.plane.rest.get(path("jobs", TEAM, "waits")), "Failed"))
        self.assertEqual({pod["metadata"]["uid"]: bound_to(pod) for pod in scenario.pods_of(self.plane, TEAM, "runs")}, before)
        self.assertIn("No pod waits", self.release("--all").stdout)

        # As `kubectl heddle prepare` leaves it: no suspension would make other pods of it.
        self.submit(indexed_job("prepared", 1, 8, annotations={"heddle.dev/parallelism": "tp=8"}, scheduler="heddle",
                                schedulingGates=[{"name": GATE}]))
        self.plane.wait_for(lambda: len(self.held("prepared")) == 1, "a pod at the gate of its own template")
        [before] = self.held("prepared")
        left = self.release("--all")
        self.assertEqual(left.returncode, 3, left.stdout + left.stderr)
        self.assertIn(f"the pod template of Job {TEAM}/prepared names Heddle", left.stdout)
        self.assertEqual([pod["metadata"]["uid"] for pod in self.held("prepared")], [before["metadata"]["uid"]])
