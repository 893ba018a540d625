"""What the soak holds a real control plane to fires when it is broken, and only then. No control plane is needed."""

import json
import tempfile
import unittest
from pathlib import Path

from soak_promises import GRACE, AuditTail, Promises, hot, room_of, twice


def gang(uid, version, rows, epoch=1):
    """A row without a node is one without a slot."""
    names = sorted({node or "-" for node, _ in rows})
    return {"metadata": {"uid": uid, "name": uid, "resourceVersion": str(version)}, "status": {"placement": {
        "epoch": epoch, "nodeNames": names, "nodes": [names.index(node or "-") for node, _ in rows], "gpus": [gpus for _, gpus in rows]}}}


def pod(name, version, gang_uid, node, gpus, rank=0, epoch=1, bound="", count=None, phase="Pending", **meta):
    """It asks for `count` GPUs, or for as many as its plan names."""
    limits = {"nvidia.com/gpu": str(len(gpus.split(",")) if count is None else count)}
    return {"metadata": {"uid": f"uid-{name}", "name": name, "resourceVersion": str(version),
                         "ownerReferences": [{"uid": f"job-{gang_uid}", "controller": True}],
                         "annotations": {"heddle.dev/node": node, "heddle.dev/gpus": gpus, "heddle.dev/rank": str(rank),
                                         "heddle.dev/gang-uid": gang_uid, "heddle.dev/epoch": str(epoch)}} | meta,
            "spec": {"containers": [{"name": "worker", "resources": {"limits": limits}}]} | ({"nodeName": bound} if bound else {}),
            "status": {"phase": phase}}


def of_no_gang(name, version, count, bound, phase="Running"):
    return {"metadata": {"uid": f"uid-{name}", "name": name, "resourceVersion": str(version)},
            "spec": {"nodeName": bound, "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": str(count)}}}]},
            "status": {"phase": phase}}


NODES = [{"metadata": {"name": name}, "status": {"allocatable": {"cpu": "192", "nvidia.com/gpu": "8"}}} for name in ("n0", "n1")]


