"""What goes wrong in the soak is counted and mended in time. No control plane is needed."""

import random
import types
import unittest
from unittest import mock

import soak_trouble
from bed import ApiError, h100
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


class TroubleTest(unittest.TestCase):
    def setUp(self):
        self.rest, self.nodes = Calls(list=[], get={"spec": {}}), Calls()
        self.heddle = Calls(is_whole=True, wait_for=True)
        clock = mock.patch.object(soak_trouble, "time", types.SimpleNamespace(monotonic=lambda: self.now))
        clock.start()
        self.addCleanup(clock.stop)
        self.now, self.cluster = 0.0, h100(units=1, nodes_per_unit=4)
        self.trouble = Trouble(types.SimpleNamespace(rest=self.rest), self.heddle, self.nodes, self.cluster, random.Random(1))

    def test_a_lost_node_comes_back_and_its_pods_are_looked_after(self):
        self.trouble.lose_a_node(set())
        (node,) = self.nodes.of("lose")[0]
        self.rest.answers["list"] = [{"metadata": {"namespace": "team", "name": name}, "spec": {"nodeName": at}}
                                     for name, at in (("mine", node), ("other", "elsewhere"))]
        self.now = LOST[0] - 1
        self.trouble.mend_what_is_due()
        self.assertEqual(self.nodes.of("find_again"), [])
        self.now = LOST[1]
        self.trouble.mend_what_is_due()
        self.assertEqual(self.nodes.of("find_again"), [(node,)])
        self.assertEqual([call[0] for call in self.rest.of("patch")], ["/api/v1/namespaces/team/pods/mine"])
        self.trouble.mend_what_is_due()
        self.assertEqual(len(self.nodes.of("find_again")), 1)

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
