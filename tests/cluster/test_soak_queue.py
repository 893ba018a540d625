"""What the soak says of the queue is said where it is jumped, and only then. No control plane is needed."""

import datetime
import unittest

from soak_queue import CALM, HOLD, LONGEST_WALK, Look, QueueRule

START = 1_800_000_000.0


def time(at):
    return datetime.datetime.fromtimestamp(at, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def gang(name, created, priority=0, pods=2, plan=(), reason="", epoch=1, planned=0.0, **status):
    placement = {"epoch": epoch, "nodeNames": list(plan), "nodes": list(range(len(plan)))}
    status |= {"placement": placement, "plannedAt": time(planned)} if plan else {}
    return {"metadata": {"uid": name, "name": name, "creationTimestamp": time(created)},
            "spec": {"owner": {"kind": "Job", "uid": f"job-{name}"}, "pods": pods, "gpusPerPod": 8, "priority": priority,
                     "parallelism": {"tp": 8, "dp": pods}},
            "status": status | ({"reason": reason} if reason else {})}


def pod(owner, index, gated=True):
    return {"metadata": {"uid": f"{owner}-{index}", "ownerReferences": [{"uid": f"job-{owner}", "controller": True}]},
            "spec": {"schedulingGates": [{"name": "heddle.dev/gang"}]} if gated else {}}


class QueueTestCase(unittest.TestCase):
    """`ahead` has waited with both of its pods for a minute when `late` gets a plan for n0 and n1."""

    priority = 0  # of the one ahead

    def setUp(self):
        self.rule = QueueRule()
        for name, since in (("ahead", 0), ("late", 30)):
            for index in range(2):
                self.rule.saw_pod("ADDED", pod(name, index), True, START + since)
        self.see("ahead", 0, 1, priority=self.priority, reason="NotEnoughFree")
        self.see("late", 30, 31, reason="NotEnoughFree")

    def see(self, name, created, now, **words):
        self.rule.saw_gang("MODIFIED", gang(name, START + created, **words), True, START + now)

    def plan_the_late_one(self, at=100, **words):
        self.see("late", 30, at + 1, plan=("n0", "n1"), planned=START + at, **words)

    def rules(self, now=101 + HOLD):
        return [sentence.partition(":")[0] for sentence in self.rule.answer(START + now)]


class OrderTest(QueueTestCase):
    """Of those that ask for the same."""

    def test_one_that_came_first_and_still_waits_was_passed(self):
        self.plan_the_late_one()
        self.assertEqual(self.rules(101), [], "the other's plan may be on its way")
        self.assertEqual(self.rule.answer(START + 101 + HOLD), [
            "QueueRule: Gang late has got a plan, and ahead, which asks for the same and came first, still waits"])
        self.assertEqual((self.rule.ordered, self.rule.still_ahead), (1, 1))

    def test_one_that_got_its_plan_before_or_since_was_not_passed(self):
        self.plan_the_late_one()
        self.see("ahead", 0, 105, plan=("n2", "n3"), planned=START + 104)
        self.assertEqual(self.rules(), [])
        self.assertEqual((self.rule.ordered, self.rule.still_ahead), (1, 0))

    def test_who_asks_for_more_may_wait(self):
        self.see("ahead", 0, 50, pods=4, reason="NotEnoughFree")
        self.plan_the_late_one()
        self.assertEqual(self.rules(), [])

    def test_who_lacks_a_pod_may_wait(self):
        self.rule.saw_pod("DELETED", pod("ahead", 1), True, START + 60)
        self.plan_the_late_one()
        self.assertEqual(self.rules(), [])

    def test_who_got_its_last_pod_just_now_may_wait(self):
        self.rule.saw_pod("DELETED", pod("ahead", 1), True, START + 60)
        self.rule.saw_pod("ADDED", pod("ahead", 2), True, START + 99)
        self.plan_the_late_one()
        self.assertEqual(self.rules(), [])

    def test_who_waits_for_something_else_may_wait(self):
        self.see("ahead", 0, 50, reason="NoComputeDomain")
        self.plan_the_late_one()
        self.assertEqual(self.rules(), [])

    def test_who_came_in_the_same_second_may_wait(self):
        self.see("ahead", 30, 50, reason="NotEnoughFree")
        self.plan_the_late_one()
        self.assertEqual(self.rules(), [])

    def test_a_plan_that_was_lost_on_its_way_is_no_broken_order(self):
        self.rule.was_disturbed(START + 100 - CALM + 1)
        self.plan_the_late_one()
        self.assertEqual((self.rules(), self.rule.ordered), ([], 0))

    def test_a_repair_has_no_place_in_the_queue(self):
        self.plan_the_late_one(at=60, epoch=2)
        self.plan_the_late_one(at=100, epoch=3)
        self.assertEqual(self.rules(), [])

    def test_one_that_ended_or_gives_way_meanwhile_says_nothing(self):
        for name, words in (("Ended", {"conditions": [{"type": "Ended", "status": "True"}]}), ("preempted", {"preemptedBy": "team/x"})):
            with self.subTest(name):
                self.setUp()
                self.plan_the_late_one()
                self.plan_the_late_one(**words)
                self.assertEqual(self.rules(), [])


class KeptTest(QueueTestCase):
    """What is kept for a gang of higher priority."""

    priority = 100

    def look(self, *seconds, kept=None, leader="host-a"):
        for at in seconds:
            self.rule.saw_kept(Look(START + at, START + at + 0.1, leader, {"n1": 100} if kept is None else kept))

    def test_a_plan_on_a_node_that_stays_kept(self):
        self.look(*range(98, 112))
        self.plan_the_late_one()
        self.assertEqual(self.rule.answer(START + 101 + HOLD), [
            "QueueRule: Gang late of priority 0 was planned onto n1, which is kept for one of priority 100; ahead waits"])
        self.assertEqual((self.rule.judged, self.rule.held_back), (1, 1))

    def test_a_node_that_is_not_kept_any_more(self):
        self.look(*range(98, 106))
        self.look(106, kept={})
        self.look(*range(107, 112))
        self.plan_the_late_one()
        self.assertEqual(self.rules(), [])
        self.assertEqual((self.rule.judged, self.rule.held_back), (1, 1))

    def test_a_node_that_is_kept_since_the_plan(self):
        self.look(98, 99, kept={})
        self.look(*range(100, 112))
        self.plan_the_late_one()
        self.assertEqual(self.rules(), [])

    def test_a_node_that_is_kept_for_one_of_no_more_priority(self):
        self.look(*range(98, 112), kept={"n1": 0})
        self.plan_the_late_one()
        self.assertEqual(self.rules(), [])

    def test_nobody_looked_for_a_while_or_another_led(self):
        for name, looks in (("a while", [(range(98, 102), "host-a"), (range(106, 112), "host-a")]),
                            ("another", [(range(98, 106), "host-a"), (range(106, 112), "host-b")])):
            with self.subTest(name):
                self.setUp()
                for seconds, leader in looks:
                    self.look(*seconds, leader=leader)
                self.plan_the_late_one()
                self.assertEqual(self.rules(), [])
                self.assertEqual(self.rule.judged, 0)

    def test_nobody_of_that_priority_waits_any_more(self):
        self.look(*range(98, 112))
        self.plan_the_late_one()
        self.rule.saw_gang("DELETED", gang("ahead", START, 100), True, START + 105)
        self.assertEqual(self.rules(), [])

    def test_it_may_have_been_kept_for_one_that_was_planned_lately(self):
        self.look(*range(98, 112))
        self.see("third", 0, 101 - LONGEST_WALK, priority=100, plan=("n5",), planned=START + 101 - LONGEST_WALK)
        self.plan_the_late_one()
        self.assertEqual(self.rules(), [])

    def test_a_plan_that_is_made_anew_is_none_of_the_queues(self):
        self.see("late", 30, 40, plan=("n0", "n2"), planned=START + 39)
        self.rule.saw_gang("DELETED", gang("late", START + 30), True, START + 50)
        self.look(*range(98, 112))
        self.plan_the_late_one()
        self.assertEqual(self.rules(), [])