class PromisesTest(unittest.TestCase):
    def setUp(self):
        self.promises = Promises(room=room_of(NODES))

    def plan(self, uid, version, *rows, epoch=1):
        self.promises.saw_gang("MODIFIED", gang(uid, version, rows, epoch), True, 0.0)

    def see(self, *pods, kind="MODIFIED"):
        for one in pods:
            self.promises.saw_pod(kind, one, True, 0.0)

    def rules(self):
        return [sentence.partition(":")[0] for sentence in self.promises.answer(GRACE + 1)]

    def test_gangs_side_by_side_break_nothing(self):
        self.plan("a", 5, ("n0", 0x0f))
        self.plan("b", 6, ("n0", 0xf0))
        self.see(pod("a-0", 7, "a", "n0", "0,1,2,3"), pod("b-0", 8, "b", "n0", "4,5,6,7"),
                 pod("a-0", 9, "a", "n0", "0,1,2,3", bound="n0"), pod("b-0", 10, "b", "n0", "4,5,6,7", bound="n0"))
        self.assertEqual(self.rules(), [])
        self.assertEqual(self.promises.misplaced(), [])

    def test_a_pod_that_was_told_what_no_gang_says(self):
        self.plan("a", 5, ("n0", 0x0f))
        self.see(pod("a-0", 7, "a", "n0", "4,5,6,7"))
        self.assertEqual(self.promises.answer(1.0), [], "the other watch may be behind")
        self.assertEqual(self.rules(), ["PlanBeforePod"])

    def test_a_pod_that_was_told_a_rank_without_a_slot(self):
        self.plan("a", 5, ("n0", 0x0f), ("", 0))
        self.see(pod("a-1", 7, "a", "n0", "4,5,6,7", rank=1))
        self.assertEqual(self.rules(), ["PlanBeforePod"])

    def test_a_pod_that_was_told_before_its_gang_said_so(self):
        self.see(pod("a-0", 7, "a", "n0", "0,1,2,3"))
        self.plan("a", 8, ("n0", 0x0f))
        self.assertEqual(self.rules(), ["PlanBeforePod"])

    def test_a_watch_that_is_behind_breaks_nothing(self):
        self.see(pod("a-0", 7, "a", "n0", "0,1,2,3"))
        self.plan("a", 5, ("n0", 0x0f))
        self.assertEqual(self.rules(), [])

    def test_the_plan_of_another_epoch_is_none(self):
        self.plan("a", 5, ("n0", 0x0f), epoch=2)
        self.see(pod("a-0", 7, "a", "n0", "0,1,2,3", epoch=1))
        self.assertEqual(self.rules(), ["PlanBeforePod"])

    def two_on_one_gpu(self):
        self.plan("a", 5, ("n0", 0x0f))
        self.plan("b", 6, ("n0", 0x0f))
        self.see(pod("a-0", 7, "a", "n0", "0,1,2,3"), pod("b-0", 9, "b", "n0", "0,1,2,3"))

    def test_two_gangs_let_go_with_one_gpu(self):
        self.two_on_one_gpu()
        self.assertEqual(self.rules(), ["NoOverlap"])

    def test_what_a_deleted_gang_told_late_is_void(self):
        self.two_on_one_gpu()
        self.promises.saw_gang("DELETED", gang("b", 8, [("n0", 0x0f)]), True, 0.0)
        self.assertEqual(self.rules(), [])

    def test_a_gang_that_is_deleted_later_is_no_excuse(self):
        self.two_on_one_gpu()
        self.promises.saw_gang("DELETED", gang("b", 12, [("n0", 0x0f)]), True, 0.0)
        self.assertEqual(self.rules(), ["NoOverlap"])

    def test_a_pod_that_leaves_is_in_nobodys_way(self):
        self.plan("a", 5, ("n0", 0x0f))
        self.plan("b", 6, ("n0", 0x0f))
        self.see(pod("a-0", 7, "a", "n0", "0,1,2,3", deletionTimestamp="2026-01-02T03:04:05Z"),
                 pod("b-0", 9, "b", "n0", "0,1,2,3"))
        self.assertEqual(self.rules(), [])

    def test_two_pods_bound_with_one_gpu(self):
        self.two_on_one_gpu()
        self.see(pod("a-0", 10, "a", "n0", "0,1,2,3", bound="n0"), pod("b-0", 11, "b", "n0", "0,1,2,3", bound="n0"))
        self.assertIn("NoGpuTwice", self.rules())

    def test_one_after_the_other_is_not_twice(self):
        self.plan("a", 5, ("n0", 0x0f))
        self.plan("b", 6, ("n0", 0x0f))
        self.see(pod("a-0", 7, "a", "n0", "0,1,2,3", bound="n0"))
        self.see(pod("a-0", 8, "a", "n0", "0,1,2,3", bound="n0"), kind="DELETED")
        self.see(pod("b-0", 9, "b", "n0", "0,1,2,3", bound="n0"))
        self.assertEqual(self.rules(), [])

    def test_more_gpus_in_use_than_the_node_has(self):
        self.see(of_no_gang("one", 5, 5, "n0"), of_no_gang("other", 6, 4, "n0"), of_no_gang("elsewhere", 7, 8, "n1"))
        self.assertEqual(self.promises.answer(1.0), ["NoGpuTwice: 9 GPUs are in use on n0, which has 8"])

    def test_a_pod_that_ends_makes_room_for_the_next(self):
        self.see(of_no_gang("one", 5, 8, "n0"), of_no_gang("one", 6, 8, "n0", "Succeeded"), of_no_gang("other", 7, 8, "n0"))
        self.assertEqual(self.rules(), [])

    def test_after_a_gap_those_who_went_may_be_told_later(self):
        self.see(of_no_gang("one", 5, 8, "n0"))
        self.promises.saw_pod("ADDED", of_no_gang("other", 9, 8, "n0"), False, 0.0)
        self.assertEqual(self.promises.answer(1.0), [])
        self.promises.saw_pod("MODIFIED", of_no_gang("one", 8, 8, "n0", "Succeeded"), False, 0.0)
        self.assertEqual(self.rules(), [])

    def test_after_a_gap_what_stays_is_broken(self):
        self.see(of_no_gang("one", 5, 8, "n0"))
        self.promises.saw_pod("ADDED", of_no_gang("other", 9, 8, "n0"), False, 0.0)
        self.assertEqual(self.rules(), ["NoGpuTwice"])

    def test_gpus_of_a_node_that_nobody_knows(self):
        self.see(of_no_gang("one", 5, 1, "n7"))
        self.assertEqual(self.rules(), ["NoGpuTwice"])

    def test_a_bound_pod_whose_rank_is_elsewhere(self):
        self.plan("a", 5, ("n0", 0x0f))
        self.see(pod("a-0", 7, "a", "n0", "0,1,2,3", bound="n0"))
        self.plan("a", 9, ("n1", 0x0f), epoch=2)
        self.assertEqual(len(self.promises.misplaced()), 1)


    # SpecStays

    def test_a_pod_past_its_gates_gets_a_node_and_nothing_else_changes(self):
        gated, free = pod("a-0", 7, "a", "n0", "0,1"), pod("a-0", 8, "a", "n0", "0,1")
        self.plan("a", 5, ("n0", 0x03))
        gated["spec"] |= {"schedulingGates": [{"name": "other.dev/queue"}]}
        free["spec"]["nodeSelector"] = {"disk": "fast"}
        bound = pod("a-0", 9, "a", "n0", "0,1", bound="n0")
        bound["spec"]["nodeSelector"] = {"disk": "fast"}
        self.see(gated, free, bound)
        self.assertEqual(self.rules(), [], "behind a gate it may be narrowed")
        self.see(pod("a-0", 10, "a", "n0", "0,1", bound="n0"))
        self.assertEqual(self.promises.answer(1.0), ["SpecStays: of pod a-0, which is past its gates, nodeSelector changed"])

    def test_the_next_pod_of_a_name_may_be_another(self):
        self.see(of_no_gang("one", 5, 4, "n0"))
        self.see(of_no_gang("one", 6, 4, "n0"), kind="DELETED")
        self.see(of_no_gang("one", 7, 2, "n0"))
        self.assertEqual(self.rules(), [])

    def test_the_spec_of_a_gang_changes(self):
        for version, pods in ((5, 2), (6, 2), (7, 4)):
            self.promises.saw_gang("MODIFIED", gang("a", version, [("n0", 1)]) | {"spec": {"pods": pods, "gpusPerPod": 1}}, True, 0.0)
            self.assertEqual(self.promises.answer(1.0), [] if pods == 2 else ["SpecStays: of Gang a pods changed"])

    def test_a_plan_that_changes_within_its_epoch(self):
        self.plan("a", 5, ("n0", 0x0f))
        self.plan("a", 6, ("n0", 0x0f))
        self.assertEqual(self.rules(), [])
        self.plan("a", 7, ("n1", 0x0f))
        self.assertEqual(self.promises.answer(1.0), ["SpecStays: the plan of Gang a has changed within epoch 1"])

    def test_a_plan_whose_epoch_goes_back(self):
        self.plan("a", 5, ("n0", 0x0f), epoch=2)
        self.plan("a", 6, ("n0", 0x0f), epoch=1)
        self.assertEqual(self.promises.answer(1.0), ["SpecStays: Gang a has gone back from epoch 2 to 1"])

    def test_a_plan_that_was_given_up_is_followed_by_another_first_one(self):
        self.plan("a", 5, ("n0", 0x0f))
        self.promises.saw_gang("MODIFIED", {"metadata": {"uid": "a", "name": "a", "resourceVersion": "6"}, "status": {}}, True, 0.0)
        self.plan("a", 7, ("n1", 0x0f))
        self.assertEqual(self.rules(), [])

    def test_after_a_gap_nobody_knows_whether_a_plan_was_given_up(self):
        self.plan("a", 5, ("n0", 0x0f))
        self.promises.saw_gang("MODIFIED", gang("a", 9, [("n1", 0x0f)]), False, 0.0)
        self.assertEqual(self.rules(), [])

    def move_a_rank(self):
        self.plan("a", 5, ("n0", 0x0f))
        self.see(pod("a-0", 7, "a", "n0", "0,1,2,3", bound="n0"))
        self.plan("a", 9, ("n1", 0x0f), epoch=2)
        self.assertEqual(self.promises.moves, 1)
        self.assertEqual(self.promises.answer(1.0), [], "the other watch may be behind")

    def test_a_rank_that_runs_is_planned_elsewhere(self):
        self.move_a_rank()
        self.assertEqual(self.promises.answer(GRACE + 1), ["SpecStays: epoch 2 of Gang a has rank 0 on n1, and a-0 runs on n0"])

    def test_a_rank_whose_pod_has_left_is_repaired(self):
        self.move_a_rank()
        self.see(pod("a-0", 8, "a", "n0", "0,1,2,3", bound="n0", deletionTimestamp="2026-01-02T03:04:05Z"))
        self.assertEqual(self.rules(), [])

    def test_while_the_api_server_is_away_nobody_can_be_told(self):
        self.move_a_rank()
        self.promises.excuse(20.0)
        self.assertEqual(self.promises.answer(GRACE + 1), [])
        self.assertEqual(len(self.promises.answer(GRACE + 21)), 1)

    # DomainBeforePod

    def claims_a_channel(self, version):
        one = pod("a-0", version, "a", "n0", "0,1", namespace="team")
        one["spec"]["resourceClaims"] = [{"name": "heddle-compute-domain", "resourceClaimTemplateName": "a-1-heddle"}]
        self.plan("a", 2, ("n0", 0x03))
        self.see(one)
        self.assertEqual(self.promises.with_domain, 1)

    def make_domain(self, version, exact=True):
        self.promises.saw_domain("ADDED", {"metadata": {"namespace": "team", "name": "a-1-heddle", "resourceVersion": str(version)}},
                                 exact, 0.0)

    def test_a_pod_past_the_gate_whose_compute_domain_is_there(self):
        self.claims_a_channel(7)
        self.assertEqual(self.promises.answer(1.0), [], "the other watch may be behind")
        self.make_domain(5)
        self.assertEqual(self.rules(), [])

    def test_a_pod_past_the_gate_whose_compute_domain_was_never_made(self):
        self.claims_a_channel(7)
        self.assertEqual(self.rules(), ["DomainBeforePod"])

    def test_a_pod_past_the_gate_whose_compute_domain_came_after_it(self):
        self.claims_a_channel(7)
        self.make_domain(9)
        self.assertEqual(self.rules(), ["DomainBeforePod"])

    def test_a_compute_domain_that_came_in_a_gap_may_have_been_there(self):
        self.claims_a_channel(7)
        self.make_domain(9, exact=False)
        self.assertEqual(self.rules(), [])


