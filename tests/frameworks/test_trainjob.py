"""TrainJobs as Kubeflow Trainer and JobSet's controller make them: both with their CRDs and their webhooks."""

import copy

from framework_case import FrameworkTestCase, environment, example, rank_of
from scenario import TEAM

JOBS = f"/apis/trainer.kubeflow.org/v1alpha1/namespaces/{TEAM}/trainjobs"
JOBSETS = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{TEAM}/jobsets"
OF_LLAMA = "jobset.sigs.k8s.io/jobset-name=llama"


class TrainerController(FrameworkTestCase):
    frameworks = ("jobset", "trainer")
    kinds = ("trainjob",)

    @classmethod
    def set_up_bed(cls):
        super().set_up_bed()
        probe, = copy.deepcopy(example("jobset"))
        cls.wait_webhook(JOBSETS, probe, "network")

    def test_the_example_is_a_gang_of_its_jobset_by_the_ranks_torchrun_is_told(self):
        self.assert_example_is_sound("trainjob")
        self.apply(*example("trainjob"))
        pods = self.placed(8, OF_LLAMA)
        gang = self.wait_gang("llama", "Running")
        self.assertEqual((gang["spec"]["owner"]["kind"], gang["spec"]["pods"], gang["spec"]["gpus"]), ("JobSet", 8, 64))
        self.assert_as_planned(gang, pods)
        for pod in pods:
            seen = environment(pod)
            self.assertEqual((seen["PET_NODE_RANK"], seen["PET_NNODES"]), (str(rank_of(pod)), "8"))
        self.assertEqual(self.explain("trainjob/llama")["tpGroups"], 8)
        self.finish(pods)

        def complete():
            conditions = self.plane.rest.get(f"{JOBS}/llama").get("status", {}).get("conditions", [])
            return any(one["type"] == "Complete" and one["status"] == "True" for one in conditions)
        self.wait_for(complete, "the TrainJob to be complete")
        self.plane.wait_for(self.all_ended, "the Gang to end", 60)

    def test_a_suspended_trainjob_gives_its_gpus_back_and_gets_others_when_it_goes_on(self):
        runtime, job = copy.deepcopy(example("trainjob"))
        self.apply(runtime, job)
        first = self.placed(8, OF_LLAMA)
        self.plane.rest.patch(f"{JOBS}/llama", {"spec": {"suspend": True}})
        self.plane.wait_for(lambda: not self.plane.pods(TEAM), "the pods to be deleted", 60)
        self.wait_for(self.all_ended, "the Gang to end")
        self.plane.rest.patch(f"{JOBS}/llama", {"spec": {"suspend": False}})
        again = self.placed(8, OF_LLAMA, but={pod["metadata"]["uid"] for pod in first})
        self.by_rank(again)
