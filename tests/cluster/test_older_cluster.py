"""A cluster before Kubernetes 1.36, which has no MutatingAdmissionPolicy: `kubectl heddle prepare` does what it would have
done, and `doctor` says so. The programs are those of 1.36, which play 1.35 (--emulated-version): its APIs, its features."""

import json
import subprocess

import scenario
from bed import Heddle, h100, path
from bed.testing import BedTestCase, bound_to, options
from scenario import TEAM, TrainingJob

PREPARED = TrainingJob("prepared", 2, 8, "tp=8,dp=2")
PLAIN = TrainingJob("plain", 1, 8, "tp=8")


class OlderClusterTest(BedTestCase):
    cluster = h100(units=1, nodes_per_unit=4)
    arguments = {component: ["--emulated-version=1.35"] for component in ("apiserver", "controller-manager", "scheduler")}

    @classmethod
    def set_up_bed(cls):
        cls.heddle = Heddle(cls.plane, options.binaries)
        cls.nodes.add(cls.cluster)
        cls.heddle.install(wait=False)
        cls.heddle.wait_in_force(mode="observe")  # The guards; nothing here gates a pod.
        scenario.make_namespaces(cls.plane)
        cls.heddle.start(cls.cluster)
        scenario.declare_fabric(cls.plane, cls.cluster)
        scenario.wait_fabric(cls.heddle, cls.cluster)

    def heddle_says(self, *words, stdin=None):
        return subprocess.run([options.binaries / "kubectl-heddle", *words], input=stdin, capture_output=True, text=True,
                              check=False, timeout=120, env=self.plane.tool_environment())

    def prepare(self, manifest):
        done = self.heddle_says("prepare", "-f", "-", stdin=json.dumps(manifest))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def pods(self, job):
        return scenario.pods_of(self.plane, TEAM, job.name)

    def create(self, job):
        self.plane.kubectl("-n", TEAM, "create", "-f", "-", stdin=self.prepare(job.manifest(backoff_limit=6)))
        self.addCleanup(scenario.remove, self.plane, TEAM, job.name)
        scenario.wait_bound(self.plane, TEAM, job.pods, job.name)

    def test_the_bed_is_such_a_cluster(self):
        served = {one["name"] for one in self.plane.rest.get("/apis/admissionregistration.k8s.io/v1")["resources"]}
        self.assertIn("validatingadmissionpolicies", served)
        self.assertNotIn("mutatingadmissionpolicies", served)

    def test_a_prepared_job_is_placed_as_one(self):
        self.create(PREPARED)
        for pod in self.pods(PREPARED):
            self.assertEqual(pod["spec"]["schedulerName"], "heddle")
            self.assertIn("heddle.dev/rank", pod["metadata"]["annotations"])
        said = scenario.explain(self.plane, options.binaries, TEAM, PREPARED)
        self.assertEqual(said["tpGroupsInDomain"], said["tpGroups"])

        def runs():
            summary = (scenario.gang_of(self.plane, TEAM, PREPARED.name) or {}).get("status", {}).get("summary", "")
            return summary.startswith("Running") or self.fail(summary)
        self.heddle.wait_for(runs, "the gang to run", 60)
        # What was prepared is the template, so a pod that is made anew waits at the gate for its rank's slot as well.
        lost = self.pods(PREPARED)[0]
        self.plane.rest.delete(path("pods", TEAM, lost["metadata"]["name"]), gracePeriodSeconds=0)

        def back():
            return next((pod for pod in self.pods(PREPARED) if pod["metadata"]["uid"] != lost["metadata"]["uid"] and bound_to(pod)
                         and pod["metadata"]["annotations"]["heddle.dev/rank"] == lost["metadata"]["annotations"]["heddle.dev/rank"]),
                        None)
        self.assertEqual(bound_to(self.heddle.wait_for(back, "the rank to be back", 60)), bound_to(lost))

    def test_preparing_again_changes_nothing(self):
        once = self.prepare(PREPARED.manifest())
        done = self.heddle_says("prepare", "-f", "-", stdin=once)
        self.assertEqual((done.returncode, done.stdout), (0, once))

    def test_doctor_says_what_is_missing_and_what_to_do(self):
        done = self.heddle_says("doctor", "-o", "json")
        report = json.loads(done.stdout)
        self.assertEqual([item for item in report["items"] if item["verdict"] == "problem"], [])
        gating = next(item for item in report["items"] if item["check"] == "gating")
        self.assertEqual((gating["verdict"], gating["what"]), (
            "warning", "this cluster serves no MutatingAdmissionPolicy v1, so Jobs are not gated by themselves"))
        self.assertIn("kubectl heddle prepare -f job.yaml | kubectl create -f -", gating["do"])

    def test_a_job_that_nobody_prepared_goes_past_and_is_named(self):
        self.plane.rest.create(path("jobs", TEAM), PLAIN.manifest())
        self.addCleanup(scenario.remove, self.plane, TEAM, PLAIN.name)
        pod, = scenario.wait_bound(self.plane, TEAM, 1, PLAIN.name)
        self.assertEqual(pod["spec"]["schedulerName"], "default-scheduler")
        self.assertEqual(scenario.gang_of(self.plane, TEAM, PLAIN.name), None)

        def named():
            items = json.loads(self.heddle_says("doctor", "-o", "json").stdout)["items"]
            return next((item for item in items if item["verdict"] == "warning" and PLAIN.name in item["what"]), None)
        item = self.heddle.wait_for(named, "doctor to name it", 30)
        self.assertIn("went to default-scheduler", item["what"])
        self.assertIn("kubectl heddle prepare", item["do"])
