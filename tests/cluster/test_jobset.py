"""JobSets on a real control plane. JobSet's own controller is in tests/frameworks; here the test plays it: it makes the
Jobs that the controller would, with its labels and owner references; pods, garbage collection and all else are real."""

import copy

import scenario
from bed import h100, path
from bed.testing import bound_to, indexed_job
from scenario import TEAM
from test_main_job import HeddleTestCase

LABELS = "jobset.sigs.k8s.io/"
API = "/apis/jobset.x-k8s.io/v1alpha2/namespaces"
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "jobsets.jobset.x-k8s.io"},
    "spec": {"group": "jobset.x-k8s.io", "scope": "Namespaced",
             "names": {"kind": "JobSet", "plural": "jobsets", "singular": "jobset", "listKind": "JobSetList"},
             "versions": [{"name": "v1alpha2", "served": True, "storage": True, "subresources": {"status": {}},
                           "schema": {"openAPIV3Schema": {"type": "object",
                                                          "x-kubernetes-preserve-unknown-fields": True}}}]}}
PARALLELISM = {"heddle.dev/parallelism": "tp=8,pp=2,dp=4"}


class JobSetTest(HeddleTestCase):
    cluster = h100()

    @classmethod
    def set_up_bed(cls):
        cls.plane.rest.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
        cls.plane.wait_for(lambda: cls.plane.rest.list(f"{API}/default/jobsets") == [], "JobSets to be served")
        super().set_up_bed()

    def tearDown(self):
        for jobset in self.plane.rest.list(f"{API}/{TEAM}/jobsets"):
            self.plane.rest.delete(f"{API}/{TEAM}/jobsets/{jobset['metadata']['name']}")
        self.plane.wait_for(lambda: not self.plane.rest.list(path("jobs", TEAM)), "the JobSets' Jobs to be collected")
        super().tearDown()

    def submit_jobset(self, name, replicas):
        """replicas: (replicated job, number of Jobs, pods of each)."""
        template = indexed_job("", 1, 4, annotations=PARALLELISM)
        replicated = []
        for job, jobs, pods in replicas:
            spec = copy.deepcopy(template["spec"]) | {"completions": pods, "parallelism": pods}
            replicated.append({"name": job, "replicas": jobs, "template": {"spec": spec}})
        return self.plane.rest.create(f"{API}/{TEAM}/jobsets", {
            "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name},
            "spec": {"replicatedJobs": replicated}})

    def play_controller(self, jobset, attempt=0):
        meta, order = jobset["metadata"], 0
        for replicated in jobset["spec"]["replicatedJobs"]:
            for index in range(replicated["replicas"]):
                labels = {f"{LABELS}jobset-name": meta["name"], f"{LABELS}jobset-uid": meta["uid"],
                          f"{LABELS}replicatedjob-name": replicated["name"], f"{LABELS}job-index": str(index),
                          f"{LABELS}job-global-index": str(order), f"{LABELS}restart-attempt": str(attempt)}
                order += 1
                spec = copy.deepcopy(replicated["template"]["spec"])
                spec["template"]["metadata"] = {"labels": labels, "annotations": PARALLELISM | labels}
                self.plane.rest.create(path("jobs", TEAM), {
                    "apiVersion": "batch/v1", "kind": "Job",
                    "metadata": {"name": f"{meta['name']}-{replicated['name']}-{index}", "labels": labels,
                                 "ownerReferences": [{"apiVersion": jobset["apiVersion"], "kind": "JobSet",
                                                      "name": meta["name"], "uid": meta["uid"], "controller": True,
                                                      "blockOwnerDeletion": True}]},
                    "spec": spec})

    def wait_placed(self, count, attempt):
        def placed():
            pods = [pod for pod in self.plane.pods(TEAM)
                    if pod["metadata"]["labels"].get(f"{LABELS}restart-attempt") == str(attempt)]
            if len(pods) != count or not all(bound_to(pod) for pod in pods):
                raise AssertionError(f"{sum(1 for pod in pods if bound_to(pod))} of {len(pods)} pods bound")
            return pods
        return self.heddle.wait_for(placed, f"all {count} pods of attempt {attempt} to be bound", 60)

    def test_all_replicated_jobs_are_one_gang_in_their_order(self):
        jobset = self.submit_jobset("set", [("first", 2, 4), ("second", 1, 8)])
        self.play_controller(jobset)
        pods = self.wait_placed(16, 0)
        gang = self.wait_gang("set", "Running")
        self.assertEqual((gang["spec"]["owner"]["kind"], gang["spec"]["pods"]), ("JobSet", 16))
        ranks = {}
        for pod in pods:
            meta = pod["metadata"]
            start = {"first": 4 * int(meta["labels"][f"{LABELS}job-index"]), "second": 8}
            index = int(meta["annotations"]["batch.kubernetes.io/job-completion-index"])
            self.assertEqual(int(meta["annotations"]["heddle.dev/rank"]),
                             start[meta["labels"][f"{LABELS}replicatedjob-name"]] + index)
            ranks[int(meta["annotations"]["heddle.dev/rank"])] = bound_to(pod)
        self.assertEqual(sorted(ranks), list(range(16)))
        # Two pods of four GPUs make one tensor-parallel group of eight, and it lies on one server.
        for rank in range(0, 16, 2):
            self.assertEqual(ranks[rank], ranks[rank + 1])
        self.assert_no_gpu_twice()

    def test_the_next_attempt_is_a_gang_of_its_own(self):
        jobset = self.submit_jobset("again", [("workers", 1, 16)])
        self.play_controller(jobset)
        self.wait_placed(16, 0)
        scenario.remove(self.plane, TEAM, "again-workers-0")
        self.plane.rest.patch(f"{API}/{TEAM}/jobsets/again/status", {"status": {"restarts": 1}})
        self.play_controller(jobset, attempt=1)
        self.wait_placed(16, 1)

        def ended():
            return {gang["spec"].get("attempt", 0): self.ended(gang) for gang in self.plane.rest.list(path("gangs", TEAM))
                    if gang["spec"]["owner"]["uid"] == jobset["metadata"]["uid"]}
        self.plane.wait_for(lambda: ended().get(0, True), "the first attempt to give its slots back")
        self.assertFalse(ended()[1])
        self.assert_no_gpu_twice()

    def test_the_next_attempt_starts_beside_the_one_that_still_terminates(self):
        jobset = self.submit_jobset("slow", [("workers", 1, 16)])
        self.play_controller(jobset)
        old = self.wait_placed(16, 0)
        names = [pod["metadata"]["name"] for pod in old]
        for name in names:
            self.plane.rest.patch(path("pods", TEAM, name), {"metadata": {"annotations": {"bed.heddle.dev/end": "never"}}})
        self.plane.rest.delete(path("jobs", TEAM, "slow-workers-0"), propagationPolicy="Background")
        self.plane.wait_for(lambda: not self.plane.rest.find(path("jobs", TEAM, "slow-workers-0")), "the old Job to be gone")
        self.plane.rest.patch(f"{API}/{TEAM}/jobsets/slow/status", {"status": {"restarts": 1}})
        self.play_controller(jobset, attempt=1)
        self.wait_placed(16, 1)
        terminating = [pod for pod in self.plane.pods(TEAM) if pod["metadata"].get("deletionTimestamp")]
        self.assertEqual(len(terminating), 16, "the pods of the first attempt are still there")
        self.assert_no_gpu_twice()
        for name in names:
            self.plane.rest.delete(path("pods", TEAM, name), gracePeriodSeconds=0)

    def test_it_ends_with_its_jobset(self):
        jobset = self.submit_jobset("gone", [("workers", 1, 16)])
        self.play_controller(jobset)
        self.wait_placed(16, 0)
        self.plane.rest.delete(f"{API}/{TEAM}/jobsets/gone")
        self.plane.wait_for(lambda: not self.plane.pods(TEAM), "the pods to be collected")
        self.plane.wait_for(self.all_ended, "the Gang to end")
