"""JobSets as their own controller makes them, with its CRD and all its webhooks."""

import copy

from bed import path
from framework_case import FrameworkTestCase, environment, example, rank_of
from scenario import TEAM

LABELS = "jobset.sigs.k8s.io/"
JOBSETS = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{TEAM}/jobsets"


class JobSetController(FrameworkTestCase):
    frameworks = ("jobset",)
    kinds = ("jobset",)

    @classmethod
    def set_up_bed(cls):
        super().set_up_bed()
        cls.wait_webhook(JOBSETS, cls.jobset("probe"), "network")

    @staticmethod
    def jobset(name):
        made, = copy.deepcopy(example("jobset"))
        made["metadata"]["name"] = name
        return made

    def attempts(self, name):
        return {gang["spec"].get("attempt", 0): gang for gang in self.plane.rest.list(path("gangs", TEAM))
                if gang["spec"]["owner"]["name"] == name}

    def test_the_example_is_placed_by_the_ranks_it_trains_with_and_finishes(self):
        self.assert_example_is_sound("jobset")
        self.apply(*example("jobset"))
        pods = self.placed(8, f"{LABELS}jobset-name=llama")
        gang = self.wait_gang("llama", "Running")
        self.assertEqual((gang["spec"]["owner"]["kind"], gang["spec"]["pods"], gang["spec"]["gpus"]), ("JobSet", 8, 64))
        self.assert_as_planned(gang, pods)
        for pod in pods:
            index = int(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"])
            job = int(environment(pod)["JOB_INDEX"])
            self.assertEqual((rank_of(pod), job), (4 * job + index, int(pod["metadata"]["labels"][f"{LABELS}job-index"])))
        explained = self.explain("jobset/llama")
        self.assertEqual((explained["tpGroupsInDomain"], explained["tpGroups"]), (8, 8))
        self.finish(pods)
        self.wait_for(lambda: self.plane.rest.get(f"{JOBSETS}/llama")["status"].get("terminalState") == "Completed",
                      "the JobSet to be completed")
        self.plane.wait_for(self.all_ended, "the Gang to end", 60)

    def test_pods_of_half_a_node_share_it_by_tensor_groups(self):
        made = self.jobset("halves")
        template = made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
        del template["spec"]["containers"][0]["resources"]["limits"]["heddle.dev/rdma"]
        template["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = 4
        template["metadata"]["annotations"]["heddle.dev/parallelism"] = "tp=8,dp=4"
        self.apply(made)
        pods = self.placed(8, f"{LABELS}jobset-name=halves")
        self.assert_groups_share_a_node(pods, 2)

    def test_a_failed_pod_makes_the_next_attempt_a_gang_of_its_own(self):
        self.apply(self.jobset("again"))
        old = self.placed(8, f"{LABELS}jobset-name=again")
        self.wait_gang("again", "Running")
        self.finish(self.by_rank(old)[5:6], "failed")
        new = self.placed(8, f"{LABELS}jobset-name=again,{LABELS}restart-attempt=1")
        self.assertFalse({pod["metadata"]["uid"] for pod in old} & {pod["metadata"]["uid"] for pod in new})
        self.wait_for(lambda: all(self.ended(gang) for attempt, gang in self.attempts("again").items() if attempt == 0),
                      "the first attempt's Gang to end")
        gang = self.attempts("again")[1]
        self.assertFalse(self.ended(gang))
        self.assert_as_planned(gang, new)
        self.assertEqual(self.plane.rest.get(f"{JOBSETS}/again")["status"]["restarts"], 1)
