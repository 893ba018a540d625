"""Kueue's own controller and all its webhooks before Heddle: quota first, then the place. Left out is its visibility server,
an API that the aggregation layer would have to reach."""

import copy
import json

import scenario
from bed import path
from controllers import refused_or_made
from framework_case import FrameworkTestCase, example
from scenario import TEAM

KUEUE = "kueue.x-k8s.io/"


class Kueue(FrameworkTestCase):
    frameworks = ("jobset", "kueue")
    kinds = ("job", "jobset", "pod")

    @classmethod
    def set_up_bed(cls):
        super().set_up_bed()
        flavor, queue, local, *_, job = example("job-kueue")
        at = "/apis/kueue.x-k8s.io/v1beta1"
        cls.plane.wait_for(lambda: refused_or_made(lambda: cls.plane.rest.create(f"{at}/resourceflavors?dryRun=All", flavor)),
                           "the webhooks of Kueue to answer")
        cls.plane.rest.create(f"{at}/resourceflavors", flavor)
        cls.plane.rest.create(f"{at}/clusterqueues", queue)
        cls.plane.rest.create(f"{at}/namespaces/{TEAM}/localqueues", local)
        job = copy.deepcopy(job)
        job["spec"]["suspend"] = False
        cls.plane.wait_for(lambda: cls.plane.rest.create(path("jobs", TEAM) + "?dryRun=All", job)["spec"]["suspend"],
                           "Kueue's webhook to suspend a Job of a queue")

    @staticmethod
    def job(name):
        *_, made = copy.deepcopy(example("job-kueue"))
        made["metadata"]["name"] = name
        return made

    def workloads(self):
        return self.plane.rest.list(f"/apis/kueue.x-k8s.io/v1beta1/namespaces/{TEAM}/workloads")

    def test_a_queued_job_is_placed_when_kueue_admits_it_and_the_next_when_its_quota_is_free(self):
        self.assert_example_is_sound("job-kueue")
        self.apply(self.job("first"), self.job("second"))
        pods = self.placed(8, "batch.kubernetes.io/job-name=first")
        # 12 nodes' quota: the second waits in Kueue, and Heddle has nothing of it.
        self.assertEqual(self.plane.pods(TEAM, "batch.kubernetes.io/job-name=second"), [])
        self.assertTrue(self.plane.rest.get(path("jobs", TEAM, "second"))["spec"]["suspend"])
        gang = self.wait_gang("first", "Running")
        self.assert_as_planned(gang, pods)
        self.assertEqual(self.explain("job/first")["tpGroups"], 8)
        self.finish(pods)
        self.wait_for(lambda: not self.plane.rest.get(path("jobs", TEAM, "second"))["spec"]["suspend"],
                      "Kueue to admit the second Job when the first is complete")
        scenario.remove(self.plane, TEAM, "first")
        second = self.placed(8, "batch.kubernetes.io/job-name=second")
        self.assert_as_planned(self.wait_gang("second", "Running"), second)

    def test_a_job_that_kueue_stops_gives_its_gpus_back(self):
        self.apply(self.job("stopped"))
        self.placed(8, "batch.kubernetes.io/job-name=stopped")
        workload, = self.workloads()
        self.plane.rest.patch(f"/apis/kueue.x-k8s.io/v1beta1/namespaces/{TEAM}/workloads/{workload['metadata']['name']}",
                              {"spec": {"active": False}})
        self.plane.wait_for(lambda: not self.plane.pods(TEAM), "Kueue to suspend the Job", 60)
        self.wait_for(self.all_ended, "the Gang to end")

    def test_a_queued_jobset_is_placed_whole(self):
        made, = copy.deepcopy(example("jobset"))
        made["metadata"] |= {"name": "queued", "labels": {f"{KUEUE}queue-name": "training"}}
        self.apply(made)
        pods = self.placed(8, "jobset.sigs.k8s.io/jobset-name=queued")
        self.assert_as_planned(self.wait_gang("queued", "Running"), pods)

    def test_a_plain_pod_group_passes_kueues_gate_first_and_then_ours(self):
        self.assert_example_is_sound("pods-kueue")
        self.apply(*example("pods-kueue"))
        pods = self.placed(2, f"{KUEUE}pod-group-name=pair")
        self.assertEqual([pod["metadata"]["name"] for pod in self.by_rank(pods)], ["pair-0", "pair-1"])
        self.assertEqual(self.explain("pods/pair")["tpGroups"], 2)
        user = self.controllers["kueue"].user
        opened = {event["name"]: event["time"] for verb in ("patch", "update")
                  for event in self.plane.audit(user=user, verb=verb, resource="pods")
                  if "schedulingGates" in json.dumps(event["body"])}
        ours = {}
        for event in self.plane.audit(user="system:serviceaccount:heddle-system:heddle-extender", verb="patch", resource="pods"):
            ours.setdefault(event["name"], event["time"])
        for name in ("pair-0", "pair-1"):
            self.assertLess(opened[name], ours[name], "quota comes before the place")
        self.finish(pods)
        self.plane.wait_for(lambda: all(pod["status"]["phase"] == "Succeeded" for pod in self.plane.pods(TEAM)),
                            "both to have succeeded")
