"""PyTorchJobs as training-operator makes them, with its CRD. Its webhook only refuses bad names and is left out."""

import copy

from framework_case import FrameworkTestCase, environment, example, rank_of
from scenario import TEAM

KUBEFLOW = "training.kubeflow.org/"
JOBS = f"/apis/kubeflow.org/v1/namespaces/{TEAM}/pytorchjobs"


class TrainingOperator(FrameworkTestCase):
    frameworks = ("training-operator",)
    kinds = ("pytorchjob",)

    def succeeded(self, name):
        conditions = self.plane.rest.get(f"{JOBS}/{name}").get("status", {}).get("conditions", [])
        return any(one["type"] == "Succeeded" and one["status"] == "True" for one in conditions)

    def test_the_example_is_placed_by_the_ranks_it_is_told_and_finishes(self):
        self.assert_example_is_sound("pytorchjob")
        self.apply(*example("pytorchjob"))
        pods = self.placed(8, f"{KUBEFLOW}job-name=llama")
        gang = self.wait_gang("llama", "Running")
        self.assertEqual((gang["spec"]["owner"]["kind"], gang["spec"]["pods"], gang["spec"]["gpus"]), ("PyTorchJob", 8, 64))
        self.assert_as_planned(gang, pods)
        for pod in pods:
            seen = environment(pod)
            self.assertEqual((int(seen["RANK"]), int(seen["PET_NODE_RANK"])), (rank_of(pod), rank_of(pod)))
        self.assertEqual(self.by_rank(pods)[0]["metadata"]["name"], "llama-master-0")
        self.assertEqual(self.explain("pytorchjob/llama")["tpGroups"], 8)
        self.finish(pods)
        self.wait_for(lambda: self.succeeded("llama"), "the PyTorchJob to have succeeded")
        self.plane.wait_for(self.all_ended, "the Gang to end", 60)

    def test_a_deleted_worker_comes_back_to_its_ranks_slot(self):
        made, = copy.deepcopy(example("pytorchjob"))
        made["metadata"]["name"] = "again"
        self.apply(made)
        before = self.by_rank(self.placed(8, f"{KUBEFLOW}job-name=again"))
        victim = before[3]["metadata"]
        self.plane.kubectl("-n", TEAM, "delete", "pod", victim["name"], "--wait=false")
        after = self.by_rank(self.placed(8, f"{KUBEFLOW}job-name=again", but={victim["uid"]}))
        self.assertEqual(after[3]["spec"]["nodeName"], before[3]["spec"]["nodeName"])

    def test_an_elastic_job_has_its_ranks_in_a_file(self):
        made, = copy.deepcopy(example("pytorchjob"))
        made["metadata"]["name"] = "rubber"
        spec = made["spec"]
        spec["elasticPolicy"] = {"rdzvBackend": "c10d", "minReplicas": 2, "maxReplicas": 8}
        del spec["pytorchReplicaSpecs"]["Master"], spec["nprocPerNode"]
        spec["elasticPolicy"]["nProcPerNode"] = 8
        spec["pytorchReplicaSpecs"]["Worker"]["replicas"] = 4
        self.apply(made)
        four = self.placed(4, f"{KUBEFLOW}job-name=rubber")
        self.assert_in_the_file("rubber", four)
        first = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in four}
        self.plane.rest.patch(f"{JOBS}/rubber", {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 6}}}})
        pods = self.by_rank(self.placed(6, f"{KUBEFLOW}job-name=rubber"))
        self.assertEqual([pod["metadata"]["name"] for pod in pods], [f"rubber-worker-{index}" for index in range(6)])
        self.assert_in_the_file("rubber", pods)
        self.assertEqual({name: node for name, node in ((pod["metadata"]["name"], pod["spec"]["nodeName"]) for pod in pods)
                          if name in first}, first)
