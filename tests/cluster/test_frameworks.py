"""Gangs of other owners than Jobs on a real control plane. StatefulSets are Kubernetes' own; the controllers of Kubeflow
cannot be had here, so the test plays them: it makes the pods that they would, with their labels and owner references."""

import copy
import json

from bed import h100, path
from bed.testing import bound_to, indexed_job
from scenario import STOCK, TEAM
from test_main_job import HeddleTestCase

KUBEFLOW = "training.kubeflow.org/"
PARALLELISM = {"heddle.dev/parallelism": "tp=8,dp=4"}
KINDS = {"PyTorchJob": ("v1", "pytorchjobs"), "MPIJob": ("v2beta1", "mpijobs")}


def crd(kind):
    version, plural = KINDS[kind]
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.kubeflow.org"},
        "spec": {"group": "kubeflow.org", "scope": "Namespaced",
                 "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
                 "versions": [{"name": version, "served": True, "storage": True, "subresources": {"status": {}},
                               "schema": {"openAPIV3Schema": {"type": "object",
                                                              "x-kubernetes-preserve-unknown-fields": True}}}]}}


class FrameworksTest(HeddleTestCase):
    cluster = h100()

    @classmethod
    def set_up_bed(cls):
        for kind, (version, plural) in KINDS.items():
            cls.plane.rest.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd(kind))
            listed = f"/apis/kubeflow.org/{version}/namespaces/default/{plural}"
            cls.plane.wait_for(lambda at=listed: cls.plane.rest.list(at) == [], f"{plural} to be served")
        super().set_up_bed()

    def kubeflow(self, kind, name=""):
        version, plural = KINDS[kind]
        return f"/apis/kubeflow.org/{version}/namespaces/{TEAM}/{plural}" + (f"/{name}" if name else "")

    def template(self, annotations=None):
        template = copy.deepcopy(indexed_job("", 1, 8, annotations=PARALLELISM if annotations is None else annotations)
                                 ["spec"]["template"])
        template["spec"].pop("restartPolicy", None)
        return template

    def wait_placed(self, prefix, count):
        def placed():
            pods = [pod for pod in self.plane.pods(TEAM) if pod["metadata"]["name"].startswith(prefix)]
            if len(pods) != count or not all(bound_to(pod) for pod in pods):
                raise AssertionError(f"{sum(1 for pod in pods if bound_to(pod))} of {len(pods)} pods bound")
            return {pod["metadata"]["name"]: int(pod["metadata"]["annotations"]["heddle.dev/rank"]) for pod in pods}
        return self.heddle.wait_for(placed, f"all {count} pods of {prefix} to be bound", 60)

    def make_pod(self, owner, name, labels):
        template = self.template()
        self.plane.rest.create(path("pods", TEAM), {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": labels, "annotations": template["metadata"]["annotations"],
                         "ownerReferences": [{"apiVersion": owner["apiVersion"], "kind": owner["kind"],
                                              "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
                                              "controller": True, "blockOwnerDeletion": True}]},
            "spec": template["spec"] | {"restartPolicy": "Never"}})

    def test_a_stateful_set_is_placed_by_its_ordinals(self):
        template = self.template()
        template["metadata"]["labels"] = {"app": "set"}
        made = self.plane.rest.create(f"/apis/apps/v1/namespaces/{TEAM}/statefulsets", {
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "set"},
            "spec": {"replicas": 4, "serviceName": "set", "podManagementPolicy": "Parallel",
                     "selector": {"matchLabels": {"app": "set"}}, "template": template}})
        ranks = self.wait_placed("set-", 4)
        self.assertEqual(ranks, {f"set-{i}": i for i in range(4)})
        gang = self.wait_gang("set", "Running")
        self.assertEqual((gang["spec"]["owner"]["kind"], gang["spec"]["owner"]["uid"]),
                         ("StatefulSet", made["metadata"]["uid"]))
        self.plane.rest.delete(f"/apis/apps/v1/namespaces/{TEAM}/statefulsets/set")
        self.plane.wait_for(lambda: not self.plane.pods(TEAM), "the pods to be collected", 60)
        self.plane.wait_for(self.all_ended, "the Gang to end")

    def assert_resized(self, title, before, count, dp):
        """That so many pods run, those from before where they were, and the Gang is of that size; returns their nodes."""
        self.wait_placed(title + "-", count)

        def of_that_size():
            gang = self.gang(title)
            if not gang or gang["spec"]["pods"] != count or gang["status"].get("summary") != f"Running {count}/{count}":
                raise AssertionError(f"{gang and gang['status'].get('summary')}: {gang and gang['status'].get('message')}")
            return gang
        gang = self.heddle.wait_for(of_that_size, f"the Gang of {title} to run with {count} pods", 60)
        self.assertEqual(gang["spec"]["parallelism"]["dp"], dp)
        now = {(pod["metadata"]["name"], pod["metadata"]["uid"]): bound_to(pod) for pod in self.plane.pods(TEAM)}
        stayed = {pod: node for pod, node in before.items() if pod in now}
        self.assertEqual({pod: now[pod] for pod in stayed}, stayed, "somebody was moved")
        self.assertEqual(len(stayed), min(len(before), count), "somebody was made again")
        self.assert_no_gpu_twice()
        return now

    def test_a_job_that_is_scaled_is_planned_at_its_new_size_and_nobody_moves(self):
        def scale(pods):
            self.plane.kubectl("-n", TEAM, "patch", "job", "rubber", "--type=merge", "-p",
                               json.dumps({"spec": {"completions": pods, "parallelism": pods}}))
        self.submit(indexed_job("rubber", 4, 8, annotations={"heddle.dev/parallelism": "tp=8,pp=2,dp=2"}))
        four = self.assert_resized("rubber", {}, 4, 2)
        scale(8)
        eight = self.assert_resized("rubber", four, 8, 4)
        scale(6)
        six = self.assert_resized("rubber", eight, 6, 3)
        scale(7)
        self.assertIn("scale to a multiple of 2 pods", self.wait_refused("rubber", "WorldMismatch"))
        self.assertEqual({(pod["metadata"]["name"], pod["metadata"]["uid"]): bound_to(pod)
                          for pod in self.plane.pods(TEAM) if bound_to(pod)}, six, "what runs goes on")
        scale(6)
        self.assert_resized("rubber", six, 6, 3)
        # Nothing but the Gang says by now that the size is no mistake.
        self.plane.rest.patch(path("jobs", TEAM, "rubber"), {"spec": {"suspend": True}})
        self.plane.wait_for(lambda: not self.plane.pods(TEAM), "the pods to go", 60)
        self.wait_gang("rubber", "Ended")
        self.plane.rest.patch(path("jobs", TEAM, "rubber"), {"spec": {"suspend": False}})
        self.assert_resized("rubber", {}, 6, 3)
        self.assert_not_failed("rubber")

    def test_a_stateful_set_is_scaled_up_and_down(self):
        template = self.template({"heddle.dev/parallelism": "tp=8,dp=2"})
        template["metadata"]["labels"] = {"app": "wide"}
        self.plane.rest.create(f"/apis/apps/v1/namespaces/{TEAM}/statefulsets", {
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "wide"},
            "spec": {"replicas": 2, "serviceName": "wide", "podManagementPolicy": "Parallel",
                     "selector": {"matchLabels": {"app": "wide"}}, "template": template}})
        pods = self.assert_resized("wide", {}, 2, 2)
        for count in (5, 3):
            self.plane.kubectl("-n", TEAM, "scale", "statefulset", "wide", f"--replicas={count}")
            pods = self.assert_resized("wide", pods, count, count)
        self.plane.rest.delete(f"/apis/apps/v1/namespaces/{TEAM}/statefulsets/wide")
        self.plane.wait_for(lambda: not self.plane.pods(TEAM), "the pods to be collected", 60)
        self.plane.wait_for(self.all_ended, "the Gang to end")

    def test_a_stateful_set_that_goes_one_by_one_is_told_what_to_set(self):
        template = self.template()
        template["metadata"]["labels"] = {"app": "slow"}
        self.plane.rest.create(f"/apis/apps/v1/namespaces/{TEAM}/statefulsets", {
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "slow"},
            "spec": {"replicas": 4, "serviceName": "slow", "selector": {"matchLabels": {"app": "slow"}},
                     "template": template}})
        self.assertIn("podManagementPolicy: Parallel", self.wait_refused("slow", "OneByOne"))
        self.plane.rest.delete(f"/apis/apps/v1/namespaces/{TEAM}/statefulsets/slow")
        self.plane.wait_for(lambda: not self.plane.pods(TEAM), "the pods to be collected", 60)

    def test_a_pytorchjob_is_placed_with_its_master_as_rank_0_and_ends_with_it(self):
        replica = {"replicas": 3, "template": self.template()}
        job = self.plane.rest.create(self.kubeflow("PyTorchJob"), {
            "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "torch"},
            "spec": {"pytorchReplicaSpecs": {"Master": replica | {"replicas": 1}, "Worker": replica}}})
        for kind, index in (("worker", 2), ("worker", 0), ("master", 0), ("worker", 1)):
            self.make_pod(job, f"torch-{kind}-{index}", {f"{KUBEFLOW}job-name": "torch", f"{KUBEFLOW}replica-type": kind,
                                                         f"{KUBEFLOW}replica-index": str(index)})
        ranks = self.wait_placed("torch-", 4)
        self.assertEqual(ranks, {"torch-master-0": 0, "torch-worker-0": 1, "torch-worker-1": 2, "torch-worker-2": 3})
        self.plane.rest.patch(self.kubeflow("PyTorchJob", "torch") + "/status", {
            "status": {"conditions": [{"type": "Succeeded", "status": "True"}]}})
        self.plane.wait_for(self.all_ended, "the Gang to end", 60)
        self.plane.rest.delete(self.kubeflow("PyTorchJob", "torch"))
        self.plane.wait_for(lambda: not self.plane.pods(TEAM), "the pods to be collected", 60)

    def test_the_workers_of_an_mpijob_are_a_gang_and_its_launcher_is_not(self):
        job = self.plane.rest.create(self.kubeflow("MPIJob"), {
            "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "mpi"},
            "spec": {"mpiReplicaSpecs": {"Launcher": {"replicas": 1}, "Worker": {"replicas": 4}}}})
        for index in range(4):
            self.make_pod(job, f"mpi-worker-{index}", {f"{KUBEFLOW}job-name": "mpi", f"{KUBEFLOW}job-role": "worker",
                                                       f"{KUBEFLOW}replica-index": str(index)})
        self.assertEqual(self.wait_placed("mpi-worker-", 4), {f"mpi-worker-{i}": i for i in range(4)})
        self.plane.rest.delete(self.kubeflow("MPIJob", "mpi"))
        self.plane.wait_for(self.all_ended, "the Gang to end", 60)
        self.plane.wait_for(lambda: not self.plane.pods(TEAM), "the pods to be collected", 60)

    def test_a_launcher_that_works_is_rank_0_of_its_mpijobs_gang(self):
        template = {"metadata": {"annotations": PARALLELISM}}
        job = self.plane.rest.create(self.kubeflow("MPIJob"), {
            "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "both"},
            "spec": {"runLauncherAsWorker": True, "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": template}, "Worker": {"replicas": 3, "template": template}}}})
        for index in (3, 1, 2):
            self.make_pod(job, f"both-worker-{index - 1}", {
                f"{KUBEFLOW}job-name": "both", f"{KUBEFLOW}job-role": "worker", f"{KUBEFLOW}replica-index": str(index)})

        def collecting():
            return (self.gang("both") or {}).get("status", {}).get("progress", {}).get("seen") == 3
        self.heddle.wait_for(collecting, "the Gang to wait for the launcher", 60)
        # The launcher's Job is real: its controller makes the pod, and nothing on that has the MPIJob's UID.
        launcher = indexed_job("both-launcher", 1, 8, annotations=PARALLELISM)
        del launcher["spec"]["completionMode"]
        launcher["metadata"]["ownerReferences"] = [{
            "apiVersion": job["apiVersion"], "kind": "MPIJob", "name": "both", "uid": job["metadata"]["uid"],
            "controller": True, "blockOwnerDeletion": True}]
        launcher["spec"]["template"]["metadata"]["labels"] = {
            f"{KUBEFLOW}job-name": "both", f"{KUBEFLOW}job-role": "launcher", f"{KUBEFLOW}replica-index": "0"}
        self.submit(launcher)
        ranks = self.wait_placed("both-", 4)
        self.assertEqual({name.removesuffix(name[-6:]) if "launcher" in name else name: rank
                          for name, rank in ranks.items()},
                         {"both-launcher": 0, "both-worker-0": 1, "both-worker-1": 2, "both-worker-2": 3})
        gang = self.wait_gang("both", "Running")
        self.assertEqual((gang["spec"]["owner"]["kind"], gang["spec"]["owner"]["uid"], gang["spec"]["pods"]),
                         ("MPIJob", job["metadata"]["uid"], 4))
        self.plane.rest.delete(self.kubeflow("MPIJob", "both"))
        self.plane.wait_for(self.all_ended, "the Gang to end", 60)
        self.plane.wait_for(lambda: not self.plane.pods(TEAM), "the pods to be collected", 60)

    def test_an_elastic_pytorchjob_is_planned_again_at_its_new_size_and_nobody_moves(self):
        def spec(workers):
            return {"elasticPolicy": {"minReplicas": 2, "maxReplicas": 8},
                    "pytorchReplicaSpecs": {"Worker": {"replicas": workers, "template": self.template()}}}
        job = self.plane.rest.create(self.kubeflow("PyTorchJob"), {
            "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "rubber"}, "spec": spec(2)})

        def worker(index):
            self.make_pod(job, f"rubber-worker-{index}", {f"{KUBEFLOW}job-name": "rubber", f"{KUBEFLOW}replica-type": "worker",
                                                          f"{KUBEFLOW}replica-index": str(index)})
        for index in range(2):
            worker(index)
        self.wait_placed("rubber-", 2)
        self.assertEqual(self.wait_gang("rubber", "Running")["spec"]["parallelism"]["dp"], 2)
        before = {pod["metadata"]["name"]: bound_to(pod) for pod in self.plane.pods(TEAM)}
        self.plane.rest.patch(self.kubeflow("PyTorchJob", "rubber"), {"spec": spec(5)})
        for index in (2, 3, 4):
            worker(index)
        self.assertEqual(self.wait_placed("rubber-", 5), {f"rubber-worker-{i}": i for i in range(5)})
        after = {pod["metadata"]["name"]: bound_to(pod) for pod in self.plane.pods(TEAM)}
        self.assertEqual({name: after[name] for name in before}, before)
        self.assertEqual(self.wait_gang("rubber", "Running")["spec"]["pods"], 5)
        # c10d ranks its processes itself: who was planned for which rank stands in a file.
        self.assertIn("4\trubber-worker-4\t",
                      self.plane.rest.get(path("configmaps", TEAM, "rubber-heddle-ranks"))["data"]["ranks.tsv"])
        self.plane.rest.delete(self.kubeflow("PyTorchJob", "rubber"))
        self.plane.wait_for(self.all_ended, "the Gang to end", 60)
        self.plane.wait_for(lambda: not self.plane.pods(TEAM), "the pods to be collected", 60)

    def test_a_job_of_one_completion_and_a_hundred_pods_at_once_is_told_what_to_set(self):
        job = indexed_job("lopsided", 1, 8, annotations=PARALLELISM)
        job["spec"]["parallelism"] = 100
        self.submit(job)
        self.assertIn("completions 1 and parallelism 100", self.wait_refused("lopsided", "CompletionsNotParallelism"))
        self.assertTrue(all(not bound_to(pod) for pod in self.plane.pods(TEAM)))
        self.assert_not_failed("lopsided")

    def test_an_annotated_pod_that_no_gate_held_is_told_to_its_job_once(self):
        self.submit(indexed_job("elsewhere", 3, 8, annotations={"heddle.dev/parallelism": "tp=8,dp=3"}), STOCK)

        def told():
            return [event for event in self.plane.rest.list(path("events", STOCK)) if event["reason"] == "NotGated"]
        event = self.heddle.wait_for(lambda: told() and told()[0], "an event on the Job", 60)
        self.assertEqual((event["involvedObject"]["kind"], event["involvedObject"]["name"], event["type"]),
                         ("Job", "elsewhere", "Warning"))
        self.assertIn("heddle.dev/scope=enabled", event["message"])
        self.plane.wait_for(lambda: all(bound_to(pod) for pod in self.plane.pods(STOCK)), "the Job to run all the same")
        self.assertEqual([event.get("count", 1) for event in told()], [1])
        self.assertEqual(self.plane.rest.list(path("gangs", STOCK)), [])
