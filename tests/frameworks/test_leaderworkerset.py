"""LeaderWorkerSets as their own controller makes them, with its CRD and all its webhooks: pods are numbered by it."""

import copy

from bed import path
from bed.testing import bound_to
from framework_case import FrameworkTestCase, environment, example, rank_of
from scenario import TEAM

LWS = "leaderworkerset.sigs.k8s.io/"
SETS = f"/apis/leaderworkerset.x-k8s.io/v1/namespaces/{TEAM}/leaderworkersets"


class LeaderWorkerSetController(FrameworkTestCase):
    frameworks = ("lws",)
    kinds = ("leaderworkerset",)

    @classmethod
    def set_up_bed(cls):
        super().set_up_bed()
        probe, = copy.deepcopy(example("leaderworkerset"))
        cls.wait_webhook(SETS, probe, "networkConfig")

    def gangs(self):
        """The Gangs that have not ended, by group."""
        return {gang["spec"]["group"]: gang for gang in self.plane.rest.list(path("gangs", TEAM)) if not self.ended(gang)}

    def groups(self, pods):
        found = {}
        for pod in pods:
            found.setdefault(int(pod["metadata"]["labels"][f"{LWS}group-index"]), []).append(pod)
        return found

    def restart_container(self, pod):
        """Its container has ended and begun again. To delete it would do, too, but KWOK ends it within a hundredth of a
        second, and the controller may have seen nothing of that when the StatefulSet's next pod is there."""
        where = path("pods", TEAM, pod["metadata"]["name"])
        containers = self.plane.rest.get(where)["status"]["containerStatuses"]
        containers[0]["restartCount"] = 1
        self.plane.rest.patch(where + "/status", {"status": {"containerStatuses": containers}})

    def test_each_group_of_the_example_is_a_gang_by_its_worker_indexes(self):
        self.assert_example_is_sound("leaderworkerset")
        self.apply(*example("leaderworkerset"))
        groups = self.groups(self.placed(8, f"{LWS}name=serve"))
        self.assertEqual(sorted(groups), [0, 1])
        for index, pods in groups.items():
            gang = self.gangs()[f"LeaderWorkerSet/serve/{index}"]
            self.assertEqual((gang["spec"]["owner"]["kind"], gang["spec"]["pods"]), ("LeaderWorkerSet", 4))
            self.assert_as_planned(gang, pods)
            leader = self.by_rank(pods)[0]["metadata"]["name"]
            for pod in pods:
                seen = environment(pod)
                self.assertEqual((int(seen["LWS_WORKER_INDEX"]), int(seen["LWS_GROUP_SIZE"])), (rank_of(pod), 4))
                self.assertTrue(seen["LWS_LEADER_ADDRESS"].startswith(f"{leader}."), seen["LWS_LEADER_ADDRESS"])
        self.assertTrue(self.explain("lws/serve"))

    def test_a_failed_pod_makes_its_group_another_gang_and_the_other_group_stays(self):
        made, = copy.deepcopy(example("leaderworkerset"))
        made["metadata"]["name"] = "again"
        self.apply(made)
        before = self.groups(self.placed(8, f"{LWS}name=again"))
        gangs = self.gangs()
        self.restart_container(self.by_rank(before[0])[2])
        gone = {pod["metadata"]["uid"] for pod in before[0]}
        after = self.groups(self.placed(8, f"{LWS}name=again", but=gone))
        self.assertEqual({pod["metadata"]["name"]: bound_to(pod) for pod in after[1]},
                         {pod["metadata"]["name"]: bound_to(pod) for pod in before[1]})
        self.assertEqual(self.gangs()["LeaderWorkerSet/again/1"]["metadata"]["uid"],
                         gangs["LeaderWorkerSet/again/1"]["metadata"]["uid"])
        new = self.gangs()["LeaderWorkerSet/again/0"]
        self.assertNotEqual(new["metadata"]["uid"], gangs["LeaderWorkerSet/again/0"]["metadata"]["uid"])
        self.assertEqual(new["spec"]["leader"], self.by_rank(after[0])[0]["metadata"]["uid"])
        self.assert_as_planned(new, after[0])

    def test_each_group_has_its_own_ranks_in_the_one_file_which_goes_with_the_last(self):
        made, = copy.deepcopy(example("leaderworkerset"))
        made["metadata"]["name"] = "meet"
        container = made["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]
        container["env"] = [{"name": "PET_RDZV_BACKEND", "value": "c10d"}]
        self.apply(made)
        before = self.groups(self.placed(8, f"{LWS}name=meet"))
        for index, pods in before.items():
            self.assert_in_the_file("meet", pods, f"ranks-{index}.tsv")
        kept = self.ranks_file("meet", "ranks-1.tsv")
        self.restart_container(self.by_rank(before[0])[2])
        gone = {pod["metadata"]["uid"] for pod in before[0]}
        after = self.groups(self.placed(8, f"{LWS}name=meet", but=gone))
        self.assert_in_the_file("meet", after[0], "ranks-0.tsv")
        self.assertEqual(self.ranks_file("meet", "ranks-1.tsv"), kept)
        file = path("configmaps", TEAM, "meet-heddle-ranks")
        self.assertEqual(sorted(self.plane.rest.get(file)["data"]),
                         ["hostfile-0", "hostfile-1", "ranks-0.tsv", "ranks-1.tsv"])
        self.plane.kubectl("-n", TEAM, "delete", "leaderworkerset", "meet")
        self.wait_for(lambda: self.plane.rest.find(file) is None, "the file of the ranks to go with its Gangs")

    def test_another_replica_is_another_gang_and_one_less_gives_its_gpus_back(self):
        made, = copy.deepcopy(example("leaderworkerset"))
        made["metadata"]["name"] = "wide"
        made["spec"]["replicas"] = 1
        self.apply(made)
        first = self.placed(4, f"{LWS}name=wide")
        self.plane.kubectl("-n", TEAM, "scale", "leaderworkerset", "wide", "--replicas=3")
        pods = self.placed(12, f"{LWS}name=wide")
        where = {pod["metadata"]["uid"]: bound_to(pod) for pod in pods}
        self.assertEqual([where[pod["metadata"]["uid"]] for pod in first], [bound_to(pod) for pod in first])
        self.assertEqual(self.assert_no_gpu_twice(), 96)
        self.plane.kubectl("-n", TEAM, "scale", "leaderworkerset", "wide", "--replicas=1")
        self.placed(4, f"{LWS}name=wide")
        self.wait_for(lambda: list(self.gangs()) == ["LeaderWorkerSet/wide/0"], "the other groups' Gangs to end")
