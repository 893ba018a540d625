"""What goes wrong in the soak is counted and mended in time. No control plane is needed."""

import random
import types
import unittest
from unittest import mock

import soak_trouble
from bed import ApiError, Nodes, h100
from soak_trouble import BROKEN, LONE, LOST, MOST_LONE, MOST_LOST, SUSPENDED, Trouble


class Calls(list):
    """Stands for anything and keeps what it was told; `answers` by the method's name."""

    def __init__(self, **answers):
        super().__init__()
        self.answers = answers

    def __getattr__(self, name):
        def call(*arguments, **keywords):
            self.append((name, *arguments))
            answer = self.answers.get(name)
            if isinstance(answer, Exception):
                raise answer
            return answer
        return call

    def of(self, name):
        return [call[1:] for call in self if call[0] == name]


class FinishDeletedTest(unittest.TestCase):
    def test_deleted_pods_end_by_their_uid_and_only_once(self):
        rest = Calls()
        asked = []
        rest.delete = lambda where, **options: asked.append((where.rpartition("/")[2], options))
        nodes = Nodes(types.SimpleNamespace(rest=rest))

        def pod(name, **meta):
            return {"metadata": {"namespace": "team", "name": name, "uid": f"uid-{name}"} | meta}
        deleted = {"deletionTimestamp": "2026-01-02T03:04:05Z", "deletionGracePeriodSeconds": 30}
        self.assertEqual(nodes.finish_deleted([
            pod("runs"), pod("deleted", **deleted), pod("has-a-finalizer", **deleted | {"deletionGracePeriodSeconds": 0}),
            pod("held", **deleted, annotations={"bed.heddle.dev/end": "never"})]), 1)
        self.assertEqual(asked, [("deleted", {"gracePeriodSeconds": 0, "preconditions": {"uid": "uid-deleted"}})])

        def refuse(where, **_):
            raise ApiError("DELETE", where, refused, {})
        rest.delete = refuse
        for refused in (404, 409):  # it has gone, or another has its name
            self.assertEqual(nodes.finish_deleted([pod("deleted", **deleted)]), 1)
        refused = 500
        with self.assertRaises(ApiError):
            nodes.finish_deleted([pod("deleted", **deleted)])


class TroubleTest(unittest.TestCase):
    def setUp(self):
        self.rest, self.nodes = Calls(list=[], get={"spec": {}}), Calls()
        self.heddle = Calls(is_whole=True, wait_for=True)
        clock = mock.patch.object(soak_trouble, "time", types.SimpleNamespace(monotonic=lambda: self.now, time=lambda: self.now))
        clock.start()
        self.addCleanup(clock.stop)
        self.now, self.cluster = 0.0, h100(units=1, nodes_per_unit=4)
        self.trouble = Trouble(types.SimpleNamespace(rest=self.rest), self.heddle, self.nodes, self.cluster, random.Random(1))

    def test_a_lost_node_comes_back_once(self):
        self.trouble.lose_a_node(set())
        (node,) = self.nodes.of("lose")[0]
        self.now = LOST[0] - 1
        self.trouble.mend_what_is_due()
        self.assertEqual(self.nodes.of("take_back"), [])
        self.now = LOST[1]
        for _ in range(2):
            self.trouble.mend_what_is_due()
            self.assertEqual(self.nodes.of("take_back"), [(node,)])

    def test_pods_whose_grace_is_over_end_but_on_a_lost_node(self):
        self.trouble.lose_a_node(set())
        (lost,) = self.nodes.of("lose")[0]
        ends = "1970-01-01T00:01:00Z"
        pods = [{"metadata": {"name": name} | ({"deletionTimestamp": ends} if deleted else {}), "spec": {"nodeName": at} if at else {}}
                for name, at, deleted in (("silent", lost, True), ("due", "elsewhere", True), ("runs", "elsewhere", False),
                                          ("gated", "", True))]
        for now, names in ((60.0, []), (61.0, ["due"])):
            self.nodes.clear()
            self.now = now
            self.trouble.finish_overdue(pods)
            self.assertEqual([pod["metadata"]["name"] for pod in self.nodes.of("finish_deleted")[0][0]], names)
        self.nodes.clear()
        self.now = max(LOST[1], 61.0)
        self.trouble.mend_what_is_due()
        self.trouble.finish_overdue(pods)
        self.assertEqual([pod["metadata"]["name"] for pod in self.nodes.of("finish_deleted")[0][0]], ["silent", "due"])

    def test_no_cordoned_node_is_lost_none_twice_and_not_all(self):
        cordoned = {self.cluster.nodes[0].name}
        for _ in range(20):
            self.trouble.lose_a_node(cordoned)
        lost = [node for (node,) in self.nodes.of("lose")]
        self.assertEqual((len(lost), set(lost) & cordoned), (MOST_LOST, set()))
        self.assertEqual(len(set(lost)), MOST_LOST)

    def test_a_gpu_breaks_and_heals_with_a_boot_each(self):
        self.trouble.break_a_gpu()
        node = self.heddle.of("write_machine")[0][1]
        self.now = BROKEN[1]
        self.trouble.mend_what_is_due()
        self.assertEqual([call[0] for call in self.heddle], ["kill9", "write_machine", "start_daemon"] * 2)
        self.assertEqual(self.heddle.of("start_daemon"), [(f"agent:{node}",)] * 2)

    def test_a_job_is_resumed_unless_it_was_deleted(self):
        self.trouble.suspend({"a"})
        self.trouble.suspend({"a", "b"})
        self.trouble.forget("b")
        self.now = SUSPENDED[1]
        self.trouble.mend_what_is_due()
        self.assertEqual([(where.rpartition("/")[2], body["spec"]["suspend"]) for where, body in self.rest.of("patch")],
                         [("a", True), ("b", True), ("a", False)])

    def test_a_job_that_heddle_has_suspended_is_left_alone(self):
        self.rest.answers["get"] = {"spec": {"suspend": True}}
        self.trouble.suspend({"a"})
        self.assertEqual((self.rest.of("patch"), self.trouble.suspended), ([], {}))

    def test_lone_pods_are_some_and_end_also_where_somebody_stopped_them(self):
        for _ in range(MOST_LONE + 3):
            self.trouble.make_lone_pod("soak-high")
        made = [body for _, body in self.rest.of("create")]
        self.assertEqual(len(made), MOST_LONE)
        self.assertEqual({(body["spec"]["schedulerName"], body["spec"]["priorityClassName"]) for body in made}, {("heddle", "soak-high")})
        self.rest.answers["delete"] = ApiError("DELETE", "", 404, {})
        self.now = LONE[1]
        self.trouble.mend_what_is_due()
        self.assertEqual((len(self.rest.of("delete")), self.trouble.lone), (MOST_LONE, {}))

    def test_at_the_end_all_is_mended_and_a_kind_that_never_came_shows(self):
        self.trouble.lose_a_node(set())
        self.trouble.suspend({"a"})
        self.trouble.mend_all()
        self.assertEqual(self.trouble.told(), "1 nodes lost, 1 nodes found again, 0 GPUs broken, 0 GPUs healed, 1 Jobs suspended, "
                                              "1 Jobs resumed, 0 lone pods")