class TwiceTest(unittest.TestCase):
    """What one list shows."""

    def twice(self, *pods):
        return twice(pods, room_of(NODES))

    def test_gangs_side_by_side_break_nothing(self):
        self.assertEqual(self.twice(pod("a-0", 7, "a", "n0", "0,1,2,3", bound="n0"), pod("b-0", 8, "b", "n0", "4,5,6,7", bound="n0"),
                                    pod("c-0", 9, "c", "n1", "0,1,2,3", bound="n1")), [])

    def test_two_plans_with_one_gpu(self):
        self.assertEqual(self.twice(pod("a-0", 7, "a", "n0", "0,1", bound="n0"), pod("b-0", 8, "b", "n0", "1,2", bound="n0")),
                         ["NoGpuTwice: a-0 and b-0 share a GPU of n0"])

    def test_the_whole_node_is_all_its_gpus(self):
        self.assertIn("NoGpuTwice: a-0 and b-0 share a GPU of n0", self.twice(
            pod("a-0", 7, "a", "n0", "", count=8, bound="n0"), pod("b-0", 8, "b", "n0", "5", bound="n0")))

    def test_more_gpus_than_there_are_although_no_plan_says_so(self):
        self.assertEqual(self.twice(pod("a-0", 7, "a", "n0", "0,1,2,3", bound="n0"), of_no_gang("one", 8, 5, "n0")),
                         ["NoGpuTwice: 9 GPUs are in use on n0, which has 8"])

    def test_what_has_ended_or_was_bound_elsewhere_is_in_nobodys_way(self):
        self.assertEqual(self.twice(pod("a-0", 7, "a", "n0", "0,1", bound="n0", phase="Succeeded"), pod("b-0", 8, "b", "n0", "0,1", bound="n0"),
                                    pod("c-0", 9, "c", "n0", "0,1", bound="n1")), [])


