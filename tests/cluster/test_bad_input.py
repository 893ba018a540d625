"""What people and broken machines do to the objects of a gang under way: each ends with every GPU promised once, nobody
moved who runs, and the gang whole or told why not."""

import time

import scenario
from bed import ApiError, path
from bed.testing import bound_to
from scenario import TEAM
from test_main_job import RefusedReleases
from test_scheduler import INDEX, GangCase

HOSTNAME = "kubernetes.io/hostname"


def rank_of(pod):
    return int(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"])


class BadInput(GangCase):

    def places(self, name):
        """The node that each rank is planned on."""
        placed = (self.gang(name).get("status") or {}).get("placement")
        return [placed["nodeNames"][index] for index in placed["nodes"]] if placed else []

    def pod_of(self, name, rank):
        return next(pod for pod in scenario.pods_of(self.plane, TEAM, name) if rank_of(pod) == rank)

    def patch_pod(self, name, rank, body):
        self.plane.rest.patch(path("pods", TEAM, self.pod_of(name, rank)["metadata"]["name"]), body)

    def unused(self, name):
        return next(node.name for node in self.cluster.nodes if node.name not in self.places(name))

    def half_let_go(self, name):
        """Ranks from 2 on are refused where this is used; returns where the first two are."""
        self.wait_bound(name, 2)
        return {rank_of(pod): bound_to(pod) for pod in self.bound(name)}

    def test_a_gang_whose_gated_pod_is_told_to_run_elsewhere_is_planned_again_before_anybody_is_let_go(self):
        with RefusedReleases(self.plane, "true"):
            name = self.gang_job(pods=4)
            self.wait_gang(name, "Planned")
            elsewhere = self.unused(name)
            self.patch_pod(name, 1, {"spec": {"nodeSelector": {HOSTNAME: elsewhere}}})
            self.heddle.wait_for(lambda: self.places(name)[1] == elsewhere, "rank 1 to be planned elsewhere", 30)
        self.wait_bound(name, 4)
        self.assert_whole(name)

    def test_a_gated_pod_that_is_told_to_run_elsewhere_after_others_were_let_go_moves_alone(self):
        with RefusedReleases(self.plane, f"{INDEX} >= 2"):
            name = self.gang_job(pods=4)
            before = self.half_let_go(name)
            elsewhere = self.unused(name)
            self.patch_pod(name, 3, {"spec": {"nodeSelector": {HOSTNAME: elsewhere}}})
            self.heddle.wait_for(lambda: self.places(name)[3] == elsewhere, "rank 3 to be planned elsewhere", 30)
        self.wait_bound(name, 4)
        self.assert_whole(name)
        self.assertEqual({rank: bound_to(self.pod_of(name, rank)) for rank in before}, before)

    def test_other_words_on_one_pod_stop_a_gang_half_let_go_until_they_are_taken_back(self):
        with RefusedReleases(self.plane, f"{INDEX} >= 2"):
            name = self.gang_job(pods=4)
            self.half_let_go(name)
            self.patch_pod(name, 3, {"metadata": {"annotations": {"heddle.dev/parallelism": "tp=4,dp=8"}}})
            message = self.wait_refused(name, "UnequalPods")
            self.assertIn("heddle.dev/parallelism", message)
        self.patch_pod(name, 3, {"metadata": {"annotations": {"heddle.dev/parallelism": "tp=8,dp=4"}}})
        self.wait_bound(name, 4)
        self.assert_whole(name)

    def test_a_gang_object_that_somebody_deletes_half_way_is_made_again_and_nobody_moves(self):
        with RefusedReleases(self.plane, f"{INDEX} >= 2"):
            name = self.gang_job(pods=4)
            before = self.half_let_go(name)
            gang = self.gang(name)
            self.plane.rest.delete(path("gangs", TEAM, gang["metadata"]["name"]))

            def planned_anew():
                found = self.gang(name)
                return found and found["metadata"]["uid"] != gang["metadata"]["uid"] and self.places(name)
            self.heddle.wait_for(planned_anew, "another Gang with a plan", 30)
        self.wait_bound(name, 4)
        self.assert_whole(name)
        self.assertEqual({rank: bound_to(self.pod_of(name, rank)) for rank in before}, before)

    def edit_placement(self, name, change):
        gang = self.gang(name)
        change(gang["status"]["placement"])
        self.plane.rest.replace(path("gangs", TEAM, gang["metadata"]["name"], "status"), gang)

    def test_a_plan_edited_by_an_administrator_follows_the_pods_that_run_again(self):
        name = self.gang_job(pods=4)
        self.wait_gang(name, "Running")
        before = self.places(name)
        self.edit_placement(name, lambda placement: placement["nodes"].reverse())
        self.heddle.wait_for(lambda: self.places(name) == before, "the plan to be that of the pods again", 30)
        self.assert_no_gpu_twice()
        self.assertEqual([bound_to(self.pod_of(name, rank)) for rank in range(4)], before)

    def test_a_plan_that_an_administrator_cut_short_is_made_anew_and_the_gang_is_let_go_whole(self):
        def cut(placement):
            for column in ("nodes", "gpus", "substitutes"):
                if isinstance(placement.get(column), list) and len(placement[column]) == 4:
                    placement[column] = placement[column][:2]
        with RefusedReleases(self.plane, "true"):
            name = self.gang_job(pods=4)
            self.wait_gang(name, "Planned")
            self.edit_placement(name, cut)
            self.heddle.wait_for(lambda: len(self.places(name)) == 4, "a plan for every rank", 30)
        self.wait_bound(name, 4)
        self.assert_whole(name)

    def test_people_who_may_edit_a_namespace_may_not_write_its_gangs_and_nobody_changes_what_was_read(self):
        name = self.gang_job(pods=4)
        gang = self.wait_gang(name, "Running")
        where = path("gangs", TEAM, gang["metadata"]["name"])
        self.plane.rest.create(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{TEAM}/rolebindings", {
            "metadata": {"name": "jane"}, "subjects": [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}})
        jane = self.plane.rest.as_user("jane", groups=["system:authenticated"])
        self.plane.wait_for(lambda: jane.list(path("pods", TEAM)), "the role to be in force")
        for what in (lambda: jane.patch(where + "/status", {"status": {"placement": None}}),
                     lambda: jane.patch(where, {"spec": {"pods": 2}}), lambda: jane.delete(where)):
            with self.assertRaises(ApiError) as refused:
                what()
            self.assertEqual(refused.exception.status, 403)
        with self.assertRaises(ApiError) as refused:
            self.plane.rest.patch(where, {"spec": {"pods": 2}})
        self.assertEqual(refused.exception.status, 422)

    def flap(self, node, times, pause):
        """As a GPU that is on the edge, told by an agent that says it at once: the real one is away meanwhile."""
        where = path("nodetopologies", name=node)
        gpus, sound = None, None
        for turn in range(times):
            now = self.plane.rest.get(where)["status"]
            gpus, sound = gpus or now["gpus"], sound or now["hash"]
            broken = [gpu | ({"health": "Unhealthy", "reason": "XID 79"} if gpu["index"] == 3 else {}) for gpu in gpus]
            self.plane.rest.patch(where + "/status", {"status": {
                "gpus": gpus if turn % 2 else broken, "hash": sound if turn % 2 else sound[:-1] + ("0" if sound[-1] != "0" else "1")}})
            time.sleep(pause)

    def test_a_gpu_that_flaps_sixty_times_costs_few_writes_and_the_gang_on_its_node_ends_right(self):
        runs = self.gang_job(pods=4)
        self.wait_gang(runs, "Running")
        node = self.unused(runs)
        self.heddle.kill9(f"agent:{node}")
        writer = "system:serviceaccount:heddle-system:heddle-extender"
        before = len(self.plane.audit(user=writer))
        try:
            # Held at the gate, or it would be let go at the first good moment and all else be nobody's business.
            with RefusedReleases(self.plane, "true"):
                name = self.gang_job(pods=4)
                self.flap(node, times=60, pause=0.1)
        finally:
            self.heddle.start_daemon(f"agent:{node}")
        writes = [event for event in self.plane.audit(user=writer)[before:]
                  if event["verb"] in ("create", "update", "patch", "delete") and event["resource"] != "leases"
                  and event["code"] < 400]  # how often the gate of this test refuses depends on how fast all is
        self.wait_bound(name, 4)
        self.assert_whole(name)
        self.assert_whole(runs)
        # A plan or a refusal for each turn at most (67 writes were counted); each with an event would be 120.
        self.assertLess(len(writes), 120, [(event["verb"], event["resource"]) for event in writes])