class AuditTailTest(unittest.TestCase):
    def test_requests_are_held_against_what_changed_in_their_minute(self):
        def event(user, verb, resource, minute, code=200, body=None):
            return json.dumps({"user": {"username": f"system:serviceaccount:heddle-system:{user}"}, "verb": verb,
                               "objectRef": {"resource": resource}, "responseStatus": {"code": code},
                               "requestReceivedTimestamp": f"2026-01-02T03:{minute:02}:05.000000Z", "requestObject": body})
        lines = [event("heddle-extender", "list", "gangs", 1)] * 30 + [event("heddle-extender", "get", "nodes", 2)] * 30
        lines += [event("kubelet", "patch", "pods", 2)] * 10
        plan = gang("a", 1, [("n0", 3)])
        lines += [event("heddle-extender", "update", "gangs", 2, body=plan), event("heddle-extender", "update", "gangs", 2, 409, plan)]
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "audit.log"
            log.write_text("\n".join(lines) + "\n" + lines[0][:40])
            tail = AuditTail(log, Promises()).read()
            self.assertEqual(tail.busiest("heddle-extender"), (32, 10))
            self.assertEqual(hot(tail, {"heddle-extender": 25}, 1), [
                "NoHotLoop: heddle-extender has sent 30 requests within a minute in which 0 pods, Jobs and Nodes were written"])
            self.assertEqual(hot(tail, {"heddle-extender": 30}, 1), [])
            self.assertEqual(tail._promises.plans[("a", 1)], [(None, [("n0", 3)])])
            with open(log, "a") as more:
                more.write(lines[0][40:] + "\n")
            self.assertEqual(tail.read().minutes, AuditTail(log, Promises()).read().minutes)
